// Seals what is left of an unsealed segment after an unclean shutdown. From then on it is a segment
// like any other, with the same id, ordinals and offsets; nothing is ever appended to it again
// (DESIGN section 2).
//
// A new file beside the old one gets the whole blocks and a footer, is synced and renamed over it:
// after a power cut at any instant there is the old file or the new one. It is not done in place,
// for the page cache may hold bytes that an earlier failed sync has dropped: only copies are sure
// to be written. On a disk without the room for that it is done in place all the same: what lies
// behind committed_length is written over with itself and synced, and the footer added behind it.
// Running it again does no harm. A footer that is there already need not be durable, as a process
// may have died before its sync: it is written once more.
//
// Which segments to call this for, and with what committed length: those without a whole footer. A
// segment that the last commit lists as open has the length listed there. One that it doesn't list
// was begun after that commit (the header says the commit it was begun after) and has 0; if the
// header's commit is older than that, then it was sealed once, and the footer is damaged: ask with
// on_damage to see what is left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

struct SalvageOptions {
  // Every byte below was durable at the last commit.
  uint64_t committed_length = 0;
  // Called for each damaged stretch below committed_length. The bytes are then kept as they are, in
  // their place, so that what lies behind them keeps its place; reading them goes on to fail.
  // Without it damage changes nothing at all and is returned as kCorruption.
  std::function<Status(uint64_t begin, uint64_t end, const Status& cause)> on_damage = {};
  // What a header that must be written anew will say. Of use with on_damage only; a damaged header
  // is damage, too.
  SegmentKind kind = SegmentKind::kData;
};

enum class SalvageOutcome : uint8_t {
  kAlreadySealed,  // with a whole footer; what it holds is as it was
  kSealed,         // now it is
  kRemoved,        // held no block, and nothing in it was ever committed
};

struct SalvageResult {
  SalvageOutcome outcome = SalvageOutcome::kAlreadySealed;
  SegmentTrailer trailer;        // of the sealed segment; empty after kRemoved
  uint64_t discarded_bytes = 0;  // of the torn tail
};

// kCorruption for damage (see above) and for a segment whose header is damaged though something in
// it was committed. Durable on return.
Result<SalvageResult> SalvageSegment(Env& env, const std::string& store,
                                     const SegmentIdentity& identity,
                                     const SalvageOptions& options);

}  // namespace siltfs
