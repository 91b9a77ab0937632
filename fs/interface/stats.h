// The statistics of `siltfs stat`. Units: bytes and counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "index/chunk_index.h"
#include "index/slice_bloom/slice_bloom.h"
#include "index/slice_lsh/slice_lsh.h"

namespace siltfs {

// The choice of bases for deltas (fs/deltas/near_duplicates.h). Counts are since the mount.
struct DeltaStats {
  uint64_t segments = 0;             // with deltas
  uint64_t deltas = 0;               // chunks that were stored as deltas
  uint64_t saved_bytes = 0;          // by them, compared with their shares of the blocks before
  uint64_t examined = 0;             // chunks for which a base was looked for
  uint64_t candidates = 0;           // chunks that resemble them, according to SliceLSH
  uint64_t offered = 0;              // bases, after verification
  uint64_t memory_bytes = 0;         // of the names of chunks that stay whole
  std::optional<SliceLshStats> lsh;  // empty when read-only, or if its files cannot be used
};

// The last complete scrub.
struct LastScrub {
  int64_t ended_ns = 0;  // nanoseconds since 1970, UTC
  // What it found. The damage may have been repaired since.
  uint64_t damaged_blocks = 0;
  uint64_t damaged_chunks = 0;
  uint64_t damaged_footers = 0;
};

// What a store has found wrong with itself.
struct StoreHealth {
  // Blocks that were found to be damaged since the store was opened, and were not known before.
  uint64_t found_damaged_blocks = 0;
  std::optional<LastScrub> last_scrub;  // empty if the store was never verified as a whole
  std::string read_only_cause;          // empty unless a failure made the store read-only
};

struct FileSystemStats {
  std::string label;           // of the store; empty: it has none
  std::string uuid;            // of the store, as text
  uint64_t logical_bytes = 0;  // of all files: sizes less holes; a file with several names once
  uint64_t unique_bytes = 0;   // uncompressed bytes of the distinct chunks in use
  uint64_t stored_bytes = 0;   // all bytes of segment files, dead ones included
  // The part of stored_bytes in data segments that are not recompressed yet.
  uint64_t awaiting_recompression_bytes = 0;
  uint64_t dead_bytes = 0;  // as far as known
  uint64_t reserve_bytes = 0;
  uint64_t metadata_bytes = 0;
  uint64_t index_bytes = 0;  // of the chunk index, the segment guide and SliceLSH
  uint64_t files = 0;        // inodes that are not directories
  uint64_t directories = 0;
  uint64_t chunks_logical = 0;  // references from files to chunks
  uint64_t chunks_unique = 0;
  // Uncompressed bytes of chunks that were written and were no duplicates, since the mount.
  uint64_t added_bytes = 0;
  uint64_t sha1_collisions = 0;  // kept across mounts
  // Blocks and chunks known to be damaged. A chunk counts even if it was stored again after its
  // damage was found. The numbers are kept across mounts.
  uint64_t damaged_blocks = 0;
  uint64_t damaged_chunks = 0;
  uint64_t last_commit = 0;
  int64_t created_ns = 0;               // nanoseconds since 1970, UTC
  std::optional<LastScrub> last_scrub;  // empty if the store was never verified as a whole
  // The disk below the store: its size, and what new data of files can use of it. Both are 0 if the
  // disk could not be asked.
  uint64_t disk_bytes = 0;
  uint64_t disk_available_bytes = 0;
  // How this process cuts files and names chunks (chunker/scan/kernels.h, chunker/sha1/kernels.h).
  std::string chunker_kernel;
  std::string sha1_kernel;
  bool read_only = false;
  std::string read_only_cause;  // empty unless a failure made the store read-only
  IndexStats index;
  // The segment guide (fs/guide/segment_guide.h); empty if the store is used without one.
  std::optional<SliceBloomStats> guide;
  uint64_t guide_lookups = 0;        // names, since the mount
  uint64_t guide_uncovered = 0;      // segments that it does not cover
  std::optional<DeltaStats> deltas;  // empty if the store is without deltas
  // Segments that were read to search chunks without the index, since the mount.
  uint64_t segments_searched = 0;
  // The entries of segments that are put into the index in the background.
  struct IndexReplay {
    bool running = false;
    uint64_t segments_done = 0;
    uint64_t segments_total = 0;
  };
  IndexReplay index_replay;

  // Each ratio is 1 if one of its sides is 0.
  double DedupRatio() const;        // logical / unique
  double CompressionRatio() const;  // unique / (stored - dead)
  double TotalRatio() const;        // logical / (stored + metadata + index)
};

// The result of StoreMaintenance::Recompress. Units: bytes of segment files, and counts of
// segments.
struct RecompressionReport {
  uint64_t segments_rewritten = 0;
  uint64_t segments_kept = 0;  // not rewritten: recompression would save nothing
  uint64_t segments_left = 0;  // damaged, or not yet eligible
  uint64_t bytes_before = 0;   // of segments rewritten and kept
  uint64_t bytes_after = 0;
  uint64_t awaiting_recompression_bytes = 0;  // not recompressed yet, open segments included
  uint64_t delta_chunks = 0;                  // chunks that were stored as deltas
  uint64_t delta_saved_bytes = 0;             // by them
};

// The result of StoreMaintenance::CollectGarbage, or its estimate. Units: bytes of segment files,
// and counts.
struct GarbageReport {
  bool dry_run = false;
  uint64_t segments_checked = 0;
  uint64_t segments_removed = 0;
  uint64_t segments_left = 0;  // damaged
  uint64_t bytes_removed = 0;  // of the segments removed
  uint64_t bytes_copied = 0;   // live bytes copied into new segments
  uint64_t bytes_freed = 0;    // removed less copied
  uint64_t dead_bytes = 0;     // in the sealed segments that were not removed
  uint64_t live_chunks = 0;    // recipe nodes included, in sealed segments
  uint64_t dead_chunks = 0;    // before the collection
};

// The findings of a scrub since it began. If a scrub is interrupted and continued later, each call
// of StoreMaintenance::Scrub is a part of it. Units: counts, bytes of segment files.
struct ScrubReport {
  uint64_t segments = 0;
  uint64_t blocks = 0;
  uint64_t chunks = 0;  // recipe nodes included
  uint64_t bytes = 0;
  uint64_t damaged_blocks = 0;   // entirely or in part
  uint64_t damaged_chunks = 0;   // intact copies may exist elsewhere
  uint64_t damaged_footers = 0;  // of segments
  uint64_t damaged_files = 0;    // not fully readable; counted once the scrub is complete
  double seconds = 0;            // of this part
  bool resumed = false;          // an earlier part had been interrupted
  bool complete = false;         // false: this part was interrupted

  bool found_damage() const { return damaged_chunks + damaged_footers + damaged_files > 0; }
};

}  // namespace siltfs
