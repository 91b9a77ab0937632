#include "fs/guide/guide_updater.h"

#include <utility>

#include "store/segment/segment_names.h"

namespace siltfs {
namespace {

constexpr std::chrono::minutes kAfterNoSpace{10};
constexpr std::chrono::milliseconds kBetween{100};

}  // namespace

Status CoverWaiting(SegmentGuide& guide, SegmentStore& segments, const StoreUuid& uuid,
                    const std::function<Status(uint64_t covered)>& go_on) {
  uint64_t covered = 0;
  for (;;) {
    const SegmentId id = guide.NextWaiting();
    if (id == kNoSegment) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(go_on(covered));
    const auto names = ReadNamePrefixes(segments, {uuid, id});
    if (!names.ok()) {
      names.status().IgnoreError("the segment stays uncovered, and searches read it");
      guide.GiveUp(id);
      continue;
    }
    SILTFS_RETURN_IF_ERROR(guide.Cover(id, *names));
    ++covered;
  }
}

GuideUpdater::GuideUpdater(Env& env, SegmentGuide& guide, SegmentStore& segments, GoneSegments gone,
                           Options options)
    : guide_(guide),
      segments_(segments),
      gone_(std::move(gone)),
      options_(std::move(options)),
      job_(env, {.store = options_.store,
                 .interrupted = "the update of the segment guide was interrupted",
                 .wait = options_.wait}) {}

GuideUpdater::~GuideUpdater() { job_.Stop(); }

void GuideUpdater::Add(SegmentId segment, const SegmentRecord& record) {
  if (!record.sealed || record.chunks == 0) return;
  guide_.NoteSealed(segment);
  job_.Wake();
}

void GuideUpdater::StartInBackground() {
  BackgroundJob::Loop loop;
  loop.has_work = [this] { return guide_.NextWaiting() != kNoSegment; };
  loop.poll = kBetween;
  loop.work = [this] { return PassInBackground(); };
  job_.Start(std::move(loop));
}

void GuideUpdater::Stop() {
  job_.Stop();
  guide_.DropGone([this](SegmentId id) { return gone_.Contains(id); })
      .IgnoreError("the next mount drops them");
}

Status GuideUpdater::CoverAll() {
  SILTFS_RETURN_IF_ERROR(guide_.DropGone([this](SegmentId id) { return gone_.Contains(id); }));
  return CoverWaiting(guide_, segments_, options_.uuid,
                      [this](uint64_t) { return job_.CheckRunning(); });
}

Status GuideUpdater::Update() {
  const BackgroundJob::Caller caller(job_);
  const BackgroundJob::Run run(job_, BackgroundJob::Runner::kCaller);
  return CoverAll();
}

std::chrono::nanoseconds GuideUpdater::PassInBackground() {
  const BackgroundJob::Run run(job_, BackgroundJob::Runner::kBackground);
  const Status passed = CoverAll();
  passed.IgnoreError("the guide has reported it, or has no room now");
  if (passed.Is(StatusCode::kNoSpace)) return kAfterNoSpace;
  return std::chrono::nanoseconds(0);
}

}  // namespace siltfs
