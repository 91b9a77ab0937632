// Checks and repairs of stores whose deltas have lost their bases.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "fs/repair/repair_store.h"
#include "store/segment/memory_segment_store.h"
#include "store/segment/segment_files.h"
#include "tests/fs/core/delta_files.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

RepairReport Repair(DeltaFiles& store) {
  RepairOptions options;
  options.check.store = store.path;
  options.check.segments = SealedSegments(store.env);
  options.check.data = true;
  options.mode = RepairMode::kAll;
  const auto report = RepairStore(store.env, options);
  REQUIRE_OK(report);
  return *report;
}

// Requires that all files can be read, and have their bytes except for the lost ranges, which are
// zero. Returns the names of the files with lost ranges.
std::set<std::string> RequireRepaired(DeltaFiles& store, const RepairReport& report) {
  std::set<std::string> damaged;
  std::map<std::string, Bytes> expected = store.files;
  for (const LostContent& lost : report.lost) {
    std::string name = lost.path;
    while (name.starts_with('/')) name.erase(0, 1);
    damaged.insert(name);
    REQUIRE(expected.contains(name));
    const auto begin = expected[name].begin() + static_cast<ptrdiff_t>(lost.range.offset);
    std::fill(begin, begin + static_cast<ptrdiff_t>(lost.range.length), uint8_t{0});
  }
  for (const auto& [name, content] : expected) {
    INFO(name);
    const auto read = ReadFile(*store.fs, *Resolve(*store.fs, name));
    REQUIRE_OK(read);
    const bool same = *read == content;
    REQUIRE(same);
  }
  return damaged;
}

}  // namespace

TEST_CASE("a check finds the deltas whose base is damaged, and a repair drops them") {
  DeltaFiles store;
  store.Fill(6);
  store.End();
  REQUIRE(store.SpoilBase(3) == 1);
  const std::multiset<std::string> found = store.Check(/*data=*/true);
  CHECK(found.contains("delta-base"));
  CHECK(found.contains("block-payload"));
  CHECK(found.contains("chunk-damaged"));
  const RepairReport report = Repair(store);
  CHECK(report.left == 0);
  CHECK(store.Check(/*data=*/true).empty());
  store.Begin();
  const std::set<std::string> damaged = RequireRepaired(store, report);
  CHECK(damaged.contains(DeltaFiles::Name("base", 3)));
  CHECK(damaged.contains(DeltaFiles::Name("similar", 3)));
  CHECK(damaged.size() < store.files.size() / 2);
  // The store works on.
  store.WriteSimilar(3, 5);
  store.Collect();
  store.End();
  CHECK(store.Check(/*data=*/true).empty());
  store.Begin();
}

TEST_CASE("a check without payloads finds the deltas whose base is in no segment") {
  DeltaFiles store;
  store.Fill(6);
  for (uint64_t seed = 1; seed <= 6; ++seed) store.Delete(DeltaFiles::Name("base", seed));
  store.End();
  REQUIRE(store.Check(/*data=*/false).empty());
  // Remove the segment that most deltas need.
  std::map<SegmentId, size_t> needed;
  const auto stored = StoredNames::Open(store.env, store.path, SealedSegments(store.env));
  REQUIRE_OK(stored);
  std::set<ChunkName> bases;
  store.ForEachDelta(
      [&](SegmentId, const ChunkRecord&, const BaseRef& base) { bases.insert(base.name); });
  const auto index = store.OpenItsIndex();
  for (const ChunkName& name : bases) {
    const auto place = index->Get(name);
    REQUIRE_OK(place);
    REQUIRE(*place);
    ++needed[(*place)->segment];
  }
  REQUIRE_OK(index->Close());
  const SegmentId most =
      std::max_element(needed.begin(), needed.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  const auto segments = SegmentsOf(store.env, store.path);
  REQUIRE_OK(segments->Remove(most));
  const std::multiset<std::string> found = store.Check(/*data=*/false);
  CHECK(found.contains("segment-missing"));
  CHECK(found.contains("delta-base"));
  CHECK(found.contains("chunk-damaged"));

  const RepairReport report = Repair(store);
  CHECK(report.left == 0);
  CHECK(store.Check(/*data=*/true).empty());
  store.Begin();
  CHECK(!RequireRepaired(store, report).empty());
}

TEST_CASE("a check finds bases without an index, and a repair of the index changes no delta") {
  DeltaFiles store;
  store.Fill(6);
  store.End();
  const size_t deltas = store.CountDeltas();
  REQUIRE(store.Forget([](const ChunkName&) { return true; }) > 0);
  CHECK(!store.Check(/*data=*/true).contains("delta-base"));
  const RepairReport report = Repair(store);
  CHECK(report.lost.empty());
  CHECK(store.CountDeltas() == deltas);
  CHECK(store.Check(/*data=*/true).empty());
  store.Begin();
  store.RequireFiles(*store.fs);
}

TEST_CASE("a damaged footer of a segment with deltas is repaired with its base table") {
  DeltaFiles store;
  store.Fill(6);
  store.End();
  std::set<SegmentId> with_deltas;
  store.ForEachDelta(
      [&](SegmentId id, const ChunkRecord&, const BaseRef&) { with_deltas.insert(id); });
  REQUIRE(!with_deltas.empty());
  const SegmentId id = *with_deltas.begin();
  // A byte of the base table, which lies before the trailer of 64 bytes and its own checksum.
  ChangeSegment(store.env, store.path, id, [](std::string& all) { all[all.size() - 90] ^= 1; });
  CHECK(store.Check(/*data=*/true).contains("segment-footer"));
  // Garbage collection reads the bases from the blocks.
  if (GENERATE(true, false)) {
    store.Begin();
    for (uint64_t seed = 1; seed <= 6; ++seed) store.Delete(DeltaFiles::Name("base", seed));
    store.Collect();
    store.RequireFiles(*store.fs);
    store.End();
  }
  const RepairReport report = Repair(store);
  CHECK(report.left == 0);
  CHECK(report.lost.empty());
  CHECK(store.Check(/*data=*/true).empty());
  store.Begin();
  store.RequireFiles(*store.fs);
}

// Segments in memory, one of which has a range that the device cannot read.
class BadSector final : public SegmentStore {
 public:
  BadSector(SegmentStore& base, SegmentId id, uint64_t begin, uint64_t end)
      : base_(base), id_(id), begin_(begin), end_(end) {}

  const std::string& name() const override { return base_.name(); }
  std::string NameOf(SegmentId id) const override { return base_.NameOf(id); }
  std::optional<SegmentId> IdOf(std::string_view name) const override { return base_.IdOf(name); }
  Result<std::unique_ptr<const ReadableFile>> Open(SegmentId id) override {
    auto opened = base_.Open(id);
    if (!opened.ok() || id != id_) return opened;
    return std::unique_ptr<const ReadableFile>(
        std::make_unique<File>(*std::move(opened), begin_, end_));
  }
  uint64_t UnansweredReads() const override { return base_.UnansweredReads(); }
  Status Put(SegmentId id, const SegmentSource& source) override { return base_.Put(id, source); }
  Status Replace(SegmentId id, const SegmentSource& source) override {
    return base_.Replace(id, source);
  }
  Status Remove(SegmentId id) override { return base_.Remove(id); }
  Result<SegmentListing> List() override { return base_.List(); }
  Result<SegmentListing> Recover() override { return base_.Recover(); }

 private:
  class File final : public ReadableFile {
   public:
    File(std::unique_ptr<const ReadableFile> file, uint64_t begin, uint64_t end)
        : file_(std::move(file)), begin_(begin), end_(end) {}
    const std::string& path() const override { return file_->path(); }
    Result<size_t> Read(uint64_t offset, MutableByteView out) const override {
      if (offset < end_ && offset + out.size() > begin_)
        return Status(StatusCode::kIoError, "bad sector").At(path(), offset);
      return file_->Read(offset, out);
    }
    Result<uint64_t> Size() const override { return file_->Size(); }

   private:
    const std::unique_ptr<const ReadableFile> file_;
    const uint64_t begin_;
    const uint64_t end_;
  };

  SegmentStore& base_;
  const SegmentId id_;
  const uint64_t begin_;
  const uint64_t end_;
};

TEST_CASE("a repair removes nothing from files while the device fails below a base") {
  DeltaFiles store;
  store.Fill(6);
  for (uint64_t seed = 1; seed <= 6; ++seed) store.Delete(DeltaFiles::Name("base", seed));
  store.End();
  std::set<SegmentId> dependents;
  std::set<ChunkName> bases;
  store.ForEachDelta([&](SegmentId id, const ChunkRecord&, const BaseRef& base) {
    dependents.insert(id);
    bases.insert(base.name);
  });
  const auto segments = SegmentsOf(store.env, store.path);
  const auto superblock = ReadSuperblock(store.env, store.path);
  REQUIRE_OK(superblock);
  const auto listing = segments->List();
  REQUIRE_OK(listing);
  const BlockCodec codec;
  MemorySegmentStore memory;
  SegmentId failing = 0;
  uint64_t sector = 0;
  for (const SegmentId id : listing->ids) {
    const auto reader = SegmentReader::Open(*segments, {superblock->superblock.uuid, id}, codec);
    REQUIRE_OK(reader);
    const auto table = (*reader)->ScanBlockTable();
    for (const BlockPlace& place : table.ok() ? table->blocks : std::vector<BlockPlace>()) {
      const auto head = (*reader)->ReadBlockHead(place.block_offset);
      REQUIRE_OK(head);
      for (const ChunkRecord& record : head->records) {
        if (!bases.contains(record.name) || dependents.contains(id)) continue;
        failing = id;
        sector = place.block_offset + head->head_bytes() + 100;
      }
    }
    memory.SetContent(id, SegmentContent(store.env, store.path, id));
    REQUIRE_OK(store.env.RemoveFile(SegmentPath(store.path, id)));
  }
  REQUIRE(failing != 0);
  BadSector bad(memory, failing, sector, sector + 512);
  RepairOptions options;
  options.check.store = store.path;
  options.check.segments = &bad;
  options.check.data = true;
  options.mode = RepairMode::kAll;
  REQUIRE_CODE(RepairStore(store.env, options), kIoError);
  FileSystemOptions open;
  open.store = store.path;
  open.segments = &memory;
  const auto fs = FileSystem::Open(store.env, open);
  REQUIRE_OK(fs);
  for (const auto& [name, content] : store.files) {
    const auto file = Resolve(**fs, name);
    REQUIRE_OK(file);
    const auto read = ReadFile(**fs, *file);
    REQUIRE_OK(read);
    REQUIRE(*read == content);
  }
  REQUIRE_OK((*fs)->Close());
}

}  // namespace siltfs::testing
