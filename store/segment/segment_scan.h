// Walks the blocks of a segment from front to back without believing anything but the blocks
// themselves: for Resume, replay into the index, salvage, scrub and fsck.
//
// Thread-safety: any thread. Memory: one block head, and one payload where payloads are verified.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/block_head.h"

namespace siltfs {

struct ScanOptions {
  // Where to start: a block's beginning.
  uint64_t from = kSegmentHeaderSize;
  // Everything below is known to have been durable: a bad block that begins there is damage, one
  // beyond a torn tail (DESIGN I4). Of a sealed segment: its trailer's data_end.
  uint64_t committed_length = 0;
  // Where to end at the latest: a sealed segment's data_end. 0: at the end of the file.
  uint64_t end = 0;
  bool verify_payloads = false;
  // Called for each damaged stretch [begin, end) below committed_length, after which the scan goes
  // on at the next block that is whole (its own failure ends the scan). Without it damage ends the
  // scan with kCorruption.
  std::function<Status(uint64_t begin, uint64_t end, const Status& cause)> on_damage = {};
};

// Called for each block in order with its head and offset; a failure ends the scan and is returned.
using BlockVisitor = std::function<Status(const BlockHead& head, uint32_t offset)>;

struct ScanResult {
  uint64_t valid_end = 0;      // where the last whole block ends
  bool torn = false;           // there are bytes beyond valid_end, and they are not a block
  std::string stopped_reason;  // what is wrong with what begins at valid_end; empty unless torn
  uint32_t blocks = 0;
  uint32_t end_ordinal = 0;  // one beyond the last block's last; 0 without a block
  uint64_t plain_bytes = 0;
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
};

// A block counts if its head is whole, of this segment, continues the ordinals and has a higher
// sequence than the one before. kCorruption for damage (see ScanOptions::on_damage), also where the
// file ends below committed_length; kIoError from the device; kNeedsNewer for a whole block with
// things in it that this code doesn't know.
Result<ScanResult> ScanBlocks(const File& file, const SegmentIdentity& identity,
                              const ScanOptions& options, const BlockVisitor& visitor);

}  // namespace siltfs
