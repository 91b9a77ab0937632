// Writes a sealed data segment anew with larger blocks and another compression, to take the old
// one's place: same id, same ordinals, same chunk records, same footer entries, so that the index
// need not be told (DESIGN section 2: replaced as a whole). Only where its blocks begin changes,
// which index entries have as a hint.
//
// In two steps, so that the caller can write down durably what is about to happen in between.
// Prepare makes the new file beside the old one, durable, and reads it back; Install renames it
// over the old one. After a power cut at any instant there is the old file or the new one, whole.
// Who has the old file open goes on reading it.
//
// A merged block's sequence and commit number are the highest of those that went into it: sequences
// keep ascending, and no block claims to be older than one of its chunks.
//
// Thread-safety: any thread, one rewrite of a segment at a time. Memory: a few blocks, the footer's
// table, and 24 bytes for each block. Nothing may append to the segment any more.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/block_codec.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

struct RewriteOptions {
  Compression compression;
  // Blocks are merged until they hold this much; none is ever split.
  uint32_t block_plain_bytes = 512U << 10;
  // Called with 0 before the first block is read, and after each block of the old file and of the
  // new one with the plain bytes it holds. A failure ends the rewrite, which leaves nothing behind.
  // May wait. May be empty.
  std::function<Status(uint64_t plain_bytes)> pace = {};
};

struct PreparedRewrite {
  SegmentTrailer before;
  SegmentTrailer after;
  // False: it would save less than 2 % (kLeastRewriteSavingPercent), and no new file is there.
  bool worthwhile = false;
};

inline constexpr uint64_t kLeastRewriteSavingPercent = 2;

// kCorruption for a segment that is damaged anywhere, or that lacks chunks; kInvalidArgument for
// one that is not sealed or holds no data; kIoError, kNoSpace, and what `pace` returns. After every
// failure the segment is as it was and no new file is there, as far as it could be removed.
Result<PreparedRewrite> PrepareRewrite(Env& env, const std::string& store,
                                       const SegmentIdentity& identity, const BlockCodec& codec,
                                       const RewriteOptions& options);

// Puts the prepared file in the old one's place, durably. After a failure either may be there.
Status InstallRewrite(Env& env, const std::string& store, SegmentId id);

// Removes a prepared file, durably. Does nothing if there is none.
Status DiscardRewrite(Env& env, const std::string& store, SegmentId id);

}  // namespace siltfs
