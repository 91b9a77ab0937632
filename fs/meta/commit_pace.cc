#include "fs/meta/commit_pace.h"

#include <algorithm>

namespace siltfs {

CommitPace::Time CommitPace::Due(Time first_change, Time last_change) const {
  const Time latest = first_change + interval_;
  if (quiet_ <= Time::zero()) return latest;
  Time early = std::max(last_change + quiet_, rested_);
  if (spent_ != Time::min()) early = std::max(early, Time(spent_ - (kBurst - 1) * kRefill));
  return std::min(early, latest);
}

void CommitPace::Committed(Time began, Time ended, bool early) {
  rested_ = ended + kRest * (ended - began);
  if (early) spent_ = std::max(spent_, began) + kRefill;
}

}  // namespace siltfs
