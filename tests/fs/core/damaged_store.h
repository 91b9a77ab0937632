// A store of small segments on a simulated device, for damaging single blocks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fs/interface/file_system.h"
#include "fs/interface/stats.h"
#include "store/base/thread_annotations.h"
#include "store/env/sim_env.h"
#include "store/segment/block_head.h"
#include "tests/fs/core/recompression_store.h"
#include "tests/support/fault_env.h"

namespace siltfs::testing {

// A block as stored in a segment.
struct StoredBlock {
  SegmentId segment = kNoSegment;
  std::string path;
  uint32_t offset = 0;
  SegmentKind kind = SegmentKind::kData;
  BlockHead head;
  std::vector<Bytes> chunks;  // their uncompressed bytes

  bool Holds(ByteView chunk) const;
};

enum class Rot : uint8_t { kPayload, kHead };

// Calls a function at each read of a file, and another at each sync of one.
class WatchedEnv : public FaultEnv {
 public:
  using FaultEnv::FaultEnv;
  void Watch(std::function<void(const std::string& path)> on_read) SILTFS_EXCLUDES(watch_mutex_);
  void WatchSyncs(std::function<void(const std::string& path)> on_sync)
      SILTFS_EXCLUDES(watch_mutex_);
  Status Note(Call call, const std::string& path) const override;

 private:
  mutable Mutex watch_mutex_;
  std::function<void(const std::string&)> on_read_ SILTFS_GUARDED_BY(watch_mutex_);
  std::function<void(const std::string&)> on_sync_ SILTFS_GUARDED_BY(watch_mutex_);
};

class DamagedStore {
 public:
  DamagedStore() : DamagedStore(std::make_unique<SimEnv>()) {}

  SimEnv& env() { return env_; }
  WatchedEnv& watched() { return watched_; }
  FileSystem& fs() { return *fs_; }
  std::map<std::string, Bytes>& files() { return store_.files; }
  const std::string& path() const { return store_.path; }

  FileSystem& Open();
  void Close();
  // Returns when all segments that the writes have filled are sealed.
  void WaitUntilSealed();
  void Reopen() {
    Close();
    Open();
  }
  // Simulates a killed process and a power cut: uncommitted changes are lost.
  void Crash();

  // Writes a file, and adds it to files().
  InodeNumber Write(const std::string& name, Bytes content);
  InodeNumber WriteRandom(uint64_t seed, size_t size);
  void Delete(const std::string& name);
  void RequireFiles() { store_.RequireFiles(*fs_); }
  Result<Bytes> Read(const std::string& name);
  FileSystemStats Stats();

  // Blocks of sealed segments; the store must be closed.
  std::vector<StoredBlock> SealedBlocks();
  // The block that holds the first chunk of this file.
  StoredBlock BlockOf(const std::string& name);
  // Changes a byte of the block, durably.
  void Damage(const StoredBlock& block, Rot rot);
  void FlipByte(const std::string& path, uint64_t offset);

  // Findings reported since the last call.
  std::vector<std::string> TakeFindings() SILTFS_EXCLUDES(mutex_);

 private:
  explicit DamagedStore(std::unique_ptr<SimEnv> env);

  SimEnv& env_;
  WatchedEnv watched_;  // uses env_
  RecompressionStore store_;
  std::unique_ptr<FileSystem> fs_;
  Mutex mutex_;
  std::vector<std::string> findings_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs::testing
