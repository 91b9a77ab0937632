// Repairs a store that nobody has mounted: what `siltfs fsck -p` and `-y` do.
//
// The store is checked, mended by what was found, and checked again, until nothing is found or
// nothing more can be done. Two modes. kSafe does what loses nothing and leaves nothing to choose:
// superblock copies, segments' headers and footers, the index, and whatever in metadata follows
// from the rest of it. kAll completes or removes the rest: names that lead nowhere, inodes without
// a name (into /lost+found), overlays out of order; files keep what can be read of them, and what
// cannot becomes holes, which are told of one by one.
//
// Metadata that RocksDB cannot open or read kAll makes anew from what can be read of it
// (metadata_rebuild.h), and repairs the rest by that; kSafe leaves it. Left as they are in either
// mode: a store whose metadata is whole and older than the rest of it (docs/crash-model.md, I5),
// and one without any segments or any metadata, which may be on a disk that is not mounted. In the
// end a store that was not unmounted, or is as such because of what was repaired, is recovered as a
// mount and an unmount would.
//
// Interrupted at any write, it leaves a store that another repair goes on with, and loses nothing
// that could be read: each step is durable before one that relies on it.
//
// Thread-safety: any thread. The store is locked, but for a moment when it is recovered. Memory:
// the check's, what is changed in metadata in one step, and the findings. Errors: those of
// CheckStore, and Env's where a write failed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fs/check/check_store.h"
#include "store/env/file_owner.h"

namespace siltfs {

enum class RepairMode : uint8_t { kSafe, kAll };

struct RepairOptions {
  // The store, and how it is checked. on_finding is told what the first check finds, and whatever
  // else comes to light later.
  CheckOptions check;
  RepairMode mode = RepairMode::kSafe;
  // Of directories that are made anew because their records are lost.
  FileOwner owner = {};
};

// What was found, and what came of it.
struct RepairedFinding {
  Finding finding;
  bool repaired = false;
};

// A stretch of a file that is a hole now. A length of 0: all of the file, which is gone.
struct LostContent {
  std::string path;  // empty if the file has none
  LostRange range;
};

struct RepairReport {
  CheckReport checked;  // the last check
  // In the order in which they were found: the first kMostFindingsKept; the others are only
  // counted.
  std::vector<RepairedFinding> findings;
  uint64_t found = 0;
  uint64_t left = 0;  // as of the last check
  std::vector<LostContent> lost;
  // What else there is to say, each a sentence for people.
  std::vector<std::string> remarks;

  uint64_t repaired() const { return found - left; }
};

inline constexpr size_t kMostFindingsKept = 100'000;

// `env` must outlive the call.
Result<RepairReport> RepairStore(Env& env, const RepairOptions& options);

}  // namespace siltfs
