// A segment as of the last commit: the value of the key (segment id). Bytes of the file up to
// `length` are committed. A bad block below `length` is damage; a bad block beyond it is a torn
// tail (docs/crash-model.md, I4).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/location.h"
#include "store/base/result.h"

namespace siltfs {

struct SegmentRecord {
  uint8_t kind = 0;  // as in the segment's header
  bool sealed = false;
  uint64_t length = 0;  // bytes of the file that are durable
  uint64_t chunks = 0;
  uint64_t plain_bytes = 0;
  uint64_t first_sequence = 0;  // of its blocks; both sequences are 0 if it has no blocks
  uint64_t last_sequence = 0;
  // Sealed and in its final form: not recompressed again.
  bool recompressed = false;
  // Sealed, and some chunks are deltas: the footer has a base table (docs/format.md, "Footer").
  bool deltas = false;

  bool operator==(const SegmentRecord&) const = default;

  std::string Encode() const;
  // kCorruption if the record is malformed or has an unknown flag.
  static Result<SegmentRecord> Decode(std::string_view value);
};

// Records of several segments, in ascending order of their ids.
using SegmentRecords = std::vector<std::pair<SegmentId, SegmentRecord>>;

// The ranges of numbers that were claimed durably before use, so that no number is used twice: the
// value of kIdRangesKey.
struct IdRanges {
  uint64_t epoch = 0;          // counts writable mounts; block sequences start at epoch << 40
  uint64_t inode_limit = 2;    // no inode number at or above it has been used
  uint32_t segment_limit = 1;  // no segment id at or above it has been used
  bool clean = true;           // the last writable mount was closed

  std::string Encode() const;
  static Result<IdRanges> Decode(std::string_view value);
};

}  // namespace siltfs
