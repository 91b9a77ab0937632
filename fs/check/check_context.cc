#include "fs/check/check_context.h"

#include <algorithm>
#include <utility>

#include "fs/segments/fenced_writer.h"

namespace siltfs {
namespace {

constexpr int64_t kProgressNanoseconds = 100'000'000;

}  // namespace

bool IsDamage(const Status& status) {
  switch (status.code()) {
    case StatusCode::kCorruption:
    case StatusCode::kIoError:
    case StatusCode::kNotFound:
    case StatusCode::kNotADirectory:  // a file in the place of a directory, or the reverse
    case StatusCode::kIsADirectory:
    case StatusCode::kNeedsNewer:
    case StatusCode::kInvalidArgument:
      return true;
    default:
      return false;
  }
}

CheckContext::CheckContext(Env& environment, const CheckOptions& check_options)
    : env(environment),
      options(check_options),
      segment_store(OpenSegmentStore(env, options.store, options.segments)) {}

bool CheckContext::IsLeftover(SegmentId id) const {
  if (std::binary_search(removed.begin(), removed.end(), id)) return true;
  return records_known && RecordOf(id) == nullptr && IsNotLost(*segment_store, id, floors, former);
}

const SegmentRecord* CheckContext::RecordOf(SegmentId id) const {
  const auto found = segments.find(id);
  return found == segments.end() ? nullptr : &found->second;
}

void CheckContext::Report(Finding finding) {
  if (taker_) return taker_(std::move(finding));
  MutexLock lock(mutex_);
  ++report_.findings;
  if (options.on_finding) options.on_finding(finding);
}

void CheckContext::HoldBack(Finding not_indexed) {
  MutexLock lock(mutex_);
  held_back_.push_back(std::move(not_indexed));
}

void CheckContext::ReportHeldBack(bool knows) {
  std::vector<Finding> findings;
  {
    MutexLock lock(mutex_);
    findings.swap(held_back_);
  }
  if (knows && !reference_not_indexed_) return;
  if (records_known && !notes_kept) return;
  for (Finding& finding : findings) Report(std::move(finding));
}

void CheckContext::Report(std::string code, const Status& failure) {
  Report({.code = std::move(code),
          .path = failure.path().empty() ? store() : std::string(failure.path()),
          .offset = failure.offset(),
          .message = std::string(failure.cause())});
}

void CheckContext::Progress(const CheckProgress& progress) {
  if (!options.on_progress) return;
  const int64_t now = env.MonotonicNanoseconds();
  MutexLock lock(mutex_);
  if (progress.done != 0 && now - last_progress_ < kProgressNanoseconds) return;
  last_progress_ = now;
  options.on_progress(progress);
}

Status CheckContext::Continue() const {
  if (!options.interrupted || !options.interrupted()) return Status::Ok();
  return Status(StatusCode::kInterrupted, "the check was interrupted").At(store());
}

CheckReport CheckContext::report() const {
  MutexLock lock(mutex_);
  return report_;
}

void CheckContext::AddDamaged(const ChunkName& name) {
  MutexLock lock(mutex_);
  if (damaged_.size() < kMostDamagedNames) damaged_.insert(name);
}

bool CheckContext::IsHidden(uint64_t inode) const {
  return std::any_of(hidden.begin(), hidden.end(),
                     [inode](const HiddenRange& range) { return range.Contains(inode); });
}

void CheckContext::SetChunksIn(SegmentId id, uint32_t chunks) {
  MutexLock lock(mutex_);
  chunks_in_[id] = chunks;
}

uint32_t CheckContext::ChunksIn(SegmentId id) const {
  MutexLock lock(mutex_);
  const auto found = chunks_in_.find(id);
  return found == chunks_in_.end() ? 0 : found->second;
}

bool CheckContext::IsDamaged(const ChunkName& name) const {
  MutexLock lock(mutex_);
  return damaged_.contains(name);
}

}  // namespace siltfs
