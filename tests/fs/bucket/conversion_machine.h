// A machine whose store moves to a bucket and back.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fs/bucket/store_conversion.h"
#include "fs/bucket/verify_bucket.h"
#include "fs/check/check_store.h"
#include "fs/interface/file_system.h"
#include "fs/interface/snapshots.h"
#include "fs/open/make_store.h"
#include "fs/open/store_layout.h"
#include "fs/shipping/bucket_session.h"
#include "store/bucket/bucket_names.h"
#include "store/env/process.h"
#include "store/env/sim_env.h"
#include "store/object/memory_object_store.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

inline const std::string kStore = "/store";
inline const BucketConfig kConfig{.address = "s3://bucket/a"};

// A machine with a store, and the objects of its bucket.
struct Machine {
  std::unique_ptr<SimEnv> env = std::make_unique<SimEnv>();
  std::unique_ptr<MemoryObjectStore> objects = std::make_unique<MemoryObjectStore>();
  std::map<std::string, Bytes> files;

  Machine Fork() const {
    Machine fork;
    fork.env = env->Fork();
    fork.objects = objects->Fork();
    fork.files = files;
    return fork;
  }

  bool InBucket() {
    const auto state = ReadSuperblock(*env, kStore);
    REQUIRE_OK(state);
    return state->superblock.in_bucket();
  }
  StoreUuid Uuid() {
    const auto state = ReadSuperblock(*env, kStore);
    REQUIRE_OK(state);
    return state->superblock.uuid;
  }

  void Make() {
    REQUIRE_OK(MakeStore(*env, {.path = kStore, .index_memory = 1u << 20}));
    auto state = ReadSuperblock(*env, kStore);
    REQUIRE_OK(state);
    state->superblock.segment_bytes = 64u << 10;
    REQUIRE_OK(WriteSuperblock(*env, kStore, state->superblock));
    Use([this](FileSystem& fs) {
      for (uint64_t i = 1; i <= 6; ++i) Write(fs, fmt::format("file{}", i), i);
      REQUIRE_OK(fs.SyncAll());
      REQUIRE_OK(fs.snapshots().Create("first"));
      Write(fs, "file5", 50);
    });
  }
  void Write(FileSystem& fs, const std::string& name, uint64_t seed) {
    const Bytes bytes = RandomBytes(seed, 160'000 + seed * 100);
    WriteFile(fs, name, bytes);
    files[name] = bytes;
  }

  // Opens the store as a mount does, and closes it.
  void Use(const std::function<void(FileSystem&)>& use, bool ship = true) {
    FileSystemOptions options;
    options.store = kStore;
    options.commit_interval = std::chrono::hours(1);
    options.worker_threads = 1;
    options.readahead_threads = 0;
    std::unique_ptr<BucketSession> session;
    if (InBucket()) {
      BucketSessionOptions shipping;
      shipping.store = kStore;
      shipping.bucket.directory = BucketCachePath(kStore);
      shipping.bucket.upload_threads = 0;
      shipping.bucket.fetch_threads = 0;
      shipping.shipping.background = false;
      shipping.shipping.close_timeout = std::chrono::nanoseconds(0);
      const auto id = BucketWriterOf(*env, kStore);
      REQUIRE_OK(id);
      shipping.shipping.writer = {*id, HostName()};
      session = std::make_unique<BucketSession>(*env, *objects, shipping);
      options.segments = &session->segments();
      options.metadata_layer = [&session](std::unique_ptr<KvStore> kv) {
        return session->Layer(std::move(kv));
      };
    }
    auto opened = FileSystem::Open(*env, std::move(options));
    REQUIRE_OK(opened);
    use(**opened);
    if (session && ship) REQUIRE_OK(session->shipper().Ship());
    REQUIRE_OK((*opened)->Close());
    if (session && ship) REQUIRE_OK(session->bucket()->RunBackground());
  }

  void RequireFiles() {
    Use([this](FileSystem& fs) {
      for (const auto& [name, bytes] : files) {
        INFO(name);
        const auto read = ReadFile(fs, RequireInode(fs, name));
        REQUIRE_OK(read);
        REQUIRE(*read == bytes);
      }
      REQUIRE_OK(fs.snapshots().Find("first"));
    });
  }
  // fsck with all data.
  void RequireSound() {
    CheckOptions options;
    options.store = kStore;
    options.data = true;
    std::string findings;
    options.on_finding = [&](const Finding& finding) {
      findings += finding.code + ": " + finding.message + "\n";
    };
    std::unique_ptr<BucketSegmentStore> segments;
    if (InBucket()) {
      BucketOptions bucket;
      bucket.directory = BucketCachePath(kStore);
      bucket.upload_threads = 0;
      bucket.fetch_threads = 0;
      segments = std::make_unique<BucketSegmentStore>(*env, *objects, bucket);
      options.segments = segments.get();
    }
    const auto report = CheckStore(*env, options);
    REQUIRE_OK(report);
    INFO(findings);
    REQUIRE(findings.empty());
  }

  ConversionOptions Options() const { return {.store = kStore, .threads = 1}; }
  Result<Conversion> Push() { return ConvertToBucket(*env, *objects, kConfig, Options()); }
  Result<Conversion> Pull() { return ConvertToDirectory(*env, *objects, Options()); }

  void LoseCache() {
    const std::string files_of_cache = FilesDirectory(BucketCachePath(kStore));
    const auto entries = env->ListDirectory(files_of_cache);
    REQUIRE_OK(entries);
    for (const DirectoryEntry& entry : *entries)
      REQUIRE_OK(env->RemoveFile(files_of_cache + "/" + entry.name));
  }
  std::vector<std::string> KeysOfSegments() const {
    std::vector<std::string> keys;
    for (const std::string& key : objects->Keys()) {
      if (key.starts_with(kSegmentKeyPrefix)) keys.push_back(key);
    }
    return keys;
  }

  Result<BucketVerifyReport> Verify(bool data = false) {
    return VerifyBucketOfStore(*env, *objects, kStore, {.data = data, .threads = 1});
  }
  Result<BucketVerifyReport> VerifyAlone(bool data = false) {
    return VerifyBucket(*objects, {.data = data, .threads = 1});
  }
};

inline Machine LocalMachine() {
  Machine machine;
  machine.Make();
  return machine;
}

// A store that was converted, and whose commits are in the bucket.
inline Machine BucketMachine() {
  Machine machine = LocalMachine();
  REQUIRE_OK(machine.Push());
  machine.Use([](FileSystem&) {});
  return machine;
}

inline std::string Codes(const std::vector<BucketFinding>& findings) {
  std::string codes;
  for (const BucketFinding& finding : findings)
    codes += fmt::format("{}{} {}", codes.empty() ? "" : ", ", finding.code, finding.key);
  return codes;
}

}  // namespace siltfs::testing
