// A machine with a whole store, whose segments and commits go to a bucket, and a model of its
// files.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/interface/file_system.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/make_store.h"
#include "fs/shipping/bucket_session.h"
#include "fs/shipping/restore_store.h"
#include "store/base/random.h"
#include "store/env/sim_env.h"
#include "store/object/memory_object_store.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

// Recompresses with 0, collects garbage with 1, and does nothing otherwise.
inline Status Maintain(FileSystem& fs, uint64_t choice) {
  if (choice == 0) return fs.maintenance().Recompress().status();
  if (choice == 1) return fs.maintenance().CollectGarbage(false).status();
  return Status::Ok();
}

// The files in the root directory: the seed and the size of each content.
using Files = std::map<std::string, std::pair<uint64_t, size_t>>;

class Site {
 public:
  Site(MemoryObjectStore& objects, uint8_t number) : objects_(objects) {
    shipping.writer.id[0] = number;
    shipping.writer.host = fmt::format("host{}", number);
    shipping.background = false;
  }
  ~Site() { Crash(); }
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  void Make(uint32_t segment_bytes = 64u << 10) {
    MakeStoreOptions options;
    options.path = "/store";
    options.index_memory = 1u << 20;
    REQUIRE_OK(MakeStore(*env, options));
    auto state = ReadSuperblock(*env, "/store");
    REQUIRE_OK(state);
    state->superblock.segment_bytes = segment_bytes;
    REQUIRE_OK(WriteSuperblock(*env, "/store", state->superblock));
    REQUIRE_OK(env->CreateDirectory("/cache"));
    REQUIRE_OK(env->SyncDirectory("/"));
  }

  BucketOptions Bucket() const {
    BucketOptions bucket;
    bucket.directory = "/cache";
    bucket.upload_threads = shipping.background ? 2 : 0;
    bucket.fetch_threads = 0;
    bucket.bucket_timeout = std::chrono::nanoseconds(0);
    bucket.room_timeout = std::chrono::nanoseconds(0);
    return bucket;
  }

  Status Open() {
    Crash();
    BucketSessionOptions options{"/store", shipping, Bucket(), std::chrono::seconds(1)};
    session = std::make_unique<BucketSession>(*env, objects_, options);
    FileSystemOptions open;
    open.store = "/store";
    open.segments = &session->segments();
    open.metadata_layer = [this](std::unique_ptr<KvStore> kv) {
      return session->Layer(std::move(kv));
    };
    open.commit_interval = std::chrono::hours(1);
    open.worker_threads = 1;
    open.readahead_threads = 0;
    auto opened = FileSystem::Open(*env, std::move(open));
    SILTFS_RETURN_IF_ERROR(opened.status());
    fs = std::move(opened).value();
    return Status::Ok();
  }
  void Crash() {
    fs = nullptr;
    session = nullptr;
  }
  void Close() {
    REQUIRE_OK(fs->Close());
    Crash();
  }
  Status Ship() { return session->shipper().Ship(); }
  MemoryObjectStore& objects() { return objects_; }

  // Begins with an empty disk, and restores the store to it.
  Result<RestoredState> Restore(RestoreOptions restore = {}) {
    Crash();
    env = std::make_unique<SimEnv>(++disks_);
    return RestoreHere(std::move(restore));
  }
  Result<RestoredState> RestoreHere(RestoreOptions restore = {}) {
    return RestoreStore(*env, objects_, {"/store", "/cache", std::move(restore)});
  }

  // fsck with all data; the store must be closed.
  void Check() {
    BucketSegmentStore segments(*env, objects_, Bucket());
    std::string findings;
    CheckOptions options;
    options.store = "/store";
    options.segments = &segments;
    options.data = true;
    options.on_finding = [&](const Finding& finding) {
      findings += finding.code + ": " + finding.message + "\n";
    };
    const auto report = CheckStore(*env, options);
    REQUIRE_OK(report);
    INFO(findings);
    REQUIRE(findings.empty());
  }

  Files ReadAll() {
    Files files;
    for (const std::string& name : ListNames(*fs, kRootInode)) {
      const auto inode = Resolve(*fs, name);
      REQUIRE_OK(inode);
      const auto data = ReadFile(*fs, *inode);
      REQUIRE_OK(data);
      uint64_t seed = 0;
      for (size_t i = 0; i < 8 && i < data->size(); ++i) seed |= uint64_t{(*data)[i]} << 8 * i;
      REQUIRE(*data == ContentOf(seed, data->size()));
      files[name] = {seed, data->size()};
    }
    return files;
  }
  // The content begins with the seed.
  static Bytes ContentOf(uint64_t seed, size_t size) {
    Bytes bytes = RandomBytes(seed, size);
    // Most contents consist of the same words, so that recompression replaces segments.
    if (seed % 4 != 0) {
      static const Bytes kWords = RandomBytes(7, 64 * 24);
      for (size_t i = size; i-- > 0;) bytes[i] = kWords[bytes[i / 24] % 64 * 24 + i % 24];
    }
    for (size_t i = 0; i < 8 && i < size; ++i) bytes[i] = static_cast<uint8_t>(seed >> 8 * i);
    return bytes;
  }

  std::unique_ptr<SimEnv> env = std::make_unique<SimEnv>();
  ShippingOptions shipping;
  std::unique_ptr<BucketSession> session;
  std::unique_ptr<FileSystem> fs;

 private:
  MemoryObjectStore& objects_;
  uint64_t disks_ = 1;
};

// Changes files, each time with one commit, and remembers the state after each commit.
class FileHistory {
 public:
  explicit FileHistory(uint64_t seed) : random_(seed) { states.push_back({}); }

  // Returns the first failure. The new state counts as possible then.
  Status Step(FileSystem& fs) {
    Files next = states.back();
    const std::string name = fmt::format("f{}", random_.Below(8));
    const bool remove = next.contains(name) && random_.Below(3) == 0;
    if (remove) {
      next.erase(name);
    } else {
      const size_t size = 8 + random_.Below(random_.Below(4) == 0 ? 200000 : 20000);
      next[name] = {random_.Below(1u << 30) + 1, size};
    }
    states.push_back(next);
    if (remove || states[states.size() - 2].contains(name))
      SILTFS_RETURN_IF_ERROR(fs.Unlink(kRootInode, name));
    if (!remove) {
      const auto [seed, size] = next[name];
      const auto created = fs.CreateFile(kRootInode, name, 0644, kCaller);
      SILTFS_RETURN_IF_ERROR(created.status());
      const Status written = fs.Write(created->inode, 0, Site::ContentOf(seed, size));
      fs.ReleaseFile(created->inode);
      fs.Forget(created->inode, 1);
      SILTFS_RETURN_IF_ERROR(written);
    }
    return fs.SyncAll();
  }
  bool Has(const Files& files, size_t least) const {
    for (size_t i = least; i < states.size(); ++i) {
      if (states[i] == files) return true;
    }
    return false;
  }
  size_t last() const { return states.size() - 1; }

  std::vector<Files> states;

 private:
  Random random_;
};

}  // namespace siltfs::testing
