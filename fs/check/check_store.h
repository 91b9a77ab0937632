// Checks a store that nobody has mounted, from the superblock to the last chunk, and writes
// nothing: what `siltfs fsck -n` does.
//
// What a legal crash leaves (docs/crash-model.md) is no finding: torn tails, segments begun after
// the last commit, replacements that were not renamed, index entries that the next mount puts
// again. A thing that is damaged does not keep the rest from being checked.
//
// Order: superblock, metadata's structure, segments (with `data` their contents, too), index, and
// in the end every file's recipe down to its chunks. Memory: bounded, some 64 MiB beside RocksDB's,
// whatever the size of the store; where a table would outgrow its bound, metadata is read several
// times. Exceptions: a node of a recipe that the index does not find makes a list of all nodes, 24
// bytes each; a node above the leaves of recipes takes 25 bytes (4 MiB in a store of 10 TB), and so
// does a leaf with chunks that are lost.
//
// Thread-safety: CheckStore may run in any thread; the store is locked while it does. Errors: none
// for damage, which is a finding, however bad. kNotFound if there is no store, kInUse if someone
// has it mounted, kNeedsNewer for a later version's, kInterrupted, and what keeps the check from
// being done at all.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// One thing that is wrong.
struct Finding {
  std::string code;  // stable, for machines: "link-count", "block-payload"; siltfs(8) lists them
  // Where: a file of the store; or, of a file's content, the path in the file system, if there is
  // one.
  std::string path;
  std::optional<uint64_t> offset = {};  // bytes, in that file
  std::optional<uint64_t> inode = {};
  std::string message;  // one sentence
};

// Bytes of a file that nobody can read any more: their chunk, or the node of the recipe that leads
// to it, is damaged or nowhere.
struct LostRange {
  uint64_t inode = 0;
  uint64_t offset = 0;  // in the file
  uint64_t length = 0;

  auto operator<=>(const LostRange&) const = default;
};

struct CheckProgress {
  std::string_view phase;  // "metadata", "segments", "index", "contents"
  uint64_t done = 0;       // inodes, bytes, entries or files
  uint64_t total = 0;      // 0: not known
};

struct CheckOptions {
  std::string store;     // path
  bool data = false;     // read all data, too, and name every chunk anew
  unsigned threads = 1;  // that read segments
  // Report every chunk outside noted segments to which the index does not lead, though nothing
  // refers to it (I6 in docs/crash-model.md): for tests. Entries that rot took from the index are
  // findings then, too.
  bool copies = false;
  // Called with one finding after another, by any thread, never by two at once.
  std::function<void(const Finding&)> on_finding;
  // Called with every range that is lost, in no order; each is part of a finding, which may come
  // later.
  std::function<void(const LostRange&)> on_lost;
  // The same; some times a second.
  std::function<void(const CheckProgress&)> on_progress;
  // Asked now and then by any thread; true ends the check with kInterrupted.
  std::function<bool()> interrupted;

  // Bounds of tables, lowered by tests.
  size_t inodes_a_pass = size_t{1} << 19;          // 40 bytes each
  size_t unresolved_references = size_t{1} << 18;  // 80 bytes each
};

// What was looked at.
struct CheckReport {
  // Metadata.
  uint64_t files = 0;  // inodes that are not directories
  uint64_t directories = 0;
  uint64_t names = 0;
  uint64_t orphans = 0;
  uint64_t xattrs = 0;
  uint64_t overlay_extents = 0;
  // Contents.
  uint64_t recipe_nodes = 0;       // shared ones once
  uint64_t chunks_referenced = 0;  // by recipes and overlays, repeated ones each time
  // Segments.
  uint64_t segments = 0;
  uint64_t blocks = 0;
  uint64_t chunks = 0;
  uint64_t segment_bytes = 0;
  uint64_t data_bytes = 0;      // plain bytes that were named anew; 0 without `data`
  uint64_t torn_tails = 0;      // left by a crash
  uint64_t leftover_files = 0;  // the same
  uint64_t index_entries = 0;
  uint64_t stale_index_entries = 0;  // that lead nowhere: hints, no findings

  uint64_t findings = 0;
  // The last mount for writing was ended by an unmount; empty if metadata cannot tell.
  std::optional<bool> clean_shutdown;
};

// `env` must outlive the call.
Result<CheckReport> CheckStore(Env& env, const CheckOptions& options);

// The same for who holds the store's lock.
Result<CheckReport> CheckLockedStore(Env& env, const CheckOptions& options);

}  // namespace siltfs
