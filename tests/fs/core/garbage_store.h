// A store with dead chunks for the tests of garbage collection, and an Env that can call a hook in
// the middle of a collection. Not thread-safe.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <set>
#include <utility>

#include "fs/check/check_store.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_stats.h"
#include "fs/open/stored_names.h"
#include "fs/records/garbage_record.h"
#include "fs/records/schema.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "fs/segments/segment_tables.h"
#include "index/open_index.h"
#include "store/base/random.h"
#include "store/env/posix_env.h"
#include "tests/fs/core/recompression_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {

// Calls a hook before a file is first read, and another before copies. Draws the same random bytes
// in each run, so that files are cut at the same places.
class HookedEnv final : public FaultEnv {
 public:
  using FaultEnv::FaultEnv;

  Status FillRandom(MutableByteView out) override {
    MutexLock lock(mutex_);
    random_.Fill(out);
    return Status::Ok();
  }

  // Called once when the room on the disk is asked for. A collection does this before it copies
  // chunks, when the live chunks of its victims are marked.
  std::function<void()> before_copying;
  Result<DiskSpace> GetDiskSpace(const std::string& file) override {
    if (before_copying) std::exchange(before_copying, nullptr)();
    return FaultEnv::GetDiskSpace(file);
  }
  void BeforeRead(std::string part, std::function<void()> hook) {
    part_ = std::move(part);
    hook_ = std::move(hook);
  }
  Status Note(Call call, const std::string& file) const override {
    if (call == Call::kRead && hook_ && file.find(part_) != std::string::npos)
      std::exchange(hook_, nullptr)();
    return FaultEnv::Note(call, file);
  }

 private:
  Mutex mutex_;
  Random random_ SILTFS_GUARDED_BY(mutex_){1};
  std::string part_;
  mutable std::function<void()> hook_;
};

struct GarbageStore : TemporaryDirectory, RecompressionStore {
  using RecompressionStore::path;

  explicit GarbageStore(uint32_t segment_bytes = 64u << 10)
      : GarbageStore(std::make_unique<HookedEnv>(NewPosixEnv()), segment_bytes) {}

  FileSystem& Begin() {
    auto opened = Open(env);
    REQUIRE_OK(opened);
    fs = std::move(opened).value();
    return *fs;
  }
  void End() {
    REQUIRE_OK(fs->Close());
    fs.reset();
  }
  void Delete(const std::string& name) {
    REQUIRE_OK(fs->Unlink(kRootInode, name));
    files.erase(name);
  }
  GarbageReport Collect(bool dry_run = false) {
    auto report = fs->maintenance().CollectGarbage(dry_run);
    REQUIRE_OK(report);
    return *report;
  }
  // Seals all segments, and removes dead chunks. Returns what is then left. In small segments,
  // nearly always one dead chunk makes a segment worth collecting.
  GarbageReport SealAndCollect() {
    GarbageReport left;
    for (int round = 0; round < 3; ++round) {
      REQUIRE_OK(fs->SyncAll());
      fs.reset();
      Begin();
      left = Collect();
    }
    return left;
  }
  FileSystemStats Stats() {
    auto stats = fs->maintenance().GetStats();
    REQUIRE_OK(stats);
    return *stats;
  }
  // Writes random bytes: there are no duplicates.
  void WriteRandom(uint64_t seed, size_t size) {
    const std::string name = fmt::format("random {}", seed);
    files[name] = RandomBytes(seed, size);
    WriteLargeFile(*fs, name, files[name]);
  }
  // Requires that all files are intact in this mount and in the next one, and that fsck finds
  // nothing in between.
  void RequireAll() {
    RequireFiles(*fs);
    End();
    RequireSound(env);
    RequireStatistics(env);
    Begin();
    RequireFiles(*fs);
  }
  // The garbage record of a closed store.
  GarbageRecord Known() const {
    KvStoreOptions options;
    options.path = MetadataPath(path);
    options.ledger_path = LedgerPath(path);
    options.mode = KvStoreOptions::Mode::kReadOnly;
    auto kv = OpenRocksDbStore(env, options);
    REQUIRE_OK(kv);
    const auto value = (*kv)->Get(kGarbageKey);
    REQUIRE_OK(value);
    REQUIRE(value->has_value());
    const auto record = GarbageRecord::Decode(**value);
    REQUIRE_OK(record);
    return *record;
  }
  // Makes a segment of a closed store a noted segment.
  void NoteSegment(SegmentId segment) const {
    KvStoreOptions options;
    options.path = MetadataPath(path);
    options.ledger_path = LedgerPath(path);
    auto kv = OpenRocksDbStore(env, options);
    REQUIRE_OK(kv);
    REQUIRE_OK((*kv)->Write({{SecondaryKey(segment), std::string(kPlainNote)}}));
    REQUIRE_OK((*kv)->CloseCleanly());
  }
  // The segments that a closed store has noted for secondary copies.
  std::vector<SegmentId> Noted() const {
    KvStoreOptions options;
    options.path = MetadataPath(path);
    options.ledger_path = LedgerPath(path);
    options.mode = KvStoreOptions::Mode::kReadOnly;
    auto kv = OpenRocksDbStore(env, options);
    REQUIRE_OK(kv);
    const auto noted = ReadSecondary(*(*kv)->Snapshot());
    REQUIRE_OK(noted);
    return *noted;
  }
  std::unique_ptr<ChunkIndex> OpenItsIndex() const {
    auto index = OpenIndex(env, {.engine = IndexEngine::kSilt,
                                 .directory = IndexPath(path),
                                 .memory_limit = uint64_t{64} << 20});
    REQUIRE_OK(index);
    return std::move(index).value();
  }
  // The names in the index of a closed store.
  std::set<ChunkName> Indexed() const {
    std::set<ChunkName> names;
    const auto stored = StoredNames::Open(env, path, SealedSegments(env));
    REQUIRE_OK(stored);
    const auto index = OpenItsIndex();
    REQUIRE_OK(index->ForEach([&](const OrderedEntry& entry) -> Status {
      SILTFS_ASSIGN_OR_RETURN(const auto name, (*stored)->NameAt(entry.location));
      if (name) names.insert(*name);
      return Status::Ok();
    }));
    REQUIRE_OK(index->Close());
    return names;
  }
  // Deletes the entries for which `chosen` is true from the index; returns their number.
  uint64_t Forget(const std::function<bool(const ChunkName&)>& chosen) const {
    std::set<ChunkName> names = Indexed();
    std::erase_if(names, [&](const ChunkName& name) { return !chosen(name); });
    const auto index = OpenItsIndex();
    for (const ChunkName& name : names) REQUIRE_OK(index->Delete(name));
    REQUIRE_OK(index->Close());
    return names.size();
  }
  // The codes of the findings of fsck. This check does not read payloads.
  std::set<std::string> Findings(bool copies = true) const {
    std::set<std::string> codes;
    CheckOptions options;
    options.store = path;
    options.segments = SealedSegments(env);
    options.copies = copies;
    options.on_finding = [&codes](const Finding& finding) { codes.insert(finding.code); };
    REQUIRE_OK(CheckStore(env, options));
    return codes;
  }
  static constexpr uint32_t kLargeSegment = 256u << 10;
  struct LeftBehind {
    Bytes kept;
    Bytes spoilt;
    Bytes others;
  };
  // Needs a store made with kLargeSegment. Writes files "kept" and "spoilt". A collection copies
  // the chunks of "kept" and then meets the damage of "spoilt". So both copies of "kept" stay, each
  // in a sealed segment.
  LeftBehind LeaveCopyBehind() {
    Begin();
    // "kept" is larger than a block, so the collection appends some of it before it meets the
    // damage.
    LeftBehind content{RandomBytes(1, 40'000), RandomBytes(3, 40'000),
                       RandomBytes(4, 2 * kLargeSegment)};
    WriteLargeFile(*fs, "kept", content.kept);
    // "dead" is larger than the largest block, so no block has parts of both "kept" and "spoilt".
    WriteLargeFile(*fs, "dead", RandomBytes(2, 100'000));
    WriteLargeFile(*fs, "spoilt", content.spoilt);
    WriteLargeFile(*fs, "others", content.others);
    End();
    Spoil(1, ByteView(content.spoilt).subspan(15'000, 40));
    Begin();
    REQUIRE_OK(fs->Unlink(kRootInode, "dead"));
    CHECK(Collect().segments_left == 1);
    REQUIRE_OK(fs->SyncAll());
    fs.reset();  // the next mount seals the segment with the copies
    Begin();
    return content;
  }
  // Changes a byte of `content`, which the segment stores uncompressed.
  void Spoil(SegmentId segment, ByteView content) {
    ChangeSegment(env, path, segment, [content](std::string& all) {
      const size_t place = all.find(AsText(content));
      REQUIRE(place != std::string::npos);
      all[place] ^= 1;
    });
  }
  uint64_t StoredWhenNew() const {
    GarbageStore fresh;
    fresh.Begin();
    for (const auto& [name, content] : files) WriteLargeFile(*fresh.fs, name, content);
    fresh.End();
    return ReadStoreStats(fresh.env, fresh.path)->stored_bytes;
  }

 private:
  GarbageStore(std::unique_ptr<HookedEnv> made, uint32_t segment_bytes)
      : RecompressionStore(*made, *static_cast<TemporaryDirectory*>(this) / "store", segment_bytes),
        fault_env(std::move(made)) {}

 public:
  std::unique_ptr<HookedEnv> fault_env;
  std::unique_ptr<FileSystem> fs;
};

}  // namespace siltfs::testing
