// Seals the whole blocks of an unsealed segment after an unclean shutdown, and puts the segment
// into the SegmentStore. The result is an ordinary sealed segment with the same id, ordinals and
// offsets; nothing is ever appended to it again.
//
// Salvage writes the whole blocks and a footer to a new local file, and syncs it. Then the new file
// replaces the segment's file. After a power cut at any time the segment has either the old or the
// new content. Salvage does not work in place, because the page cache may hold bytes that never
// reached the device: after a failed sync, the kernel does not write them again. Only copies are
// certain to reach the device. But if the disk has no room for a copy, salvage works in place: it
// overwrites the bytes beyond committed_length with themselves, syncs them, and appends the footer.
// Salvage can be repeated safely. It writes an existing footer again, because a process may have
// been killed before the footer was synced.
//
// Call SalvageSegment for each segment that the last commit does not list as sealed. Such a segment
// may have a footer nevertheless. Set committed_length as follows:
// - If the last commit lists the segment as open: to the committed length in that list.
// - If the last commit does not list the segment, and the segment was created after that commit:
//   to 0.
// The segment's header holds the last commit before its creation. If this commit is older than the
// last commit, and the last commit does not list the segment as open, the segment was sealed once,
// and its footer is damaged. In this case set on_damage, so that salvage finds the remaining
// blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/segment_footer.h"
#include "store/segment/segment_store.h"

namespace siltfs {

struct SalvageOptions {
  // Every byte below this offset was durable at the last commit.
  uint64_t committed_length = 0;
  // Called for each damaged range below committed_length. The damaged bytes are kept in place, so
  // that later blocks keep their offsets; reading the damaged bytes still fails. Without this
  // function, salvage of a damaged segment changes nothing and returns kCorruption.
  std::function<Status(uint64_t begin, uint64_t end, const Status& cause)> on_damage = {};
  // The kind to write if the header is damaged and must be rewritten. Used only with on_damage,
  // because a damaged header is damage, too.
  SegmentKind kind = SegmentKind::kData;
};

enum class SalvageOutcome : uint8_t {
  kAlreadySealed,  // with a whole footer; its contents are unchanged
  kSealed,         // sealed by this call
  kRemoved,        // had no block, and nothing in it was ever committed
};

struct SalvageResult {
  SalvageOutcome outcome = SalvageOutcome::kAlreadySealed;
  SegmentTrailer trailer;        // of the sealed segment; empty after kRemoved
  uint64_t discarded_bytes = 0;  // of the torn tail
};

// Salvages a segment; durable on return. The segment is in its file in the store's directory, or
// was put into `segments` just before the crash. Without on_damage, kCorruption for damage below
// committed_length, and for a damaged header of a segment with committed bytes.
Result<SalvageResult> SalvageSegment(Env& env, const std::string& store, SegmentStore& segments,
                                     const SegmentIdentity& identity,
                                     const SalvageOptions& options);
// The same, for a directory in which sealed segments stay (DirectorySegmentStore).
Result<SalvageResult> SalvageSegment(Env& env, const std::string& store,
                                     const SegmentIdentity& identity,
                                     const SalvageOptions& options);

}  // namespace siltfs
