#include "fs/gc/collection_pace.h"

#include <algorithm>
#include <utility>

namespace siltfs {
namespace {

// During the mark, a collection in the background rests this many times as long as it works, but at
// most kLongestRest at once.
constexpr int kRestPerWork = 3;
constexpr std::chrono::milliseconds kLongestRest{50};
// While the store is in use, each rest takes kLongerInUse times as long. But if the store is in use
// and less than one part in kNearlyFull of the disk is free, there are no rests.
constexpr int kLongerInUse = 4;
constexpr uint64_t kNearlyFull = 16;

}  // namespace

CollectionPace::CollectionPace(Env& env, const SegmentLog& log, const StoreActivity& activity,
                               BackgroundJob& job, Options options)
    : env_(env), log_(log), activity_(activity), job_(job), options_(std::move(options)) {}

Status CollectionPace::Pace(uint64_t bytes) {
  if (in_background() && options_.bytes_per_second > 0)
    Rest(std::chrono::nanoseconds(1'000'000'000 * bytes / options_.bytes_per_second));
  SILTFS_RETURN_IF_ERROR(log_.failure());
  return CheckRunning();
}

MarkPace CollectionPace::PaceOfMark() {
  return [this, last = env_.MonotonicNanoseconds()]() mutable {
    SILTFS_RETURN_IF_ERROR(CheckRunning());
    if (!in_background()) return Status::Ok();
    const std::chrono::nanoseconds worked(env_.MonotonicNanoseconds() - last);
    Rest(std::min<std::chrono::nanoseconds>(worked * kRestPerWork, kLongestRest));
    last = env_.MonotonicNanoseconds();
    return Status::Ok();
  };
}

void CollectionPace::Rest(std::chrono::nanoseconds pause) {
  // Users of the store come first, unless the disk is nearly full.
  if (!activity_.IsQuiet()) {
    if (IsNearlyFull()) return;
    pause *= kLongerInUse;
  }
  job_.Rest(pause);
}

bool CollectionPace::IsNearlyFull() const {
  const auto space = env_.GetDiskSpace(options_.store);
  return space.ok() && space->available_bytes < space->total_bytes / kNearlyFull;
}

void CollectionPace::Run(const std::function<void()>& work) const {
  if (!in_background()) return work();
  BackgroundJob::RunOnIdleThread(work);
}

}  // namespace siltfs
