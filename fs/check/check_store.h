// Checks an unmounted store, from the superblock to the last chunk, and writes nothing. Used by
// `siltfs fsck -n`.
//
// Legal results of a crash (docs/crash-model.md) are not findings. These are torn tails, segments
// begun after the last commit, new files of segments that were about to replace the old ones, and
// missing index entries that the next mount adds again. The check continues after damage.
//
// Order: superblock, metadata's structure, segments (with `data` their contents, too), index, and
// finally every file's recipe down to its chunks, also of files as snapshots show them.
//
// Memory: some 64 MiB in addition to RocksDB's, for any store size. The tables in memory have fixed
// bounds, and metadata is read several times if a table is too small. There are three exceptions.
// If the index does not find a recipe node, a list of all nodes is made, 24 bytes each. Each recipe
// node above the leaves takes 25 bytes (4 MiB in a store of 10 TB). Each leaf with lost chunks
// takes 25 bytes.
//
// Thread-safety: CheckStore may run in any thread; it locks the store. Errors: damage is always a
// finding, never an error. kNotFound if there is no store, kInUse if it is mounted, kNeedsNewer if
// a later version made it, kInterrupted if `interrupted` ended the check, and the errors that
// prevent the check.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/segment_store.h"

namespace siltfs {

// One fault of the store.
struct Finding {
  std::string code;  // stable, for machines: "link-count", "block-payload"; siltfs(8) lists them
  // The damaged file of the store. If the content of a user's file is damaged: the path of that
  // file in the mounted file system, or empty if it has none. Files in snapshots are below
  // /.snapshots.
  std::string path;
  std::optional<uint64_t> offset = {};  // bytes, in that file
  std::optional<uint64_t> inode = {};
  std::string message;  // one sentence
};

// A range of a file that cannot be read, because its chunk, or the recipe node that refers to the
// chunk, is damaged or missing.
struct LostRange {
  uint64_t inode = 0;
  uint64_t offset = 0;  // in the file
  uint64_t length = 0;
  // 0: in the live file; else in the version of the file that was kept for this snapshot
  // (fs/versions/version_key.h).
  uint64_t snapshot = 0;

  bool operator==(const LostRange&) const = default;
  // By version, inode and offset.
  auto operator<=>(const LostRange& other) const {
    return std::tie(snapshot, inode, offset, length) <=>
           std::tie(other.snapshot, other.inode, other.offset, other.length);
  }
};

struct CheckProgress {
  std::string_view phase;  // "metadata", "segments", "index", "contents"
  uint64_t done = 0;       // inodes, segments, entries or files
  uint64_t total = 0;      // 0: not known
};

struct CheckOptions {
  std::string store;  // path
  // Where sealed segments are kept; must outlive the check. Null: in the store's directory.
  SegmentStore* segments = nullptr;
  bool data = false;     // read all data, too, and verify every chunk's name
  unsigned threads = 1;  // threads that read segments
  // For tests (I6 in docs/crash-model.md): also report chunks without references if the index does
  // not point to them and their segment is not noted. Then a missing index entry is a finding even
  // if damage is the reason.
  bool copies = false;
  // Called for each finding, from any thread; calls are serialised.
  std::function<void(const Finding&)> on_finding;
  // Called for every lost range, in no particular order. Each range belongs to a finding, which may
  // be reported later.
  std::function<void(const LostRange&)> on_lost;
  // Called several times a second; like on_finding, calls are serialised.
  std::function<void(const CheckProgress&)> on_progress;
  // Polled from any thread; true ends the check with kInterrupted.
  std::function<bool()> interrupted;

  // The largest numbers of entries in two tables in memory. Tests lower these limits.
  size_t inodes_a_pass = size_t{1} << 19;          // 40 bytes each
  size_t unresolved_references = size_t{1} << 18;  // 80 bytes each
};

// Counts of the checked objects.
struct CheckReport {
  // Metadata.
  uint64_t files = 0;  // inodes that are not directories
  uint64_t directories = 0;
  uint64_t names = 0;
  uint64_t orphans = 0;
  uint64_t xattrs = 0;
  uint64_t overlay_extents = 0;
  // Contents.
  uint64_t recipe_nodes = 0;       // shared nodes are counted once
  uint64_t chunks_referenced = 0;  // by recipes and overlays, also of snapshots; every
                                   // reference counts
  // Segments.
  uint64_t segments = 0;
  uint64_t blocks = 0;
  uint64_t chunks = 0;
  uint64_t segment_bytes = 0;
  uint64_t data_bytes = 0;      // uncompressed bytes whose names were verified; 0 without `data`
  uint64_t torn_tails = 0;      // legal results of a crash
  uint64_t leftover_files = 0;  // legal results of a crash
  uint64_t index_entries = 0;
  uint64_t stale_index_entries = 0;  // entries without a chunk: no findings

  uint64_t findings = 0;
  // Whether the last writable mount ended with an unmount; unset if metadata cannot be read.
  std::optional<bool> clean_shutdown;
};

// `env` must outlive the call.
Result<CheckReport> CheckStore(Env& env, const CheckOptions& options);

// Like CheckStore, but does not lock the store, because the caller holds the lock.
Result<CheckReport> CheckLockedStore(Env& env, const CheckOptions& options);

}  // namespace siltfs
