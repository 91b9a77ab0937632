// Verification finds faults that no checksum shows. The pages of these stores are as they were
// written, but they were written with wrong contents.
#include "index/silt/verify.h"

#include <algorithm>

#include "store_maker.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

std::vector<std::string> Codes(const PartitionVersion& version) {
  std::vector<std::string> codes;
  REQUIRE_OK(VerifyPartition(version, {.name_hash = {StoreMaker::kSecret}},
                             [&](const IndexFinding& finding) { codes.push_back(finding.code); }));
  return codes;
}

bool Has(const std::vector<std::string>& codes, const std::string& code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

// Rewrites the store's file with slots modified by `change`; footer and payload are kept.
template <typename Store>
void Rewrite(StoreMaker& maker, const Store& store, FrozenFileInfo info,
             const std::function<void(std::vector<SlotEntry>&)>& change) {
  std::vector<SlotEntry> slots;
  FrozenFileScan scan(store.file());
  for (;;) {
    auto page = scan.Next();
    REQUIRE_OK(page);
    if (!*page) break;
    for (size_t i = 0; i < kChunkSlots.slots_per_page(); ++i) {
      slots.push_back(DecodeSlot(SlotOfPage(kChunkSlots, (*page)->bytes, i)));
    }
  }
  auto payload = store.file().ReadPayload();
  REQUIRE_OK(payload);
  change(slots);
  auto writer = FrozenFileWriter::Create(maker.env, "/", info.file, maker.throttle);
  REQUIRE_OK(writer);
  for (const SlotEntry& entry : slots) REQUIRE_OK((*writer)->Append(entry));
  REQUIRE_OK((*writer)->Finish(info, *payload));
  REQUIRE_OK((*writer)->Sync());
}

std::vector<std::string> CodesOfHash(
    const std::function<void(std::vector<SlotEntry>&, FrozenFileInfo&)>& change) {
  StoreMaker maker;
  const auto store = maker.HashStoreOf(NumberedEntries(0, 200));
  FrozenFileInfo info = store->file().info();
  Rewrite(maker, *store, info, [&](std::vector<SlotEntry>& slots) { change(slots, info); });
  auto again = HashStore::Open(maker.env, "/", store->file_id());
  REQUIRE_OK(again);
  PartitionVersion version;
  version.hashes.push_back(*again);
  return Codes(version);
}

std::vector<std::string> CodesOfSorted(const std::function<void(std::vector<SlotEntry>&)>& change) {
  StoreMaker maker;
  maker.page_index = PageIndexKind::kTrie;  // so that all pages but the last are full
  const auto store = maker.Sorted(NumberedEntries(0, 204 * 5));
  Rewrite(maker, *store, store->file().info(), change);
  auto again = SortedStore::Open(maker.env, "/", store->file_id(), 0);
  REQUIRE_OK(again);
  PartitionVersion version;
  version.sorted = *again;
  return Codes(version);
}

}  // namespace

TEST_CASE("verification reports nothing for correct stores") {
  CHECK(CodesOfHash([](auto&, auto&) {}).empty());
  CHECK(CodesOfSorted([](auto&) {}).empty());
}

TEST_CASE("verification finds an entry of a HashStore that its filter does not lead to") {
  const auto codes = CodesOfHash([](std::vector<SlotEntry>& slots, FrozenFileInfo&) {
    // Moves an entry into another bucket's place.
    const auto used = [](const SlotEntry& entry) { return !IsHole(entry); };
    const auto first = std::find_if(slots.begin(), slots.end(), used);
    const auto other = std::find_if(first + 16, slots.end(), used);
    REQUIRE(other != slots.end());
    std::swap(*first, *other);
  });
  CHECK(codes == std::vector<std::string>{"entry-place", "entry-place"});
}

TEST_CASE("verification finds that an entry of a HashStore is missing") {
  const auto codes = CodesOfHash([](std::vector<SlotEntry>& slots, FrozenFileInfo&) {
    *std::find_if(slots.begin(), slots.end(),
                  [](const SlotEntry& entry) { return !IsHole(entry); }) = {};
  });
  CHECK(codes == std::vector<std::string>{"entry-count"});
}

TEST_CASE("verification finds entries of a SortedStore that are out of order") {
  // Swaps two entries within a page; lookups still find them.
  const auto codes =
      CodesOfSorted([](std::vector<SlotEntry>& slots) { std::swap(slots[210], slots[211]); });
  // The filter is also reported, because its fingerprint does not match the rewritten store.
  CHECK(codes == std::vector<std::string>{"store-index", "entry-order"});
}

TEST_CASE(
    "verification finds an entry of a SortedStore in a page that its index does not lead to") {
  const auto codes =
      CodesOfSorted([](std::vector<SlotEntry>& slots) { std::swap(slots[203], slots[204]); });
  CHECK(Has(codes, "entry-place"));
  CHECK(Has(codes, "entry-order"));
}

TEST_CASE("verification finds an entry that belongs to another partition") {
  StoreMaker maker;
  PartitionVersion version;
  version.logs.push_back(maker.Log(NumberedEntries(0, 10)));
  uint64_t findings = 0;
  REQUIRE_OK(VerifyPartition(
      version, {.name_hash = {StoreMaker::kSecret}, .partition_bits = 1, .partition = 1},
      [&](const IndexFinding& finding) { findings += finding.code == "entry-partition" ? 1 : 0; }));
  uint64_t elsewhere = 0;
  for (uint64_t i = 0; i < 10; ++i) elsewhere += PartitionOf(maker.Hash(i), 1) == 0 ? 1 : 0;
  REQUIRE(elsewhere > 0);
  CHECK(findings == elsewhere);
}

}  // namespace siltfs::testing
