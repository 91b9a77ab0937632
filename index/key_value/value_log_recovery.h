// Finding out what a value log's directory holds when it is opened, and sealing what a crash has
// left unsealed.
//
// A segment whose file ends in a whole trailer is sealed: all of its blocks were durable before the
// footer was begun. Any other is salvaged: it keeps every block that is whole, also behind damage,
// for what lies behind a write that was lost may well be there. Only what holds no whole block and
// was never sealed is removed.
//
// Cost: of a sealed segment the trailer is read; an unsealed one is read whole and copied.
// Thread-safety: none needed, this is before anything else. Errors: Env's, also kNoSpace where the
// disk has no room for the copy; kNeedsNewer. Damage in a segment fails nothing, it is counted.
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

// A segment that is not written to any more.
struct ValueSegment {
  uint64_t file_bytes = 0;
  uint64_t data_end = kSegmentHeaderSize;  // where its last block ends
  uint64_t plain_bytes = 0;
  uint32_t records = 0;  // ordinals, to be exact: some may be lost
  bool readable = true;  // false: nothing of it is left, or it is another log's
};

struct FoundValueSegments {
  std::map<SegmentId, ValueSegment> segments;
  // What the incomplete ones hold (value_log_manifest.h), by name prefix.
  std::map<SegmentId, SegmentFooter> footers;
  uint64_t last_sequence = 0;
  uint64_t damaged = 0;  // stretches of bytes with blocks behind them, and segments of no use
  uint64_t bytes_written = 0;
};

struct RecoveredValueLog {
  ValueLogManifest manifest;
  FoundValueSegments segments;
};

// Makes what is missing in a new directory, durably. kCorruption if the manifest is damaged,
// missing where there are segments, or older than they are. After it, unless `read_only` (then
// nothing is written), all segments are sealed, and the manifest lists those that may be
// incomplete.
Result<RecoveredValueLog> RecoverValueLog(Env& env, const std::string& directory, bool read_only);

// Whether the footer has this record, at this very place.
bool FooterHolds(const SegmentFooter& footer, const ChunkName& name, const Location& location);

}  // namespace siltfs
