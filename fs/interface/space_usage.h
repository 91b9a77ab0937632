// What the files below given paths take, what they share, and which of them are the same.
//
// All answers are those of one commit during the call, which includes all operations that ended
// before it. No data are read: recipes say which chunks a file has.
//
// Thread-safety: every call from any thread; one call at a time works, and others wait. Ownership:
// belongs to the FileSystem (FileSystem::usage). Units: uncompressed bytes of distinct chunks
// (docs/glossary.md, "exclusive bytes"). Errors: kAborted if a path does not
// exist; kAccessDenied if a path is not admitted; those of the functions in
// UsageScope; kInterrupted if the
// store is being closed; kNoSpace if references fit neither into memory nor into the disk;
// kCorruption if metadata or a recipe node cannot be read. While a call runs, garbage collection
// removes no segment: a collection that begins meanwhile waits for its end. Memory: some 50 MiB at
// most.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/interface/file_system.h"
#include "store/base/result.h"

namespace siltfs {

// The name in the directory, or the directory itself if the name is empty.
struct UsagePath {
  InodeNumber directory = 0;
  std::string name = {};
  bool operator==(const UsagePath&) const = default;
};

// A directory or a regular file that is about to be counted.
struct UsageInode {
  Attributes attributes;  // only those that permissions depend on
  // The value of the extended attribute with the access control list.
  std::optional<std::string> access_list = std::nullopt;
};

struct UsageProgress {
  enum class Step : uint8_t { kNames = 1, kFiles, kStore, kParts };
  Step step = Step::kNames;
  uint64_t done = 0;
  uint64_t total = 0;  // 0: not known
};

// Which files a call is about, and its callbacks. Each function may be empty.
struct UsageScope {
  std::vector<UsagePath> paths;
  // Whether the inode may be counted. False leaves it out, with everything below it; a path that is
  // left out is an error.
  std::function<Result<bool>(const UsageInode& inode)> admit = {};
  // Called at intervals. An error ends the call.
  std::function<Status()> check = {};
  // As well, and only while there is progress to tell.
  std::function<Status(const UsageProgress& progress)> on_progress = {};
};

struct UsageRequest {
  UsageScope scope;
  // Also measures the directories below a path that are at most so many levels deep.
  uint32_t depth = 0;
};

// The space of all files below some paths. A file with several names counts once.
struct SpaceUsage {
  uint64_t files = 0;  // inodes that are not directories
  uint64_t directories = 0;
  uint64_t logical_bytes = 0;  // of regular files: sizes less holes
  // Of chunks that nothing else refers to. The removal of all these names, and a garbage
  // collection, free them.
  uint64_t exclusive_bytes = 0;
  uint64_t shared_bytes = 0;    // of all other chunks to which these files refer
  uint64_t snapshot_bytes = 0;  // the part of shared_bytes that only snapshots share
  uint64_t recipe_bytes = 0;    // of recipe nodes that nothing else refers to
  uint64_t pending_bytes = 0;   // written, and not stored as chunks yet
  bool operator==(const SpaceUsage&) const = default;
};

struct UsageEntry {
  size_t path = 0;         // its place in UsageScope::paths
  std::string below = {};  // of a directory below the path: the rest of its path
  SpaceUsage usage;
};

struct UsageReport {
  // For each path its own entry, and after it those of the directories below it. A path that lies
  // below another one counts for both.
  std::vector<UsageEntry> entries;
  SpaceUsage total;  // of all paths together
  // Of the chunks that at least two of the paths share, none of which lies below the other.
  uint64_t shared_among_bytes = 0;
  uint64_t left_out = 0;  // by `admit`
};

struct DuplicateRequest {
  UsageScope scope;
  uint64_t min_size = 1;  // of the files
  size_t limit = 20;      // groups, and pairs
  // Also finds files that share a part of their content, which reads all recipe nodes of the files.
  bool partial = false;
};

// Files with the same content, each with an inode of its own.
struct DuplicateGroup {
  static constexpr size_t kMostFiles = 100;
  struct File {
    size_t path = 0;         // its place in UsageScope::paths
    std::string below = {};  // the rest of its path; empty if it is the path itself
    bool operator==(const File&) const = default;
  };
  uint64_t size = 0;         // of each file
  uint64_t copies = 0;       // files in this group
  uint64_t saved_bytes = 0;  // what the copies but one would take without sharing
  // The files with the lowest inode numbers, ascending by them, kMostFiles at most.
  std::vector<File> files;
  bool operator==(const DuplicateGroup&) const = default;
};

// Two files with different contents that have a part in common. If more files have it, it counts
// for the first one of them together with each other one.
struct PartlySharedPair {
  DuplicateGroup::File first;  // has the lower inode number
  DuplicateGroup::File second;
  uint64_t first_size = 0;
  uint64_t second_size = 0;
  uint64_t shared_bytes = 0;  // of the part
  bool operator==(const PartlySharedPair&) const = default;
};

struct DuplicateReport {
  // Those that save most, and then those with the lowest inode number, first.
  std::vector<DuplicateGroup> groups;
  // Those that share most, and then those with the lowest inode numbers, first.
  std::vector<PartlySharedPair> pairs;
  uint64_t files = 0;         // compared
  uint64_t files_busy = 0;    // not compared, because they are being written
  uint64_t groups_found = 0;  // also those beyond the limit
  uint64_t copies_found = 0;  // files in all groups
  uint64_t saved_bytes = 0;   // of all groups
  uint64_t left_out = 0;      // by `admit`
};

class UsageMeasures {
 public:
  virtual ~UsageMeasures() = default;
  // Walks the metadata of all files and snapshots of the store, unless the paths have no chunk.
  // kUnsupported if more than 65,535 paths and directories are to be reported.
  virtual Result<UsageReport> Measure(const UsageRequest& request) = 0;
  // Reads the metadata of the files below the paths only. Of equal files, pairs name the first one.
  virtual Result<DuplicateReport> FindDuplicates(const DuplicateRequest& request) = 0;
};

}  // namespace siltfs
