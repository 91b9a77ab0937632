// One instance of BloomStore with damaged pages, and with wrong ones.
#include "bloom_store_fixture.h"
#include "store/base/coding.h"

namespace siltfs::testing {

TEST_CASE("a damaged chain page costs reads, but loses no entry") {
  BloomStoreFixture fixture({});
  PutPages(fixture, 48);
  fixture.partition->DropExtras();
  const PageAddress chain = fixture.FirstOfChain();
  fixture.Damage(chain + 3);
  PagesRead read;
  fixture.CheckFinds(0, 48 * kPerPage, read);
  CHECK(read.damaged == 0);
  // A tenth of the lookups read the damaged page, another one, and half of the data pages.
  CHECK(read.data > 2 * 48 * kPerPage);
  CHECK(read.data < 6 * 48 * kPerPage);
  CHECK(fixture.context->damaged_filters == 1);
  uint64_t damaged = 0;
  CHECK(Collected(*fixture.partition, damaged).size() == 48 * kPerPage);
  CHECK(damaged == 0);

  SECTION("and the next chain is whole again") {
    PutPages(fixture, 8);
    CHECK(fixture.FirstOfChain() != chain);
    fixture.CheckVerifies();
    const PagesRead misses = ReadsOfAbsent(fixture, 1000);
    CHECK(misses.chain == 1000);
    CHECK(misses.data < 1000);
  }
  SECTION("and a chain that is loaded is whole") {
    REQUIRE_OK(fixture.partition->LoadExtras());
    PagesRead whole;
    fixture.CheckFinds(0, 48 * kPerPage, whole);
    CHECK(whole.chain == 0);
    CHECK(whole.data < 2 * 48 * kPerPage);
  }
  CHECK(fixture.context->damaged_filters == 1);
}

TEST_CASE("entries whose chain pages are all damaged are reported, and a rewrite is wanted") {
  BloomStoreFixture fixture({});
  PutPages(fixture, 16);
  fixture.partition->DropExtras();
  const PageAddress chain = fixture.FirstOfChain();
  for (uint32_t i = 0; i < 10; ++i) fixture.Damage(chain + i);
  PagesRead read;
  for (uint64_t i = 0; i < 100; ++i) REQUIRE_FALSE(fixture.Find(fixture.Entry(i).hash, read));
  CHECK(read.damaged == 100);
  uint64_t damaged = 0;
  CHECK(Collected(*fixture.partition, damaged).empty());
  CHECK(damaged > 0);
  const bool load = GENERATE(true, false);
  if (load) {
    REQUIRE_OK(fixture.partition->LoadExtras());
  } else {
    fixture.Put(20'000, 8 * kPerPage);
    REQUIRE_OK(fixture.partition->WriteBuffer());
    PagesRead recent;
    fixture.CheckFinds(20'000, 8 * kPerPage, recent);
  }
  CHECK(fixture.partition->WantsRewrite());
  CHECK_FALSE(fixture.partition->HasDroppedExtras());
}

TEST_CASE("lookups notice a damaged data page even if its filter was made after the damage") {
  const bool in_chain = GENERATE(true, false);
  BloomStoreFixture fixture({{"prefilter_bits", 8}, {"buffered_filters", 4}});
  PutPages(fixture, 3);
  const std::string state = fixture.partition->Encode();
  Decoder in(AsBytes(state));
  in.Skip(8 + 4 + 4 + 8 + 4);
  fixture.Damage({in.U64()});
  fixture.Reopen();
  REQUIRE_OK(fixture.partition->LoadFilters());
  if (in_chain) {
    fixture.Put(5000, kPerPage);
    REQUIRE_OK(fixture.partition->WriteBuffer());
    REQUIRE(fixture.files->live_pages(kChainLog) > 0);
  }
  PagesRead read;
  for (uint64_t i = 0; i < kPerPage; ++i) REQUIRE_FALSE(fixture.Find(fixture.Entry(i).hash, read));
  CHECK(read.damaged == kPerPage);
  fixture.CheckFinds(kPerPage, 2 * kPerPage, read);
}

TEST_CASE("an instance is the same when it is opened again, and refuses a wrong state") {
  BloomStoreFixture fixture({{"prefilter_bits", 4}});
  PutPages(fixture, 21);
  const std::string state = fixture.partition->Encode();
  fixture.Reopen();
  CHECK(fixture.partition->Encode() == state);
  PagesRead read;
  fixture.CheckFinds(0, 21 * kPerPage, read);
  REQUIRE_OK(fixture.partition->LoadFilters());
  fixture.CheckFinds(0, 21 * kPerPage, read);
  fixture.CheckVerifies();
  for (size_t length = 0; length < state.size(); ++length) {
    const auto opened =
        fixture.engine->Open(*fixture.context, 2, HashPrefix(), AsBytes(state).first(length));
    // The recent pages are at the end, and each has 12 bytes.
    if (length >= state.size() - 60 && (state.size() - length) % 12 == 0) continue;
    REQUIRE_CODE(opened, kCorruption);
  }
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string wrong = state;
    wrong[random.Below(wrong.size())] ^= static_cast<char>(1 + random.Below(255));
    auto opened = fixture.engine->Open(*fixture.context, 2, HashPrefix(), AsBytes(wrong));
    if (!opened.ok()) continue;
    fixture.partition = std::move(*opened);
    for (uint64_t at = 0; at < 20; ++at) {
      const FlashEntry entry = fixture.Entry(random.Below(21 * kPerPage));
      const auto found = fixture.Find(entry.hash, read);
      if (found) REQUIRE(*found == entry);
    }
    uint64_t damaged = 0;
    Collected(*fixture.partition, damaged);
    REQUIRE_OK(fixture.partition->LoadFilters());
  }
}

TEST_CASE("a chain page with a valid checksum and wrong content never crashes a lookup") {
  BloomStoreFixture fixture({{"chain_length", 4}, {"filter_bytes", 8}});
  PutPages(fixture, 2);
  Random random(6);
  for (int round = 0; round < 200; ++round) {
    alignas(4096) std::array<uint8_t, kPageSize> page;
    for (uint8_t& byte : page) byte = static_cast<uint8_t>(random.Next() | random.Next());
    const auto columns = static_cast<uint16_t>(1 + random.Below(6));
    SetPageKind(PageBytes(page), BloomStoreShape::kChainPage, columns);
    auto at = fixture.files->Append(kChainLog, 0, page);
    REQUIRE_OK(at);
    // Half of the addresses lead to the chain page itself.
    if (random.OneIn(2)) {
      Encoder addresses;
      for (int i = 0; i < 4; ++i) addresses.U64(at->value + 1);
      std::ranges::copy(addresses.view(), page.begin() + 16 + 64 * 16);
      SetPageKind(PageBytes(page), BloomStoreShape::kChainPage, columns);
      at = fixture.files->Append(kChainLog, 0, page);
      REQUIRE_OK(at);
    }
    Encoder state;
    state.U64(at->value).U32(1).U32(4).U64(100).U32(1).U64(at->file()).U32(4);
    auto opened = fixture.engine->Open(*fixture.context, 2, HashPrefix(), AsBytes(state.text()));
    REQUIRE_OK(opened);
    fixture.partition = std::move(*opened);
    for (uint64_t i = 0; i < 20; ++i) {
      PagesRead read;
      const auto found = fixture.Find(fixture.Entry(i).hash, read);
      if (found) REQUIRE(*found == fixture.Entry(i));
      CHECK(read.data + read.chain <= 5);
    }
    uint64_t damaged = 0;
    CHECK(Collected(*fixture.partition, damaged).empty());
    CHECK(damaged > 0);
    REQUIRE_OK(fixture.partition->LoadExtras());
    fixture.Put(5000 + static_cast<uint64_t>(round), 1);
    if (!fixture.partition->WantsRewrite()) REQUIRE_OK(fixture.partition->WriteBuffer());
  }
}

}  // namespace siltfs::testing
