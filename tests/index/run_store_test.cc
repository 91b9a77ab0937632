// Sorted runs: a LogStore's entries in order, with page boundaries and a filter; and their merge.
#include "index/silt/run_store.h"

#include "index/silt/entry_merge.h"
#include "index/silt/verify.h"
#include "store_maker.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kFirstAbsent = 10'000'000;

// Returns the store's entry of a number, found as a lookup finds it, and counts the pages read.
std::optional<SlotEntry> Find(const ConvertedStore& store, uint64_t number,
                              uint64_t* pages_read = nullptr) {
  const OrderKey key = StoreMaker::kNameHash.KeyOf(kChunkSlots, NameOf(number));
  const auto places = store.PlacesOf(key.hash);
  REQUIRE(places.are_pages);
  REQUIRE(places.candidates.size() <= 1);
  for (const uint32_t page : places.candidates) {
    if (pages_read != nullptr) ++*pages_read;
    REQUIRE(page < store.file().info().pages);
    alignas(kPageSize) std::array<uint8_t, kPageSize> bytes{};
    REQUIRE_OK(store.file().file().Read(uint64_t{page} * kPageSize, bytes));
    REQUIRE(store.file().MayBePage(page, bytes));
    if (auto entry = FindInPage(kChunkSlots, key, bytes)) return entry;
  }
  return std::nullopt;
}

std::vector<std::string> CodesOf(const std::shared_ptr<const ConvertedStore>& store,
                                 unsigned partition_bits = 0) {
  PartitionVersion version;
  version.hashes.push_back(store);
  std::vector<std::string> codes;
  REQUIRE_OK(VerifyPartition(version,
                             {.name_hash = {StoreMaker::kSecret}, .partition_bits = partition_bits},
                             [&](const IndexFinding& finding) { codes.push_back(finding.code); }));
  return codes;
}

// Writes a run of the entries with numbers below `count` in this order, with a payload that
// `change` may change, and opens it.
Result<std::shared_ptr<const ConvertedStore>> OpenWith(
    StoreMaker& maker, uint64_t count,
    const std::function<void(std::vector<SlotEntry>&, FrozenFileInfo&, Bytes&)>& change) {
  const auto made = maker.RunOf(NumberedEntries(0, count));
  auto payload = made->file().ReadPayload();
  REQUIRE_OK(payload);
  std::vector<SlotEntry> slots;
  FrozenFileScan scan(made->file());
  for (auto page = scan.Next(); page.ok() && page->has_value(); page = scan.Next()) {
    for (size_t i = 0; i < kChunkSlots.slots_per_page(); ++i) {
      slots.push_back(DecodeSlot(SlotOfPage(kChunkSlots, (*page)->bytes, i)));
    }
  }
  FrozenFileInfo info = made->file().info();
  change(slots, info, *payload);
  const StoreFileId id{StoreKind::kHash, 0, maker.next_id++};
  auto writer = FrozenFileWriter::Create(maker.env, "/", id, maker.throttle);
  REQUIRE_OK(writer);
  for (const SlotEntry& slot : slots) {
    REQUIRE_OK(IsHole(slot) ? (*writer)->AppendEmpty() : (*writer)->Append(slot));
  }
  REQUIRE_OK((*writer)->Finish(info, *payload));
  REQUIRE_OK((*writer)->Sync());
  return OpenConverted(maker.env, "/", id, 0, kChunkSlots);
}

}  // namespace

TEST_CASE("a sorted run has the newest entries of its log, in order, and its tombstones") {
  StoreMaker maker;
  maker.bucket_bits = GENERATE(1, 6, 9);
  const uint64_t count = (kBucketWays << maker.bucket_bits) * 3 / 4;
  auto entries = NumberedEntries(0, count);
  entries[2].location = {};
  const auto run = maker.RunOf(entries);
  CHECK(run->entries() == count);
  CHECK(run->Stats().entries == count - 1);
  CHECK(run->Stats().kind == "run_store");
  SortedCursor cursor(&run->file(), StoreMaker::kNameHash);
  REQUIRE_OK(cursor.Next());
  uint64_t last = 0;
  uint64_t listed = 0;
  for (; cursor.item(); ++listed) {
    REQUIRE(cursor.item()->key.hash > last);
    last = cursor.item()->key.hash;
    REQUIRE_OK(cursor.Next());
  }
  CHECK(listed == count);
  const auto bare = run->WithoutFilter();
  CHECK_FALSE(bare->has_filter());
  for (uint64_t i = 0; i < count; ++i) {
    for (const ConvertedStore* store :
         {static_cast<const ConvertedStore*>(run.get()), bare.get()}) {
      const auto found = Find(*store, i);
      REQUIRE(found.has_value());
      REQUIRE(found->location == entries[i].location);
    }
  }
  CHECK(IsTombstone(*Find(*run, 2)));
  CHECK(CodesOf(run).empty());
  const auto again = bare->WithFilter();
  REQUIRE_OK(again);
  CHECK(*std::static_pointer_cast<const RunStore>(*again)->filter() == *run->filter());
}

TEST_CASE("without its filter in memory a sorted run takes one read for any name") {
  StoreMaker maker;
  maker.bucket_bits = 9;
  const auto bare = maker.RunOf(NumberedEntries(0, 1500))->WithoutFilter();
  uint64_t reads = 0;
  for (uint64_t i = kFirstAbsent; i < kFirstAbsent + 200; ++i) {
    REQUIRE_FALSE(Find(*bare, i, &reads).has_value());
  }
  CHECK(reads == 200);
}

TEST_CASE("the runs of a partition together pass few absent names") {
  StoreMaker maker;
  maker.bucket_bits = 9;
  const double runs = GENERATE(1.0, 5.0, 38.0);
  const auto run = maker.RunOf(NumberedEntries(0, 1900), runs);
  constexpr uint64_t kAsked = 400'000;
  uint64_t passed = 0;
  for (uint64_t i = 0; i < kAsked; ++i) {
    passed += run->filter()->MayContain(NameHash{7}.Of(NameOf(kFirstAbsent + i))) ? 1 : 0;
  }
  CHECK(run->filter_bytes() == RunFilterMemory(run->filter()->memory_bytes()));
  CHECK(run->filter()->slices() == RunFilterSlices::For(runs, 1900).Of(maker.next_id - 1));
  const double expected = std::exp2(-static_cast<double>(run->filter()->slices()));
  const double share = static_cast<double>(passed) / kAsked;
  INFO(passed << " of " << kAsked << " pass " << run->filter()->slices() << " slices");
  CHECK(share < expected * 1.1 + 3 * std::sqrt(expected / kAsked));
  CHECK(share > expected * 0.9 - 3 * std::sqrt(expected / kAsked));
}

TEST_CASE("a log whose hashes are neighbours, or that has no entries, becomes a HashStore") {
  StoreMaker maker;
  maker.bucket_bits = 7;
  const StoreFileId id{StoreKind::kHash, 0, maker.next_id++};
  auto log = maker.Log({});
  auto written = ConvertLog(*log, maker.env, "/", id, maker.throttle, {.sorted_runs = true});
  REQUIRE_OK(written);
  REQUIRE_OK(written->file->Sync());
  auto store = OpenConverted(maker.env, "/", id, 0, kChunkSlots);
  REQUIRE_OK(store);
  CHECK_FALSE((*store)->sorted());
  // 300 neighbouring hashes, which no page has room for, and others that make the bins small.
  const StoreFileId log_id{StoreKind::kLog, 0, maker.next_id++};
  auto file = CreateStoreFile(maker.env, "/", log_id);
  REQUIRE_OK(file);
  LogStore crafted({.id = log_id.id, .bucket_bits = 7, .name_hash = {StoreMaker::kSecret}}, *file);
  for (uint64_t i = 0; i < 300; ++i) {
    SlotEntry entry(NumberedEntry(i));
    entry.hash = (uint64_t{5} << 40) + i;
    REQUIRE(crafted.Insert(entry.hash, entry, 0));
  }
  crafted.SealPage(0);
  REQUIRE_OK(crafted.WriteOut());
  crafted.DropWritten();
  const StoreFileId other{StoreKind::kHash, 0, maker.next_id++};
  written = ConvertLog(crafted, maker.env, "/", other, maker.throttle, {.sorted_runs = true});
  REQUIRE_OK(written);
  REQUIRE_OK(written->file->Sync());
  store = OpenConverted(maker.env, "/", other, 0, kChunkSlots);
  REQUIRE_OK(store);
  CHECK_FALSE((*store)->sorted());
  CHECK((*store)->entries() == 300);
}

TEST_CASE("damage of any byte of a sorted run is reported and never hides behind an answer") {
  StoreMaker maker;
  maker.bucket_bits = 7;
  const auto run = maker.RunOf(NumberedEntries(0, 450));
  const std::string path = maker.PathOf(run->file_id());
  const uint64_t size = run->file().size();
  const uint64_t pages = uint64_t{run->file().info().pages} * kPageSize;
  Encoder bounds;
  run->bounds().Encode(bounds);
  // A lookup uses the boundaries without the filter, so opening verifies them.
  const uint64_t verified_at_opening = size - 80 - 16 - bounds.view().size();
  const uint64_t step = GENERATE(1U, 2U, 3U);  // different bytes of the pages
  for (uint64_t at = step; at < size; at += at < pages ? 509 : 1) {
    INFO("byte " << at << " of " << size);
    FlipByte(maker.env, path, at);
    auto opened = OpenConverted(maker.env, "/", run->file_id(), 0, kChunkSlots);
    if (!opened.ok()) {
      REQUIRE(at >= verified_at_opening);
      REQUIRE_CODE(opened, kCorruption);
      REQUIRE(opened.status().path() == path);
    } else {
      REQUIRE(at < verified_at_opening);
      const auto filtered = (*opened)->WithFilter();
      const auto codes = CodesOf(*opened);
      REQUIRE_FALSE(codes.empty());
      if (at < pages) {
        REQUIRE_OK(filtered);
        REQUIRE(codes == std::vector<std::string>{"page-checksum"});
      } else {
        REQUIRE_CODE(filtered, kCorruption);
        REQUIRE(filtered.status().path() == path);
        REQUIRE(codes.front() == "store-index");
      }
    }
    FlipByte(maker.env, path, at);
  }
  CHECK(CodesOf(run).empty());
}

TEST_CASE("a sorted run that is cut short is refused") {
  StoreMaker maker;
  const auto run = maker.RunOf(NumberedEntries(0, 150));
  const std::string path = maker.PathOf(run->file_id());
  auto file = maker.env.OpenFile(path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  for (uint64_t size = run->file().size(); size-- > 0; size -= std::min<uint64_t>(size, 37)) {
    REQUIRE_OK((*file)->Truncate(size));
    REQUIRE_CODE(OpenConverted(maker.env, "/", run->file_id(), 0, kChunkSlots), kCorruption);
  }
}

TEST_CASE("a crafted sorted run is refused, or verification reports it") {
  StoreMaker maker;
  maker.bucket_bits = 8;
  using Slots = std::vector<SlotEntry>;
  REQUIRE_OK(OpenWith(maker, 600, [](Slots&, FrozenFileInfo&, Bytes&) {}));
  const auto refused = [&](const auto& change) {
    REQUIRE_CODE(OpenWith(maker, 600, change), kCorruption);
  };
  refused([](Slots&, FrozenFileInfo& info, Bytes&) { info.bucket_bits = 4; });
  refused([](Slots&, FrozenFileInfo& info, Bytes&) { info.entries = 1; });
  refused([](Slots&, FrozenFileInfo& info, Bytes&) { info.entries = info.tombstones = 0; });
  refused([](Slots&, FrozenFileInfo& info, Bytes&) { info.has_filter = true; });
  refused([](Slots&, FrozenFileInfo&, Bytes& payload) { payload.resize(15); });
  refused([](Slots&, FrozenFileInfo&, Bytes& payload) { payload.clear(); });
  refused([](Slots&, FrozenFileInfo&, Bytes& payload) { payload[payload.size() - 16] = 255; });
  refused([](Slots&, FrozenFileInfo&, Bytes& payload) { payload.resize(1U << 20); });
  refused(
      [](Slots& slots, FrozenFileInfo&, Bytes&) { slots.resize(kChunkSlots.slots_per_page()); });
  const auto with_starts = [&](std::initializer_list<uint64_t> starts, unsigned skip_bits) {
    return OpenWith(maker, 600, [&](Slots& slots, FrozenFileInfo&, Bytes& payload) {
      REQUIRE(slots.size() == 3 * kChunkSlots.slots_per_page());
      PageBoundsBuilder builder({.skip_bits = skip_bits, .count = 600}, 204);
      for (const uint64_t start : starts) builder.AddPage(start);
      Encoder out;
      builder.Finish().Encode(out);
      out.U32(static_cast<uint32_t>(out.view().size())).U32(0);
      out.U64(Checksum(out.view()));
      payload.insert(payload.end(), out.view().begin(), out.view().end());
    });
  };
  REQUIRE_OK(with_starts({0, 200, 400}, 0));
  REQUIRE_CODE(with_starts({0, 200, 400}, 1), kCorruption);  // of another partition
  REQUIRE_CODE(with_starts({0, 200, 400, 500}, 0), kCorruption);
  REQUIRE_CODE(with_starts({0, 0, 400}, 0), kCorruption);  // a bin in two pages
  REQUIRE_CODE(with_starts({0, 200, 200}, 0), kCorruption);
  // The filter is read only when it is loaded.
  for (const size_t at : {0, 1, 2, 4, 8, 12}) {
    const auto store =
        OpenWith(maker, 600, [&](Slots&, FrozenFileInfo&, Bytes& payload) { payload[at] ^= 0x81; });
    REQUIRE_OK(store);
    REQUIRE_CODE((*store)->WithFilter(), kCorruption);
  }
  const auto swapped = OpenWith(
      maker, 600, [](Slots& slots, FrozenFileInfo&, Bytes&) { std::swap(slots[3], slots[4]); });
  REQUIRE_OK(swapped);
  CHECK(CodesOf(*swapped) == std::vector<std::string>{"entry-order"});
  const auto moved = OpenWith(maker, 600, [](Slots& slots, FrozenFileInfo&, Bytes&) {
    std::swap(slots[3], slots[kChunkSlots.slots_per_page() + 3]);
  });
  REQUIRE_OK(moved);
  const auto codes = CodesOf(*moved);
  CHECK(std::count(codes.begin(), codes.end(), "entry-place") == 2);
  REQUIRE_CODE(OpenConverted(maker.env, "/", (*moved)->file_id(), 1, kChunkSlots), kCorruption);
}

TEST_CASE("a merge of runs out of order stays in order and counts the damage") {
  StoreMaker maker;
  maker.bucket_bits = 8;
  PartitionVersion version;
  const auto crafted =
      OpenWith(maker, 600, [](std::vector<SlotEntry>& slots, FrozenFileInfo&, Bytes&) {
        std::swap(slots[3], slots[4]);
      });
  REQUIRE_OK(crafted);
  version.hashes = {*crafted, maker.RunOf(NumberedEntries(600, 300))};
  EntryMerge merge(version, {.name_hash = {StoreMaker::kSecret}});
  std::optional<OrderKey> last;
  uint64_t entries = 0;
  REQUIRE_OK(merge.Run([&](const OrderKey& key, const SlotEntry&) {
    if (last) REQUIRE(*last < key);
    last = key;
    ++entries;
    return Status::Ok();
  }));
  CHECK(entries == 899);
  CHECK(merge.damaged_pages() == 1);
}

TEST_CASE("a merge reads each run once, with bounded memory, and the newest entry wins") {
  StoreMaker maker;
  maker.bucket_bits = 8;
  constexpr uint64_t kRuns = 12;
  PartitionVersion version;
  version.sorted = maker.Sorted(NumberedEntries(0, 3000));
  std::map<uint64_t, std::optional<Location>> expected;
  for (uint64_t i = 0; i < 3000; ++i) expected[i] = NumberedEntry(i).location;
  const bool mixed = GENERATE(false, true);  // with HashStores between the runs, and a log
  for (uint64_t r = 0; r < kRuns; ++r) {
    auto entries = NumberedEntries(r * 150, 700, static_cast<uint32_t>(r + 1));
    for (size_t k = r; k < entries.size(); k += 9) entries[k].location = {};
    for (uint64_t i = 0; i < entries.size(); ++i) {
      const bool gone = IsTombstone(entries[i]);
      expected[r * 150 + i] = gone ? std::nullopt : std::optional(entries[i].location);
    }
    if (mixed && r % 3 == 1) {
      version.hashes.push_back(maker.HashStoreOf(entries));
    } else {
      version.hashes.push_back(maker.RunOf(entries));
    }
  }
  if (mixed) {
    version.logs.push_back(maker.Log(NumberedEntries(100, 500, 99)));
    for (uint64_t i = 100; i < 600; ++i) expected[i] = NumberedEntry(i, 99).location;
  }
  std::erase_if(expected, [](const auto& item) { return !item.second; });
  const size_t memory = GENERATE(24'000U, 200'000U, 4U << 20);
  const uint64_t reads_before = maker.env.Calls(SimCall::kRead);
  EntryMerge merge(version, {.name_hash = {StoreMaker::kSecret}, .sort_memory_bytes = memory});
  std::map<uint64_t, std::optional<Location>> found;
  std::optional<OrderKey> last;
  REQUIRE_OK(merge.Run([&](const OrderKey& key, const SlotEntry& entry) {
    if (last) REQUIRE(*last < key);
    last = key;
    found[entry.location.segment - 1] = entry.location;
    return Status::Ok();
  }));
  CHECK(found == expected);
  CHECK(merge.damaged_pages() == 0);
  // With little memory the number of entries in a pass varies much.
  CHECK(merge.sort_memory_bytes() <= (memory > 100'000 ? memory : 2 * memory));
  if (mixed || memory < 200'000U) return;
  // Cursors read four pages at a time, and the SortedStore has fewer than kFrozenBatchPages.
  uint64_t reads = 1;
  for (const auto& run : version.hashes) reads += (run->file().info().pages + 3) / 4;
  CHECK(maker.env.Calls(SimCall::kRead) - reads_before == reads);
}

}  // namespace siltfs::testing
