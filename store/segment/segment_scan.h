// Scans the blocks of a segment from front to back. Uses no table of blocks, only the blocks
// themselves. Used by SegmentWriter::Resume, replay into the index, salvage, scrub and fsck.
//
// Thread-safety: any thread. Memory: one block head, and one payload if payloads are verified.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/block_head.h"

namespace siltfs {

struct ScanOptions {
  // The offset to start from: the beginning of a block.
  uint64_t from = kSegmentHeaderSize;
  // All bytes below this offset were durable. A bad block that begins below this offset is damage.
  // A bad block that begins at or beyond it is a torn tail (I4 in docs/crash-model.md). For a
  // sealed segment: its trailer's data_end.
  uint64_t committed_length = 0;
  // The offset to end at: data_end for a sealed segment; 0: the end of the file.
  uint64_t end = 0;
  bool verify_payloads = false;
  // Called for each damaged range [begin, end) below committed_length; the scan then continues at
  // the next whole block. If the callback fails, the scan ends. Without a callback, damage ends the
  // scan with kCorruption.
  std::function<Status(uint64_t begin, uint64_t end, const Status& cause)> on_damage = {};
};

// Called for each block in order; a failure ends the scan and is returned.
using BlockVisitor = std::function<Status(const BlockHead& head, uint32_t offset)>;

struct ScanResult {
  uint64_t valid_end = 0;      // end of the last whole block
  bool torn = false;           // the bytes beyond valid_end are not a block
  std::string stopped_reason;  // why the bytes at valid_end are no block; empty unless torn
  uint32_t blocks = 0;
  uint32_t end_ordinal = 0;  // end of the last block's ordinals; 0 without a block
  uint64_t plain_bytes = 0;
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
};

// Calls `visitor` for the blocks of the file. A block counts if its head is intact, belongs to this
// segment, continues the ordinals and has a higher sequence than the previous one. kCorruption for
// damage (see ScanOptions::on_damage), including a file that ends below committed_length; kIoError
// from the device; kNeedsNewer for a whole block with values unknown to this code.
Result<ScanResult> ScanBlocks(const ReadableFile& file, const SegmentIdentity& identity,
                              const ScanOptions& options, const BlockVisitor& visitor);

}  // namespace siltfs
