// Recompresses a sealed data segment: replaces it by a segment with larger blocks and another
// compression. Id, ordinals, chunk records and footer entries stay the same, so the index needs no
// update (docs/format.md, "Replacing a sealed segment"). Only the offsets of blocks change, and an
// index entry uses its offset only as a hint.
//
// There are two steps, so that the caller can record its intent durably in between. PrepareRewrite
// makes the new content in a local file, syncs it and reads it back. SegmentStore::Replace then
// makes it the segment's content. After a power cut at any time the segment has either the old or
// the new content, complete. A reader that was opened before continues to read the old content.
//
// Chunks may become deltas against bases that a BaseChooser offers (delta_selection.h).
//
// A merged block's sequence and commit number are the highest of its source blocks: sequences stay
// ascending, and no block claims to be older than one of its chunks.
//
// Thread-safety: any thread, one rewrite of a segment at a time. Memory: a few blocks, the footer's
// tables, 24 bytes per block, 60 bytes per delta and per base, and one base. Nothing may append to
// the segment.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/base_chooser.h"
#include "store/segment/base_source.h"
#include "store/segment/block_codec.h"
#include "store/segment/segment_footer.h"
#include "store/segment/segment_store.h"

namespace siltfs {

struct RewriteOptions {
  Compression compression;
  // Blocks are merged until they hold this many bytes. No block is split.
  uint32_t block_plain_bytes = 512U << 10;
  // Called with 0 before the first block is read, then after each block that is read from the old
  // or the new file, with the block's uncompressed bytes. The function may wait. If it fails, the
  // rewrite ends and leaves no new file. May be empty.
  std::function<Status(uint64_t plain_bytes)> pace = {};
  // Inflates the deltas of the old segment and, when the new file is read back, those of the new
  // one. Needed if the segment has deltas, or if there is a chooser.
  BaseSource* bases = nullptr;
  // Null: no chunk becomes a delta that was none. Not used without compression.
  BaseChooser* chooser = nullptr;
};

struct PreparedRewrite {
  SegmentTrailer before;
  SegmentTrailer after;
  // False if the rewrite would save less than 2 % (kLeastRewriteSavingPercent). In this case there
  // is no new file.
  bool worthwhile = false;
  // The chunks of the new file that are deltas, and the bytes by which their shares of the old
  // blocks were larger. 0 if there is no new file.
  uint32_t deltas = 0;
  uint64_t delta_saved_bytes = 0;
};

inline constexpr uint64_t kLeastRewriteSavingPercent = 2;

// Makes the new content in the local file that BuiltReplacement names (segment_source.h).
// kCorruption if the segment is damaged anywhere or lacks chunks; kInvalidArgument if it is not a
// sealed data segment, or if `bases` is needed and missing. Also returns kIoError, kNoSpace, and
// failures of `pace`, of `chooser` and of `bases`. After a failure the segment is unchanged and the
// new file is removed, if possible.
Result<PreparedRewrite> PrepareRewrite(Env& env, const std::string& store, SegmentStore& segments,
                                       const SegmentIdentity& identity, const BlockCodec& codec,
                                       const RewriteOptions& options);

// Removes a prepared file durably. Does nothing if there is none.
Status DiscardRewrite(Env& env, const std::string& store, SegmentId id);

}  // namespace siltfs
