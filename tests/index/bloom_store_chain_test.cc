// One instance of BloomStore: what its lookups read, and when its chain is written.
#include "bloom_store_fixture.h"

namespace siltfs::testing {

TEST_CASE("a lookup reads one page of a chain on flash, and nothing of a chain in memory") {
  BloomStoreFixture fixture({});
  PutPages(fixture, 96);
  CHECK(fixture.files->live_pages(kDataLog) == 96);
  const uint64_t blocks = fixture.files->live_pages(kChainLog);
  CHECK(blocks == 10);
  CHECK(fixture.partition->WantsRewrite() == false);
  fixture.Put(kAbsent / 2, 1);
  CHECK(fixture.partition->WantsRewrite());
  constexpr uint64_t kLookups = 4000;
  for (const bool in_memory : {true, false}) {
    if (!in_memory) fixture.partition->DropExtras();
    CHECK(fixture.partition->HasDroppedExtras() == !in_memory);
    PagesRead hits;
    fixture.CheckFinds(0, kLookups, hits);  // of the oldest pages: all false positives are read
    CHECK(hits.chain == (in_memory ? 0 : kLookups));
    CHECK(hits.data >= kLookups);
    CHECK(hits.data < 2.4 * kLookups);
    const PagesRead misses = ReadsOfAbsent(fixture, kLookups);
    CHECK(misses.chain == (in_memory ? 0 : kLookups));
    CHECK(misses.data < 1.4 * kLookups);
    UNSCOPED_INFO("data pages per hit " << hits.data << ", per miss " << misses.data);
  }
  REQUIRE_OK(fixture.partition->LoadExtras());
  CHECK_FALSE(fixture.partition->HasDroppedExtras());
  CHECK(ReadsOfAbsent(fixture, 100).chain == 0);
  fixture.CheckVerifies();
}

TEST_CASE("a chain is written when the wanted number of filters has gathered") {
  const uint64_t gathered = GENERATE(1, 3, 8);
  BloomStoreFixture fixture({{"buffered_filters", gathered}});
  const uint64_t blocks = 10;
  for (uint64_t page = 1; page <= 40; ++page) {
    fixture.Put((page - 1) * kPerPage, kPerPage);
    REQUIRE_OK(fixture.partition->WriteBuffer());
    const uint64_t chains = page / gathered;
    CHECK(fixture.files->bytes_written() == (page + chains * blocks) * kPageSize);
    CHECK(fixture.files->live_pages(kChainLog) == (chains > 0 ? blocks : 0));
    // An entry in a page whose filter is in memory takes one read.
    PagesRead read;
    if (page % gathered != 0) fixture.CheckFinds((page - 1) * kPerPage, kPerPage, read);
    CHECK(read.data == (page % gathered != 0 ? kPerPage : 0));
  }
}

TEST_CASE("the newest entry of a name is found, in the buffer, in recent pages and in the chain") {
  BloomStoreFixture fixture({{"buffered_filters", 4}, {"record_bytes", 64}});
  const bool in_memory = GENERATE(true, false);
  for (uint32_t version = 1; version <= 14; ++version) {
    fixture.Put(0, 40, version);
    if (version % 3 != 0) REQUIRE_OK(fixture.partition->WriteBuffer());
    if (!in_memory) fixture.partition->DropExtras();
    PagesRead read;
    fixture.CheckFinds(0, 40, read, version);
  }
  FlashEntry tombstone = fixture.Entry(7);
  tombstone.location = {};
  for (int i = 0; i < 6; ++i) {
    fixture.Put(tombstone);
    PagesRead read;
    const auto found = fixture.Find(tombstone.hash, read);
    REQUIRE(found);
    CHECK(found->tombstone());
    REQUIRE_OK(fixture.partition->WriteBuffer());
  }
}

TEST_CASE("a listing has newer entries first") {
  BloomStoreFixture fixture({{"buffered_filters", 2}, {"record_bytes", 64}});
  for (uint32_t version = 1; version <= 5; ++version) {
    fixture.Put(0, 10, version);
    REQUIRE_OK(fixture.partition->WriteBuffer());
  }
  uint64_t damaged = 0;
  const std::vector<FlashEntry> entries = Collected(*fixture.partition, damaged);
  REQUIRE(entries.size() == 50);
  for (size_t i = 0; i < 50; ++i) CHECK(entries[i].location.segment == 5 - i / 10);
  CHECK(damaged == 0);
}

TEST_CASE("a prefilter rules out absent names before anything is read") {
  BloomStoreFixture fixture({{"prefilter_bits", 8}});
  PutPages(fixture, 90);
  fixture.partition->DropExtras();
  const auto rules_out = [&] {
    const PagesRead read = ReadsOfAbsent(fixture, 4000);
    CHECK(read.chain < 4000 * 0.03);  // 2.2 %, by theory
    CHECK(read.data < 4000 * 0.04);
    PagesRead hits;
    fixture.CheckFinds(0, 90 * kPerPage, hits);
  };
  rules_out();
  fixture.partition->DropFilters();
  CHECK(fixture.context->filter_bytes == 0);
  CHECK(ReadsOfAbsent(fixture, 1000).chain == 1000);
  const uint64_t predicted = fixture.partition->DroppedFilterBytes();
  REQUIRE_OK(fixture.partition->LoadFilters());
  CHECK(fixture.context->filter_bytes > 0);
  CHECK(fixture.context->filter_bytes <= predicted);
  rules_out();
  fixture.Reopen();
  CHECK(fixture.partition->HasDroppedFilters());
  REQUIRE_OK(fixture.partition->LoadFilters());
  rules_out();

  // A stored prefilter that is damaged is made again from the data pages.
  fixture.Damage(fixture.FirstOfChain() + 10);
  fixture.Reopen();
  REQUIRE_OK(fixture.partition->LoadFilters());
  CHECK(fixture.context->damaged_filters == 1);
  rules_out();
  fixture.CheckVerifies();
}

TEST_CASE("without memory for filters, each page's filter goes into the chain at once") {
  const uint64_t prefilter_bits = GENERATE(0, 4);
  BloomStoreFixture fixture({{"prefilter_bits", prefilter_bits}, {"record_bytes", 64}});
  fixture.Put(0, 63 * 3);
  REQUIRE_OK(fixture.partition->WriteBuffer());
  CHECK(fixture.files->live_pages(kChainLog) == 0);
  fixture.partition->DropFilters();
  CHECK(fixture.context->filter_bytes == 0);
  for (uint64_t i = 0; i < 20; ++i) {
    fixture.Put(1000 + i, 1);
    REQUIRE_OK(fixture.partition->WriteBuffer());
    CHECK(fixture.context->filter_bytes == 0);
    CHECK(fixture.files->live_pages(kDataLog) == 4 + i);
    PagesRead read;
    REQUIRE(fixture.Find(fixture.Entry(1000 + i).hash, read));
    CHECK(read.chain == 1);
  }
  PagesRead read;
  fixture.CheckFinds(0, 63 * 3, read);
  fixture.CheckVerifies();
  REQUIRE_OK(fixture.partition->LoadFilters());
  fixture.CheckFinds(0, 63 * 3, read);
  fixture.CheckVerifies();
}

TEST_CASE("after a failed write an instance is as before, and its pages are released") {
  BloomStoreFixture fixture({{"buffered_filters", 2}, {"prefilter_bits", 4}});
  PutPages(fixture, 3);
  fixture.Put(3 * kPerPage, kPerPage);
  const uint64_t nth = GENERATE(1, 2);  // the data page, the chain
  const std::string state = fixture.partition->Encode();
  const uint64_t live = fixture.files->live_pages();
  const uint64_t filter_bytes = fixture.context->filter_bytes;
  fixture.env.FailCall(
      {.calls = SimCall::kWrite, .nth = nth, .code = StatusCode::kNoSpace, .path_part = ""});
  REQUIRE_CODE(fixture.partition->WriteBuffer(), kNoSpace);
  CHECK(fixture.partition->Encode() == state);
  CHECK(fixture.files->live_pages() == live);
  CHECK(fixture.context->filter_bytes == filter_bytes);
  PagesRead read;
  fixture.CheckFinds(0, 4 * kPerPage, read);
  fixture.env.ClearFaults();
  REQUIRE_OK(fixture.partition->WriteBuffer());
  fixture.CheckFinds(0, 4 * kPerPage, read);
  fixture.CheckVerifies();
}

TEST_CASE("a chain moves out of its file, and the data pages stay") {
  BloomStoreFixture fixture({{"prefilter_bits", 4}});
  PutPages(fixture, 17);
  const PageAddress chain = fixture.FirstOfChain();
  const uint64_t data_pages = fixture.files->live_pages(kDataLog);
  fixture.files->EndFile(kChainLog, 0);
  CHECK(PagesIn(*fixture.partition, chain.file()) > 0);
  const auto moved = fixture.partition->MoveOut(chain.file());
  REQUIRE_OK(moved);
  CHECK(*moved);
  CHECK(PagesIn(*fixture.partition, chain.file()) == 0);
  CHECK(fixture.files->live_pages(kDataLog) == data_pages);
  PagesRead read;
  fixture.CheckFinds(0, 17 * kPerPage, read);
  fixture.CheckVerifies();
  const uint64_t data_file = 1;  // the first file that was made
  REQUIRE(PagesIn(*fixture.partition, data_file) > 0);
  const auto stays = fixture.partition->MoveOut(data_file);
  REQUIRE_OK(stays);
  CHECK_FALSE(*stays);
  fixture.partition->ReleaseAll();
  CHECK(fixture.files->live_pages() == 0);
}

TEST_CASE("more entries than an instance shall have are kept, and it wants a rewrite") {
  BloomStoreFixture fixture({{"chain_length", 2}, {"buffered_filters", 1}});
  std::vector<FlashEntry> entries;
  for (uint64_t i = 0; i < 5 * kPerPage; ++i) entries.push_back(fixture.Entry(i));
  std::ranges::sort(entries, {}, &FlashEntry::hash);
  REQUIRE_OK(fixture.partition->Fill(entries));
  for (const uint64_t i : {5000, 5001}) fixture.partition->InsertReplayed(fixture.Entry(i));
  for (int i = 0; i < 2; ++i) {
    CHECK(fixture.partition->WantsRewrite());
    PagesRead read;
    fixture.CheckFinds(0, 5 * kPerPage, read);
    fixture.CheckVerifies();
    fixture.Reopen();
  }
}

TEST_CASE("a buffer takes more than a page from the log of puts, and writes all of it") {
  BloomStoreFixture fixture({});
  for (uint64_t i = 0; i < 2 * kPerPage + 5; ++i) {
    fixture.partition->InsertReplayed(fixture.Entry(i));
    fixture.partition->InsertReplayed(fixture.Entry(i));
  }
  CHECK(fixture.partition->buffered_entries() == 2 * kPerPage + 5);
  CHECK_FALSE(fixture.partition->Insert(fixture.Entry(5000)));
  CHECK(fixture.partition->Insert(fixture.Entry(2 * kPerPage + 3)));  // it has a place
  PagesRead read;
  fixture.CheckFinds(0, 2 * kPerPage + 5, read);
  CHECK(read.data == 0);
  REQUIRE_OK(fixture.partition->WriteBuffer());
  CHECK(fixture.files->live_pages(kDataLog) == 3);
  CHECK(fixture.partition->buffered_entries() == 0);
  CHECK(fixture.context->buffer_bytes == 0);
  fixture.CheckFinds(0, 2 * kPerPage + 5, read);
}

}  // namespace siltfs::testing
