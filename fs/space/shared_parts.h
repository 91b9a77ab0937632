// Finds the pairs of files that share the largest parts of their contents.
//
// Files share recipe nodes where long runs of their chunks are the same (fs/recipe/recipe.h), and
// single chunks elsewhere. A node or a chunk that several files have counts for the first of them
// together with each other one. So the number of pairs is proportional to the number of references,
// and not to its square. What lies below a shared node counts there, and the walk goes on below it
// for the first file only. So each distinct node is read once.
//
// Not thread-safe. Ownership: the arguments of Create must outlive it. Memory: three times
// `memory_bytes` at most. Cost: one read of each distinct node. For each file 64 bytes are sorted;
// for each distinct chunk, and each root that has it in its inode, 16 bytes; for each pair and part
// 64 bytes. Chunks are told apart by the first 64 bits of their names. Errors: those of metadata,
// nodes, sorting (reference_sorter.h), the pace and the scope.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fs/interface/space_usage.h"
#include "fs/kv/kv_store.h"
#include "fs/mark/level_walk.h"
#include "fs/mark/reference_sorter.h"
#include "fs/mark/reference_walk.h"
#include "fs/recipe/recipe_node.h"
#include "fs/space/named_file.h"
#include "fs/space/path_usage.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct SharedPart {
  NamedFile first;
  NamedFile second;
  uint64_t bytes = 0;  // of the contents that both have
};

class SharedParts {
 public:
  static Result<std::unique_ptr<SharedParts>> Create(Env& env, const KvSnapshot& metadata,
                                                     NodeStore& nodes, const UsageOptions& options);

  // Adds a file without an overlay. No two files may have the same content.
  Status Add(const NamedFile& file) { return files_->Add(file.Encode()); }
  // Returns the pairs that share most, those with the lowest inodes first if they share the same.
  // Call it once, after the last Add. Of the request it uses the limit and on_progress.
  Result<std::vector<SharedPart>> Find(const DuplicateRequest& request);

 private:
  using FileSorter = RecordSorter<EightWords>;

  // Two files by their numbers. Files are numbered by their inodes, from 1 on.
  struct Pair {
    uint64_t first = 0;
    uint64_t second = 0;
    uint64_t bytes = 0;
    // What shares most comes first.
    bool operator<(const Pair& other) const;
  };

  SharedParts(Env& env, const KvSnapshot& metadata, NodeStore& nodes, const UsageOptions& options)
      : env_(env), metadata_(metadata), nodes_(nodes), options_(options), pacer_(options.pace) {}

  template <typename Record>
  Result<std::unique_ptr<RecordSorter<Record>>> MakeSorter(size_t memory_bytes);
  Status WalkRecipes(const DuplicateRequest& request);
  Status PairUsersOfChunks();
  Status AddPair(uint64_t first, uint64_t second, uint64_t bytes);
  bool UniteUsers(const RecipeChild& node, uint64_t& user, uint64_t other);
  Result<std::vector<Pair>> SumPairs(size_t limit);
  Result<std::vector<SharedPart>> NamePairs(const std::vector<Pair>& pairs);

  Env& env_;
  const KvSnapshot& metadata_;
  NodeStore& nodes_;
  const UsageOptions& options_;
  Pacer pacer_;
  std::unique_ptr<FileSorter> files_;
  std::unique_ptr<FileSorter> numbered_;             // the same, with their numbers
  std::unique_ptr<RecordSorter<TwoWords>> chunks_;   // by name: the users
  std::unique_ptr<RecordSorter<EightWords>> pairs_;  // parts that two files share
  uint64_t parts_ = 0;
  // The last node that UniteUsers has paired, and its last user.
  ChunkName paired_;
  uint64_t paired_user_ = 0;
  Status failure_;  // of UniteUsers
};

}  // namespace siltfs
