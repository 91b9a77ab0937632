// Brings the segment guide up to date: enters the names of sealed segments, and drops segments that
// garbage collection has removed.
//
// Thread-safety: Add from any thread; the rest as BackgroundJob. Ownership: borrows the guide and
// the segments, which must outlive it. Memory: 8 bytes for each chunk of one segment. Errors: an
// unreadable segment stays uncovered; after kNoSpace the background thread tries again later.
#pragma once

#include <functional>
#include <string>

#include "fs/guide/segment_guide.h"
#include "fs/jobs/background_job.h"
#include "fs/segments/committed_segments.h"
#include "fs/segments/gone_segments.h"
#include "store/segment/segment_store.h"
#include "store/segment/store_uuid.h"

namespace siltfs {

// Covers all waiting segments. `go_on` is called before each of them, with the number of those that
// were covered; a failure ends the call, which returns it. kNoSpace; errors of SliceBloom.
Status CoverWaiting(SegmentGuide& guide, SegmentStore& segments, const StoreUuid& uuid,
                    const std::function<Status(uint64_t covered)>& go_on);

class GuideUpdater final : public CommittedSegments {
 public:
  struct Options {
    std::string store;  // path, for errors
    StoreUuid uuid;
    BackgroundJob::Wait wait = {};
  };
  GuideUpdater(Env& env, SegmentGuide& guide, SegmentStore& segments, GoneSegments gone,
               Options options);
  ~GuideUpdater() override;

  void Add(SegmentId segment, const SegmentRecord& record) override;

  // Covers all sealed segments now. kNoSpace, kInterrupted by Stop, errors of SliceBloom; segments
  // that are not covered then are covered later.
  Status Update();

  void StartInBackground();
  // Ends the thread. Then drops the segments that were removed meanwhile.
  void Stop();

 private:
  Status CoverAll();
  std::chrono::nanoseconds PassInBackground();

  SegmentGuide& guide_;
  SegmentStore& segments_;
  const GoneSegments gone_;
  const Options options_;
  BackgroundJob job_;
};

}  // namespace siltfs
