// A SILT index on a simulated device, for tests that inspect its files.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "index/silt/manifest_log.h"
#include "index/silt/silt_index.h"
#include "store/env/files.h"
#include "store_maker.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

struct SiltFixture {
  static constexpr const char* kDirectory = "/index";

  // The default: one partition, and all work is done within Put.
  SiltFixture() {
    REQUIRE_OK(env.CreateDirectory(kDirectory));
    REQUIRE_OK(env.SyncDirectory("/"));
    options.directory = kDirectory;
    options.partition_bits = 0;
    options.hash_secret = 99;
    options.hash_store_share = 0.18;
    options.sorted_filters = true;
    options.sorted_runs = false;  // run_index_test has them
    options.background = false;
  }

  std::unique_ptr<ChunkIndex> Open() {
    auto index = OpenSiltIndex(env, options);
    REQUIRE_OK(index);
    return std::move(*index);
  }
  std::vector<StoreFileId> Files() {
    auto files = ListStoreFiles(env, kDirectory);
    REQUIRE_OK(files);
    return *files;
  }
  std::vector<StoreFileId> Files(StoreKind kind) {
    auto files = Files();
    std::erase_if(files, [&](const StoreFileId& file) { return file.kind != kind; });
    return files;
  }
  std::string PathOf(const StoreFileId& file) const {
    return JoinPath(kDirectory, StoreFileName(file));
  }
  StoreManifest Manifest() {
    auto manifest = ReadStoreManifest(env, kDirectory);
    REQUIRE_OK(manifest);
    REQUIRE(manifest->has_value());
    return **manifest;
  }
  // Puts this manifest in place of the index's manifest.
  void ReplaceManifest(StoreManifest manifest) {
    ManifestLog log(env, kDirectory);
    REQUIRE_OK(log.Read());
    REQUIRE_OK(log.FinishRead(manifest));
    REQUIRE_OK(log.Replace(manifest));
  }
  // Contents copies a file; Restore writes the copy back.
  std::string Contents(const StoreFileId& file) {
    auto contents = ReadWholeFile(env, PathOf(file), 1U << 30);
    REQUIRE_OK(contents);
    return *contents;
  }
  void Restore(const StoreFileId& file, const std::string& contents) {
    auto created = CreateStoreFile(env, kDirectory, file);
    REQUIRE_OK(created);
    REQUIRE_OK((*created)->Write(0, AsBytes(contents)));
    REQUIRE_OK((*created)->Sync());
    REQUIRE_OK(env.SyncDirectory(kDirectory));
  }

  SimEnv env;
  SiltIndexOptions options;
};

// Sleeps for a millisecond. A test that waits for the threads of an index calls Rest between two
// polls. Constant polling would hold the locks that the threads need.
inline void Rest() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

inline void PutNumbers(ChunkIndex& index, uint64_t first, uint64_t count, uint64_t sequence,
                       uint32_t version = 0) {
  REQUIRE_OK(index.Put(NumberedEntries(first, count, version), sequence));
}

inline Answer GetNumber(ChunkIndex& index, uint64_t number) {
  auto got = index.Get(NameOf(number));
  REQUIRE_OK(got);
  return *got;
}

inline void CheckNumbers(ChunkIndex& index, uint64_t first, uint64_t count, uint32_t version = 0) {
  for (uint64_t i = first; i < first + count; ++i) {
    const Answer answer = GetNumber(index, i);
    const Location expected = NumberedEntry(i, version).location;
    if (answer == expected) continue;  // without a check, which would take longer than the lookup
    INFO("number " << i);
    REQUIRE(answer == expected);
  }
}

// The codes of all findings of Verify, each with a space behind it.
inline std::string FindingsOf(ChunkIndex& index) {
  std::string findings;
  REQUIRE_OK(index.Verify([&](const IndexFinding& finding) { findings += finding.code + " "; }));
  return findings;
}

inline uint64_t StoresOfKind(const IndexStats& stats, const std::string& kind) {
  uint64_t stores = 0;
  for (const auto& store : stats.stores) stores += store.kind == kind;
  return stores;
}

// The number of files: each store is one file, and a SortedStore has a second one, its filter.
inline uint64_t FilesOf(const IndexStats& stats) {
  return stats.stores.size() + StoresOfKind(stats, "sorted_store");
}

inline uint64_t MemoryOf(const IndexStats& stats, const std::string& kind) {
  uint64_t bytes = 0;
  for (const auto& store : stats.stores) bytes += store.kind == kind ? store.memory_bytes : 0;
  return bytes;
}
inline uint64_t FiltersAndTries(const ChunkIndex& index) {
  const IndexStats stats = index.stats();
  return MemoryOf(stats, "hash_store") + MemoryOf(stats, "sorted_store");
}

// An index with stores of all kinds: about 17,000 of 20,000 entries are in the SortedStore, unless
// a test changes the options.
struct FilledFixture : SiltFixture {
  static constexpr uint64_t kNames = 20'000;

  FilledFixture() {
    options.bucket_bits = 6;
    options.hash_store_share = 0.25;
    options.page_index = PageIndexKind::kTrie;  // it can be left out of memory
  }
  std::unique_ptr<ChunkIndex> Fill() {
    auto index = Open();
    PutNumbers(*index, 0, kNames, 1);
    REQUIRE_OK(index->Flush());
    return index;
  }
};

}  // namespace siltfs::testing
