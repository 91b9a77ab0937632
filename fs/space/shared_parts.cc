#include "fs/space/shared_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "fs/diff/tree_reader.h"
#include "fs/kv/ascending_reads.h"
#include "fs/records/inode_record.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

// The memory of each sorter, as a share of what a search may take.
constexpr size_t kShare = 2;
constexpr size_t kNodeShare = 8;
constexpr uint64_t kFilesBetweenReports = 256;
constexpr unsigned kLengthBits = 24;

}  // namespace

bool SharedParts::Pair::operator<(const Pair& other) const {
  if (bytes != other.bytes) return bytes > other.bytes;
  return std::tie(first, second) < std::tie(other.first, other.second);
}

template <typename Record>
Result<std::unique_ptr<RecordSorter<Record>>> SharedParts::MakeSorter(size_t memory_bytes) {
  return RecordSorter<Record>::Create(env_, {.directory = options_.spill_directory,
                                             .memory_bytes = memory_bytes,
                                             .minimum_free_bytes = options_.minimum_free_bytes,
                                             .unnamed_files = true});
}

Result<std::unique_ptr<SharedParts>> SharedParts::Create(Env& env, const KvSnapshot& metadata,
                                                         NodeStore& nodes,
                                                         const UsageOptions& options) {
  std::unique_ptr<SharedParts> parts(new SharedParts(env, metadata, nodes, options));
  const size_t memory = options.memory_bytes / kShare;
  SILTFS_ASSIGN_OR_RETURN(parts->files_, parts->MakeSorter<EightWords>(memory));
  SILTFS_ASSIGN_OR_RETURN(parts->numbered_, parts->MakeSorter<EightWords>(memory));
  SILTFS_ASSIGN_OR_RETURN(parts->chunks_, parts->MakeSorter<TwoWords>(options.memory_bytes));
  SILTFS_ASSIGN_OR_RETURN(parts->pairs_, parts->MakeSorter<EightWords>(memory));
  return parts;
}

Result<std::vector<SharedPart>> SharedParts::Find(const DuplicateRequest& request) {
  SILTFS_RETURN_IF_ERROR(WalkRecipes(request));
  SILTFS_RETURN_IF_ERROR(PairUsersOfChunks());
  chunks_.reset();  // frees its memory
  SILTFS_ASSIGN_OR_RETURN(const std::vector<Pair> pairs, SumPairs(request.limit));
  return NamePairs(pairs);
}

Status SharedParts::WalkRecipes(const DuplicateRequest& request) {
  const auto tell = [&](uint64_t done, uint64_t total) -> Status {
    if (!request.scope.on_progress || done % kFilesBetweenReports != 0) return Status::Ok();
    return request.scope.on_progress(
        {.step = UsageProgress::Step::kParts, .done = done, .total = total});
  };
  LevelWalk recipes(
      env_, nodes_,
      {.spill_directory = options_.spill_directory,
       .memory_bytes = options_.memory_bytes / kNodeShare,
       .minimum_free_bytes = options_.minimum_free_bytes,
       .unite = [this](const RecipeChild& node, uint64_t& user,
                       uint64_t other) { return UniteUsers(node, user, other); },
       .visit =
           [this](const ChunkName& name, uint64_t length, uint64_t user) {
             return chunks_->Add({name.Prefix64(), user << kLengthBits | length});
           },
       .visit_node = [this](const ChunkName&, uint64_t, uint64_t) { return failure_; },
       .on_node = tell},
      pacer_);
  AscendingReads records(metadata_);
  SILTFS_RETURN_IF_ERROR(files_->Sort());
  for (uint64_t number = 1; !files_->AtEnd(); ++number) {
    const NamedFile file = NamedFile::Decode(files_->record());
    SILTFS_RETURN_IF_ERROR(pacer_.Step(Pacer::kRecordWork));
    SILTFS_ASSIGN_OR_RETURN(const auto value, records.Get(InodeKey(file.inode)));
    if (!value) return Contradiction(file.inode, "has a name but does not exist");
    SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(*value));
    SILTFS_RETURN_IF_ERROR(recipes.Add(record.recipe, number));
    SILTFS_RETURN_IF_ERROR(numbered_->Add(files_->record()));
    SILTFS_RETURN_IF_ERROR(tell(number, 0));
    SILTFS_RETURN_IF_ERROR(files_->Next());
  }
  files_.reset();
  SILTFS_RETURN_IF_ERROR(recipes.Finish());
  return failure_;
}

// The users of a node come in the order of their numbers, some of them more than once.
bool SharedParts::UniteUsers(const RecipeChild& node, uint64_t& user, uint64_t other) {
  if (user == other || (paired_ == node.name && paired_user_ == other)) return true;
  paired_ = node.name;
  paired_user_ = other;
  Status added = AddPair(user, other, node.covered_bytes - node.hole_bytes);
  if (!added.ok() && failure_.ok()) failure_ = std::move(added);
  return true;
}

Status SharedParts::PairUsersOfChunks() {
  constexpr uint64_t kLengthMask = (uint64_t{1} << kLengthBits) - 1;
  SILTFS_RETURN_IF_ERROR(chunks_->Sort());
  while (!chunks_->AtEnd()) {
    const uint64_t prefix = chunks_->record()[0];
    const uint64_t first = chunks_->record()[1] >> kLengthBits;
    for (uint64_t last = first; !chunks_->AtEnd() && chunks_->record()[0] == prefix;) {
      SILTFS_RETURN_IF_ERROR(pacer_.Step());
      const uint64_t user = chunks_->record()[1] >> kLengthBits;
      if (user != std::exchange(last, user))
        SILTFS_RETURN_IF_ERROR(AddPair(first, user, chunks_->record()[1] & kLengthMask));
      SILTFS_RETURN_IF_ERROR(chunks_->Next());
    }
  }
  return Status::Ok();
}

Status SharedParts::AddPair(uint64_t first, uint64_t second, uint64_t bytes) {
  if (bytes == 0) return Status::Ok();  // a node that has only holes
  // The sorter drops repeated records, so each part has a number.
  return pairs_->Add({first, second, parts_++, bytes});
}

Result<std::vector<SharedParts::Pair>> SharedParts::SumPairs(size_t limit) {
  SILTFS_RETURN_IF_ERROR(pairs_->Sort());
  std::set<Pair> most;
  while (!pairs_->AtEnd()) {
    Pair pair{.first = pairs_->record()[0], .second = pairs_->record()[1]};
    while (!pairs_->AtEnd() && pairs_->record()[0] == pair.first &&
           pairs_->record()[1] == pair.second) {
      SILTFS_RETURN_IF_ERROR(pacer_.Step());
      pair.bytes += pairs_->record()[3];
      SILTFS_RETURN_IF_ERROR(pairs_->Next());
    }
    most.insert(pair);
    if (most.size() > limit) most.erase(std::prev(most.end()));
  }
  pairs_.reset();
  return std::vector<Pair>(most.begin(), most.end());
}

Result<std::vector<SharedPart>> SharedParts::NamePairs(const std::vector<Pair>& pairs) {
  std::map<uint64_t, NamedFile> wanted;
  for (const Pair& pair : pairs) {
    wanted[pair.first] = {};
    wanted[pair.second] = {};
  }
  SILTFS_RETURN_IF_ERROR(numbered_->Sort());
  auto next = wanted.begin();
  for (uint64_t number = 1; next != wanted.end() && !numbered_->AtEnd(); ++number) {
    if (next->first == number) (next++)->second = NamedFile::Decode(numbered_->record());
    SILTFS_RETURN_IF_ERROR(numbered_->Next());
  }
  std::vector<SharedPart> named;
  for (const Pair& pair : pairs)
    named.push_back({wanted.at(pair.first), wanted.at(pair.second), pair.bytes});
  return named;
}

}  // namespace siltfs
