// Opens a value log's directory: finds its segments and seals those that a crash left unsealed.
//
// A segment is sealed if its file ends in a whole trailer, because the footer is written only after
// all blocks are durable. Any other segment is salvaged: it keeps every whole block, also blocks
// behind damaged bytes, because blocks after a lost write may have survived. A segment is removed
// only if it was never sealed and has no whole block.
//
// Cost: the trailer of a sealed segment is read. An unsealed segment is read whole, and copied if
// the disk has room. Thread-safety: none needed; it runs before other calls. Errors: Env's, also
// kNoSpace if the disk has too little room to seal a segment; kNeedsNewer. Damage in a segment is
// counted and is no error.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "index/key_value/value_log_manifest.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

// A segment that is no longer written.
struct ValueSegment {
  uint64_t file_bytes = 0;
  uint64_t data_end = kSegmentHeaderSize;  // end of its last block
  uint64_t plain_bytes = 0;
  uint32_t records = 0;  // number of ordinals; some records may be lost
  bool readable = true;  // false: no part of it is readable, or it belongs to another log
};

struct FoundValueSegments {
  std::map<SegmentId, ValueSegment> segments;
  // The records in incomplete segments (value_log_manifest.h), by name prefix.
  std::map<SegmentId, SegmentFooter> footers;
  uint64_t last_sequence = 0;
  uint64_t damaged = 0;  // damaged stretches followed by blocks, and unreadable segments
  uint64_t bytes_written = 0;
};

struct RecoveredValueLog {
  ValueLogManifest manifest;
  FoundValueSegments segments;
};

// Opens the directory. In a new directory it creates the missing files, durably. kCorruption if the
// manifest is damaged, is missing although there are segments, or is older than the segments. With
// `read_only` nothing is written; otherwise all segments are sealed afterwards, and the manifest
// lists those that may be incomplete.
Result<RecoveredValueLog> RecoverValueLog(Env& env, const std::string& directory, bool read_only);

// Whether the footer has this record at exactly this place.
bool FooterHolds(const SegmentFooter& footer, const ChunkName& name, const Location& location);

}  // namespace siltfs
