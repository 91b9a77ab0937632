#include "fs/fuse/failure_log.h"

#include "store/base/notice.h"

namespace siltfs::fuse {
namespace {

bool IsNews(StatusCode code) {
  switch (code) {
    case StatusCode::kIoError:
    case StatusCode::kCorruption:
    case StatusCode::kAborted:
    case StatusCode::kOutOfMemory:
      return true;
    default:
      return false;
  }
}

}  // namespace

void FailureLog::Add(const Status& status) {
  if (!IsNews(status.code())) return;
  const int64_t now = clock_();
  const MutexLock lock(mutex_);
  if (now - period_start_ >= kPeriodNanoseconds) {
    if (left_out_ > 0) log_->error("{} more failures were not logged", left_out_);
    period_start_ = now;
    logged_ = 0;
    left_out_ = 0;
  }
  if (logged_ < kMostPerPeriod) {
    ++logged_;
    const Notice notice(status);
    const NoticeScope scope(notice);
    log_->error("{}", notice.sentence);
  } else {
    ++left_out_;
  }
}

}  // namespace siltfs::fuse
