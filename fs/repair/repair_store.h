// Repairs an unmounted store. Used by `siltfs fsck -p` and `-y`.
//
// Checks the store, repairs the findings and checks again, until nothing is found or nothing more
// can be done. There are two modes. kSafe makes only repairs that lose nothing and need no choice:
// superblock copies, segments' headers and footers, the index, and metadata that follows from other
// metadata. kAll also completes or removes the rest: names without an inode, inodes without a name
// (into /lost+found), malformed overlays. Files keep their readable content; lost ranges become
// holes, and each is reported.
//
// If the metadata engine cannot open or read the metadata, kAll rebuilds the metadata from its
// readable parts (metadata_rebuild.h) and then makes the other repairs. In this case kSafe does not
// change the metadata. Neither mode changes a store with metadata that is whole but older than the
// store (docs/crash-model.md, I5). If all segments or all metadata are missing, the store is not
// changed either, because the missing part may be on a disk that is not mounted. If the store was
// not unmounted, or counts as not unmounted after the repairs, the last step recovers it with a
// mount and an unmount.
//
// After an interruption at any write, another repair can continue, and no readable data is lost:
// each step is durable before another step relies on it.
//
// Thread-safety: any thread. The store is locked, except for a moment before and after recovery.
// Memory: that of a check, the metadata changes of one step, and the findings. Errors: those of
// CheckStore, and Env's for failed writes.
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
  // The store and the options of its checks. on_finding is called for the findings of the first
  // check, and for new ones of later checks.
  CheckOptions check;
  RepairMode mode = RepairMode::kSafe;
  // Owner of directories that are recreated because their records are lost.
  FileOwner owner = {};
};

// A finding, and whether it was repaired.
struct RepairedFinding {
  Finding finding;
  bool repaired = false;
};

// A range of a file that is now a hole. Length 0: the whole file is lost.
struct LostContent {
  std::string path;  // empty if the file has none
  LostRange range;
};

struct RepairReport {
  CheckReport checked;  // the report of the last check
  // The first kMostFindingsKept findings, in order of detection; later ones are only counted.
  std::vector<RepairedFinding> findings;
  uint64_t found = 0;
  uint64_t left = 0;  // as of the last check
  std::vector<LostContent> lost;
  // Further information for the user, one sentence each.
  std::vector<std::string> remarks;

  uint64_t repaired() const { return found - left; }
};

inline constexpr size_t kMostFindingsKept = 100'000;

// `env` must outlive the call.
Result<RepairReport> RepairStore(Env& env, const RepairOptions& options);

}  // namespace siltfs
