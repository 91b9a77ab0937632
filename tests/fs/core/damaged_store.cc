#include "tests/fs/core/damaged_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fs/interface/store_maintenance.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_scan.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {

bool StoredBlock::Holds(ByteView chunk) const {
  return std::any_of(chunks.begin(), chunks.end(), [&](const Bytes& bytes) {
    return std::equal(bytes.begin(), bytes.end(), chunk.begin(), chunk.end());
  });
}

void WatchedEnv::Watch(std::function<void(const std::string& path)> on_read) {
  MutexLock lock(watch_mutex_);
  on_read_ = std::move(on_read);
}

void WatchedEnv::WatchSyncs(std::function<void(const std::string& path)> on_sync) {
  MutexLock lock(watch_mutex_);
  on_sync_ = std::move(on_sync);
}

Status WatchedEnv::Note(Call call, const std::string& path) const {
  std::function<void(const std::string&)> watcher;
  {
    MutexLock lock(watch_mutex_);
    if (call == Call::kRead) watcher = on_read_;
    if (call == Call::kSync) watcher = on_sync_;
  }
  if (watcher) watcher(path);
  return FaultEnv::Note(call, path);
}

DamagedStore::DamagedStore(std::unique_ptr<SimEnv> env)
    : env_(*env), watched_(std::move(env)), store_(watched_, "/store") {}

FileSystem& DamagedStore::Open() {
  FileSystemOptions options;
  options.store = path();
  options.segments = SealedSegments(watched_);
  options.commit_interval = std::chrono::hours(1);
  options.report = [this](const std::string& finding) {
    MutexLock lock(mutex_);
    findings_.push_back(finding);
  };
  auto opened = FileSystem::Open(watched_, options);
  REQUIRE_OK(opened);
  fs_ = std::move(opened).value();
  return *fs_;
}

void DamagedStore::Close() {
  REQUIRE_OK(fs_->Close());
  fs_.reset();
}

void DamagedStore::WaitUntilSealed() {
  // A dry run of GC waits until all segments that are full are sealed.
  REQUIRE_OK(fs_->maintenance().CollectGarbage(/*dry_run=*/true));
}

void DamagedStore::Crash() {
  fs_.reset();
  env_.PowerCut({});
}

InodeNumber DamagedStore::Write(const std::string& name, Bytes content) {
  const InodeNumber inode = WriteLargeFile(*fs_, name, content);
  files()[name] = std::move(content);
  return inode;
}

InodeNumber DamagedStore::WriteRandom(uint64_t seed, size_t size) {
  return Write(fmt::format("random {}", seed), RandomBytes(seed, size));
}

void DamagedStore::Delete(const std::string& name) {
  REQUIRE_OK(fs_->Unlink(kRootInode, name));
  files().erase(name);
}

Result<Bytes> DamagedStore::Read(const std::string& name) {
  const auto inode = Resolve(*fs_, name);
  REQUIRE_OK(inode);
  return ReadFile(*fs_, *inode);
}

FileSystemStats DamagedStore::Stats() {
  auto stats = fs_->maintenance().GetStats();
  REQUIRE_OK(stats);
  return *stats;
}

std::vector<StoredBlock> DamagedStore::SealedBlocks() {
  const auto state = ReadSuperblock(env_, path());
  REQUIRE_OK(state);
  const auto segments = SegmentsOf(env_, path());
  const auto listing = segments->List();
  REQUIRE_OK(listing);
  const BlockCodec codec;
  std::vector<StoredBlock> blocks;
  for (const SegmentId id : listing->ids) {
    const SegmentIdentity identity{state->superblock.uuid, id};
    const auto reader = SegmentReader::Open(*segments, identity, codec);
    REQUIRE_OK(reader);
    const auto footer = (*reader)->ReadFooter();
    if (!footer.ok()) continue;
    for (const BlockPlace& place : footer->blocks) {
      const auto block = (*reader)->ReadBlock(place.block_offset);
      if (!block.ok()) continue;  // the block was damaged before
      StoredBlock stored{
          id, (*reader)->path(), place.block_offset, footer->trailer.kind, (*block)->head(), {}};
      for (size_t i = 0; i < (*block)->chunk_count(); ++i) {
        const ByteView chunk = (*block)->chunk(i);
        stored.chunks.emplace_back(chunk.begin(), chunk.end());
      }
      blocks.push_back(std::move(stored));
    }
  }
  return blocks;
}

StoredBlock DamagedStore::BlockOf(const std::string& name) {
  const Bytes& content = files().at(name);
  for (StoredBlock& block : SealedBlocks()) {
    const bool begins =
        std::any_of(block.chunks.begin(), block.chunks.end(), [&](const Bytes& chunk) {
          return chunk.size() <= content.size() &&
                 std::equal(chunk.begin(), chunk.end(), content.begin());
        });
    if (begins) return std::move(block);
  }
  FAIL("no sealed segment holds the beginning of " << name);
  return {};
}

void DamagedStore::FlipByte(const std::string& file_path, uint64_t offset) {
  FlipStoredByte(env_, file_path, offset);
}

void DamagedStore::Damage(const StoredBlock& block, Rot rot) {
  const uint32_t head = block.head.head_bytes();
  FlipByte(block.path,
           block.offset + (rot == Rot::kHead ? 20 : head + block.head.payload_bytes / 2));
}

std::vector<std::string> DamagedStore::TakeFindings() {
  MutexLock lock(mutex_);
  return std::exchange(findings_, {});
}

}  // namespace siltfs::testing
