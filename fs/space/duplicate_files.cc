#include "fs/space/duplicate_files.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/content/file_content.h"
#include "fs/diff/tree_reader.h"
#include "fs/kv/ascending_reads.h"
#include "fs/mark/reference_sorter.h"
#include "fs/mark/reference_walk.h"
#include "fs/records/directory_paths.h"
#include "fs/records/inode_record.h"
#include "fs/records/schema.h"
#include "fs/space/named_file.h"
#include "fs/space/path_walk.h"
#include "fs/space/shared_parts.h"
#include "store/base/checksum.h"

namespace siltfs {
namespace {

using Step = UsageProgress::Step;

constexpr uint64_t kFilesBetweenReports = 256;

// A file and what identifies its content.
struct ComparedFile {
  std::array<uint64_t, 2> content{};
  uint64_t allocated = 0;  // size less holes
  NamedFile file;

  EightWords Encode() const {
    return {content[0],     content[1],  file.size, file.inode,
            file.directory, file.cookie, file.root, allocated};
  }
  static ComparedFile Decode(const EightWords& words) {
    return {.content = {words[0], words[1]},
            .allocated = words[7],
            .file = {.inode = words[3],
                     .directory = words[4],
                     .cookie = words[5],
                     .root = words[6],
                     .size = words[2]}};
  }
  bool SameContent(const ComparedFile& other) const {
    return content == other.content && file.size == other.file.size;
  }
};

struct Group {
  uint64_t size = 0;
  uint64_t copies = 0;
  uint64_t saved_bytes = 0;
  std::vector<NamedFile> files;  // ascending by inode

  // What saves most comes first.
  bool operator<(const Group& other) const {
    if (saved_bytes != other.saved_bytes) return saved_bytes > other.saved_bytes;
    return files.front().inode < other.files.front().inode;
  }
};

// Turns names into the rests of paths below a given path.
class BelowPaths {
 public:
  BelowPaths(const KvSnapshot& metadata, const UsageScope& scope)
      : metadata_(metadata), scope_(scope), directories_(metadata) {}

  Result<DuplicateGroup::File> Find(const NamedFile& name) {
    DuplicateGroup::File file{.path = name.root};
    const UsagePath& path = scope_.paths[name.root];
    SILTFS_ASSIGN_OR_RETURN(const auto value,
                            metadata_.Get(DirectoryCookieKey(name.directory, name.cookie)));
    if (!value) return Contradiction(name.inode, "has no name any more");
    SILTFS_ASSIGN_OR_RETURN(const CookieEntry entry, CookieEntry::Decode(*value));
    if (!path.name.empty() && path.directory == name.directory && path.name == entry.name)
      return file;
    SILTFS_ASSIGN_OR_RETURN(std::string root, directories_.PathOf(path.directory));
    if (!path.name.empty()) root += path.name + "/";
    SILTFS_ASSIGN_OR_RETURN(const std::string above, directories_.PathOf(name.directory));
    // A path of very many levels is not known (DirectoryPaths).
    file.below = above.starts_with(root) ? above.substr(root.size()) : ".../";
    file.below += entry.name;
    return file;
  }

 private:
  const KvSnapshot& metadata_;
  const UsageScope& scope_;
  DirectoryPaths directories_;
};

class DuplicateSearch {
 public:
  DuplicateSearch(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                  const DuplicateRequest& request, const UsageOptions& options)
      : env_(env),
        metadata_(metadata),
        nodes_(nodes),
        request_(request),
        options_(options),
        pacer_(options.pace) {}

  Result<DuplicateReport> Run() {
    SILTFS_RETURN_IF_ERROR(env_.FillRandom(
        {reinterpret_cast<uint8_t*>(seeds_.data()), seeds_.size() * sizeof seeds_[0]}));
    SILTFS_ASSIGN_OR_RETURN(auto names, MakeSorter());
    SILTFS_RETURN_IF_ERROR(FindNames(*names));
    SILTFS_ASSIGN_OR_RETURN(const auto files, MakeSorter());
    SILTFS_RETURN_IF_ERROR(ReadFiles(*names, *files));
    names.reset();  // frees its memory
    if (request_.partial) {
      SILTFS_ASSIGN_OR_RETURN(parts_, SharedParts::Create(env_, metadata_, nodes_, options_));
    }
    SILTFS_RETURN_IF_ERROR(FindGroups(*files));
    BelowPaths paths(metadata_, request_.scope);
    SILTFS_RETURN_IF_ERROR(NameGroups(paths));
    if (parts_) SILTFS_RETURN_IF_ERROR(FindPairs(paths));
    return std::move(report_);
  }

 private:
  using Sorter = RecordSorter<EightWords>;

  Result<std::unique_ptr<Sorter>> MakeSorter() {
    return Sorter::Create(env_, {.directory = options_.spill_directory,
                                 .memory_bytes = options_.memory_bytes,
                                 .minimum_free_bytes = options_.minimum_free_bytes,
                                 .unnamed_files = true});
  }

  Status FindNames(Sorter& names) {
    PathWalk walk(metadata_, request_.scope);
    PathVisitor visitor;
    visitor.enter = [this](const FoundName&) { return pacer_.Step(); };
    visitor.leave = [] { return Status::Ok(); };
    visitor.file = [&](const FoundName& found) -> Status {
      SILTFS_RETURN_IF_ERROR(pacer_.Step());
      ++names_;
      const NamedFile name{found.inode, found.directory, found.cookie, found.root};
      return names.Add(name.Encode());
    };
    SILTFS_RETURN_IF_ERROR(walk.Run(visitor));
    report_.left_out = walk.left_out();
    return Status::Ok();
  }

  // Reads the records in the order of inodes, each once.
  Status ReadFiles(Sorter& names, Sorter& files) {
    SILTFS_RETURN_IF_ERROR(names.Sort());
    AscendingReads records(metadata_);
    uint64_t last = 0;
    for (uint64_t done = 1; !names.AtEnd(); ++done) {
      const NamedFile name = NamedFile::Decode(names.record());
      SILTFS_RETURN_IF_ERROR(names.Next());
      if (request_.scope.on_progress && done % kFilesBetweenReports == 0) {
        SILTFS_RETURN_IF_ERROR(
            request_.scope.on_progress({.step = Step::kFiles, .done = done, .total = names_}));
      }
      if (name.inode == std::exchange(last, name.inode)) continue;
      SILTFS_RETURN_IF_ERROR(pacer_.Step(Pacer::kRecordWork));
      SILTFS_ASSIGN_OR_RETURN(const auto value, records.Get(InodeKey(name.inode)));
      if (!value) return Contradiction(name.inode, "has a name but does not exist");
      const auto record = InodeRecord::Decode(*value);
      if (!record.ok())
        return Status(record.status()).At(NameOfOwner(Table::kInode, InodeKey(name.inode)));
      SILTFS_RETURN_IF_ERROR(AddFile(name, *record, files));
    }
    return Status::Ok();
  }

  Status AddFile(NamedFile file, const InodeRecord& record, Sorter& files) {
    if (!record.IsRegular() || record.size < request_.min_size) return Status::Ok();
    if (!FileContent::IsFolded(record)) {
      ++report_.files_busy;
      return Status::Ok();
    }
    ++report_.files;
    file.size = record.size;
    const Bytes recipe = record.recipe.Encode();
    const ComparedFile compared{
        .content = {Checksum(recipe, seeds_[0]), Checksum(recipe, seeds_[1])},
        .allocated = FileContent::AllocatedBytes(record),
        .file = file};
    return files.Add(compared.Encode());
  }

  Status FindGroups(Sorter& files) {
    SILTFS_RETURN_IF_ERROR(files.Sort());
    while (!files.AtEnd()) {
      const ComparedFile first = ComparedFile::Decode(files.record());
      Group group;
      group.size = first.file.size;
      while (!files.AtEnd()) {
        const ComparedFile file = ComparedFile::Decode(files.record());
        if (!file.SameContent(first)) break;
        SILTFS_RETURN_IF_ERROR(pacer_.Step());
        ++group.copies;
        if (group.files.size() < DuplicateGroup::kMostFiles) group.files.push_back(file.file);
        SILTFS_RETURN_IF_ERROR(files.Next());
      }
      if (parts_) SILTFS_RETURN_IF_ERROR(parts_->Add(first.file));
      group.saved_bytes = (group.copies - 1) * first.allocated;
      if (group.saved_bytes > 0) Keep(std::move(group));
    }
    return Status::Ok();
  }

  void Keep(Group group) {
    ++report_.groups_found;
    report_.copies_found += group.copies;
    report_.saved_bytes += group.saved_bytes;
    groups_.insert(std::move(group));
    if (groups_.size() > request_.limit) groups_.erase(std::prev(groups_.end()));
  }

  Status NameGroups(BelowPaths& paths) {
    for (const Group& group : groups_) {
      DuplicateGroup& named = report_.groups.emplace_back();
      named.size = group.size;
      named.copies = group.copies;
      named.saved_bytes = group.saved_bytes;
      for (const NamedFile& found : group.files) {
        SILTFS_RETURN_IF_ERROR(pacer_.Step(Pacer::kRecordWork));
        SILTFS_ASSIGN_OR_RETURN(DuplicateGroup::File file, paths.Find(found));
        named.files.push_back(std::move(file));
      }
    }
    return Status::Ok();
  }

  Status FindPairs(BelowPaths& paths) {
    SILTFS_ASSIGN_OR_RETURN(const auto pairs, parts_->Find(request_));
    for (const SharedPart& pair : pairs) {
      PartlySharedPair& named = report_.pairs.emplace_back();
      SILTFS_ASSIGN_OR_RETURN(named.first, paths.Find(pair.first));
      SILTFS_ASSIGN_OR_RETURN(named.second, paths.Find(pair.second));
      named.first_size = pair.first.size;
      named.second_size = pair.second.size;
      named.shared_bytes = pair.bytes;
    }
    return Status::Ok();
  }

  Env& env_;
  const KvSnapshot& metadata_;
  NodeStore& nodes_;
  const DuplicateRequest& request_;
  const UsageOptions& options_;
  Pacer pacer_;
  std::array<uint64_t, 2> seeds_{};
  uint64_t names_ = 0;
  std::set<Group> groups_;              // `limit` at most
  std::unique_ptr<SharedParts> parts_;  // null unless parts are searched
  DuplicateReport report_;
};

}  // namespace

Result<DuplicateReport> FindDuplicateFiles(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                                           const DuplicateRequest& request,
                                           const UsageOptions& options) {
  return DuplicateSearch(env, metadata, nodes, request, options).Run();
}

}  // namespace siltfs
