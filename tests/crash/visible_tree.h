// Describes everything that is visible in a tree of a FileSystem, to compare trees.
//
// Thread-safety: functions of their arguments. Errors: those of reading.
#pragma once

#include <cstdint>
#include <string>

#include "fs/interface/file_system.h"

namespace siltfs::testing {

// Whether a tree's description includes times. If several threads share one clock, a time cannot be
// attributed to a step.
enum class Times : bool { kIgnored, kSeen };
inline Times TimesWith(size_t threads) { return threads == 1 ? Times::kSeen : Times::kIgnored; }

// Returns a text that describes everything visible in the tree below a thread's directory. Errors:
// those of reading.
Result<std::string> DescribeTree(FileSystem& fs, unsigned thread, Times times = Times::kIgnored);
// Returns the description of this tree in a snapshot that is made now. It is part of the result of
// DescribeTree if the thread has made the snapshot.
Result<std::string> DescribeForSnapshot(FileSystem& fs, unsigned thread, Times times);
// Returns a digest of such a text.
uint64_t DigestOf(const std::string& description);
Result<uint64_t> DigestTree(FileSystem& fs, unsigned thread, Times times = Times::kIgnored);

// Numbers of inodes reachable from the root, including the root.
struct InodeCounts {
  uint64_t files = 0;  // all inodes that are not directories
  uint64_t directories = 0;
  bool operator==(const InodeCounts&) const = default;
};
Result<InodeCounts> CountInodes(FileSystem& fs);

}  // namespace siltfs::testing
