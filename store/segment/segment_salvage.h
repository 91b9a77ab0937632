// Seals the whole blocks of an unsealed segment after an unclean shutdown. The result is an
// ordinary sealed segment with the same id, ordinals and offsets; nothing is ever appended to it
// again.
//
// A new file beside the old one gets the whole blocks and a footer, is synced and renamed over it:
// after a power cut at any time either the old or the new file exists. Salvage does not work in
// place, because the page cache may hold bytes that an earlier failed sync has dropped: only copies
// are certain to reach the device. If the disk has no room for a copy, it works in place: bytes
// beyond committed_length are overwritten with themselves and synced, and the footer is appended.
// It can be repeated safely. An existing footer is written again, because a process may have been
// killed before its sync.
//
// Call it for segments without a whole footer. If the last commit lists the segment as open, its
// committed length is the one listed there. Otherwise it was created after that commit (the header
// holds the last commit before its creation), and the length is 0. If the header's commit is older
// than that, the segment was sealed once, and its footer is damaged: set on_damage to find the
// remaining blocks.
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
  // Called for each damaged range below committed_length. The damaged bytes are kept in place, so
  // that later blocks keep their offsets; reading them still fails. Without it, salvage of a
  // damaged segment changes nothing and returns kCorruption.
  std::function<Status(uint64_t begin, uint64_t end, const Status& cause)> on_damage = {};
  // The kind for a damaged header that must be rewritten. Used only with on_damage; a damaged
  // header is damage, too.
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

// kCorruption for damage (see above) and for a damaged header of a segment with committed bytes.
// Durable on return.
Result<SalvageResult> SalvageSegment(Env& env, const std::string& store,
                                     const SegmentIdentity& identity,
                                     const SalvageOptions& options);

}  // namespace siltfs
