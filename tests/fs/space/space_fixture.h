// Directories, files, hard links and snapshots in the metadata of a store without data, and what
// they take according to sets of chunks. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/interface/space_usage.h"
#include "fs/records/inode_record.h"
#include "fs/records/overlay_extent.h"
#include "fs/versions/version_keeper.h"
#include "store/base/random.h"
#include "store/env/sim_env.h"
#include "tests/fs/mark/mark_fixture.h"
#include "tests/fs/meta/memory_kv_store.h"
#include "tests/fs/recipe/recipe_test_support.h"

namespace siltfs::testing {

// Chunks and their lengths, recipe nodes included.
using Chunks = std::map<ChunkName, uint64_t>;

class SpaceTree {
 public:
  explicit SpaceTree(uint64_t seed);

  // Each returns the inode.
  uint64_t MakeDirectory(uint64_t parent, const std::string& name);
  uint64_t MakeFile(uint64_t parent, const std::string& name, const Entries& entries);
  uint64_t MakeSymlink(uint64_t parent, const std::string& name);
  uint64_t Copy(uint64_t inode, uint64_t parent, const std::string& name);
  void Link(uint64_t inode, uint64_t parent, const std::string& name);
  void Remove(uint64_t parent, const std::string& name);
  void SetContent(uint64_t inode, const Entries& entries);
  // Adds an extent with slices of these chunks, or with plain bytes.
  void AddSlices(uint64_t inode, uint64_t offset, const std::vector<uint64_t>& numbers);
  void AddPlain(uint64_t inode, uint64_t offset, const std::string& bytes);
  void TakeSnapshot();
  // Some change that the seed decides.
  void Step();

  // Entries of `count` chunks, numbered from `first` on.
  static Entries Numbered(uint64_t first, uint64_t count);
  static uint64_t LengthOf(uint64_t number) { return 1000 + number % 5000; }

  // What the sets of chunks say about these names.
  struct Name {
    uint64_t directory = 0;
    std::string name;
    auto operator<=>(const Name&) const = default;
  };
  SpaceUsage Expected(const std::set<Name>& names, const std::set<ChunkName>& kept = {}) const;
  Chunks Referenced(const std::set<Name>& names) const;
  // The path itself, and all names below it.
  std::set<Name> NamesOf(const UsagePath& path) const;
  // The directories that are at most `depth` levels below the path, by the rests of their paths.
  std::map<std::string, UsagePath> DirectoriesBelow(const UsagePath& path, uint32_t depth) const;

  const std::map<Name, uint64_t>& names() const { return names_; }
  const std::vector<uint64_t>& directories() const { return directories_; }
  bool IsNode(const ChunkName& name) const { return nodes_.nodes.contains(name); }
  bool IsDirectory(uint64_t inode) const { return records_.at(inode).IsDirectory(); }
  std::shared_ptr<const KvSnapshot> Snapshot() const { return kv_->Snapshot(); }
  const std::vector<SnapshotBounds>& snapshots() const { return snapshots_; }
  MemoryNodeStore& nodes() { return nodes_; }
  Random& random() { return random_; }

 private:
  struct Extent {
    uint64_t pending_bytes = 0;
    std::vector<uint64_t> numbers;
  };

  void Write(const std::vector<Mutation>& changes);
  void Save(uint64_t inode);
  void AddName(uint64_t inode, uint64_t parent, const std::string& name);
  void AddExtent(uint64_t inode, uint64_t offset, const OverlayExtent& extent, Extent noted);
  Chunks ChunksOf(uint64_t inode) const;
  Entries SomeEntries(uint64_t count);
  uint64_t AnyFile();
  std::string NewName();

  Random random_;
  MemoryDisk disk_;
  std::unique_ptr<KvStore> kv_;
  mutable MemoryNodeStore nodes_;
  std::map<Name, uint64_t> names_;  // inodes
  std::map<Name, uint64_t> cookies_;
  std::map<uint64_t, InodeRecord> records_;
  std::map<uint64_t, std::map<uint64_t, Extent>> extents_;
  std::vector<uint64_t> directories_;
  std::vector<SnapshotBounds> snapshots_;
  Chunks in_snapshots_;
  uint64_t next_inode_ = 2;
  uint64_t next_cookie_ = 3;
  uint64_t next_name_ = 0;
  uint64_t next_number_ = 0;
};

}  // namespace siltfs::testing
