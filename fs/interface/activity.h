// What an open store is doing: counters for `siltfs stat --watch`. Reading them is cheap, and
// changes nothing.
#pragma once

#include <cstdint>

#include "store/base/progress_meter.h"

namespace siltfs {

// Units: bytes and counts. Counters are since the store was opened, and never decrease.
struct StoreActivityReport {
  int64_t monotonic_ns = 0;  // when the counters were read, by the monotonic clock
  // Content that programs read and wrote, imports and exports included.
  uint64_t read_bytes = 0;
  uint64_t reads = 0;
  uint64_t written_bytes = 0;
  uint64_t writes = 0;
  // Data chunks that were cut from written content, duplicates included.
  uint64_t put_bytes = 0;
  uint64_t put_chunks = 0;
  uint64_t put_chunks_found_in_memory = 0;  // without a lookup in the index
  uint64_t added_bytes = 0;                 // of chunks that were no duplicates
  // The cache of decoded blocks.
  uint64_t block_hits = 0;
  uint64_t blocks_decoded = 0;

  struct Index {
    uint64_t lookups = 0;
    uint64_t flash_reads = 0;
    uint64_t flash_bytes_written = 0;
    uint64_t conversions = 0;
    uint64_t merges = 0;
    uint64_t merge_backlog = 0;  // now: component stores that wait
  };
  Index index;

  // A maintenance job. `bytes` are those of segment files.
  struct Job {
    bool running = false;
    uint64_t bytes = 0;
    WorkProgress progress = {};  // of the run that runs now
  };
  Job recompression;  // bytes that were recompressed, before the recompression
  Job gc;             // bytes of the segments that were removed
  Job scrub;          // bytes that were verified

  // Now.
  uint64_t stored_bytes = 0;
  uint64_t dead_bytes = 0;
  uint64_t awaiting_recompression_bytes = 0;
  uint64_t damaged_blocks = 0;
  uint64_t disk_available_bytes = 0;  // 0 if the disk could not be asked
  bool read_only = false;             // a failure has made the store read-only
};

}  // namespace siltfs
