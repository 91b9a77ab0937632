// Metadata, nodes and an index in memory for the tests of the mark of garbage collection. Not
// thread-safe.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/mark/mark.h"
#include "fs/records/inode_record.h"
#include "fs/records/schema.h"
#include "index/chunk_index.h"
#include "index/open_index.h"
#include "store/env/sim_env.h"
#include "tests/fs/meta/memory_kv_store.h"
#include "tests/fs/recipe/recipe_test_support.h"

namespace siltfs::testing {

inline constexpr const char* kSpill = "/spill";

// The record of a regular file.
InodeRecord FileOf(const Recipe& recipe);
// Returns the name for this number. Equal numbers give equal names.
ChunkName NumberedName(uint64_t number);
Entries NumberedChunks(uint64_t first, uint64_t count);
std::vector<FooterChunk> FooterOf(const std::vector<ChunkName>& names);

// Metadata and nodes in memory, and the names that they refer to.
class MarkMetadata {
 public:
  MarkMetadata() : kv(OpenMemoryKvStore(disk)) {}

  void Set(std::string key, std::string value);
  void AddFile(const Recipe& recipe) { Set(InodeKey(next_inode++), FileOf(recipe).Encode()); }
  void AddFile(const Entries& entries);
  void AddOverlay(uint64_t inode, uint64_t offset, const std::vector<ChunkName>& names);
  void ExpectAllNodes();
  std::shared_ptr<const KvSnapshot> Snapshot() const { return kv->Snapshot(); }
  // Visits all references and returns the outcome.
  Status Walk(const MarkPace& pace = {});

  MemoryDisk disk;
  std::unique_ptr<KvStore> kv;
  MemoryNodeStore nodes;
  std::set<ChunkName> expected;
  uint64_t next_inode = 2;
};

// An index of numbered chunks. Files refer to all chunks that are not dead, and to some of these
// often.
class MarkStore {
 public:
  static constexpr uint64_t kChunks = 9000;
  static constexpr uint64_t kSegmentChunks = 100;

  explicit MarkStore(IndexEngine engine);

  // Every tenth chunk is dead, and so are all chunks of one segment.
  static bool IsDead(uint64_t number) {
    return number % 10 == 0 || (number >= 700 && number < 700 + kSegmentChunks);
  }

  void RequireCounts(const LiveCounts& counts) const;
  Result<LiveCounts> Count(const MarkOptions& options);
  bool SpillIsGone();

  SimEnv env;
  MarkMetadata metadata;
  std::unique_ptr<ChunkIndex> index;
  std::map<SegmentId, uint32_t> expected;
};

}  // namespace siltfs::testing
