// Verifies all that is stored, with the store in use: segment after segment, in the order of their
// ids (segment_scrub.h). What is damaged goes on the list of damage (damage_list.h), and what was
// on it and is whole leaves it.
//
// How far it has come is written to metadata after each segment: a scrub that was interrupted, or
// whose mount ended, goes on there, and figures are of all its parts together. The next one begins
// with the first segment again.
//
// Thread-safety: every call from any thread; one scrub at a time, the next waits. Memory:
// segment_scrub.h. Errors: kIoError where the device fails again and again; failures to write
// metadata, which end all writing, kNoSpace excepted: then the scrub goes on, and is not resumed
// where it was.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/dedup/damage_list.h"
#include "fs/dedup/recompressor.h"
#include "fs/dedup/scrub_outcome.h"
#include "fs/dedup/segment_cache.h"
#include "fs/dedup/segment_log.h"
#include "fs/dedup/segment_scrub.h"
#include "fs/dedup/segment_set.h"
#include "fs/meta/kv_store.h"
#include "fs/meta/scrub_record.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class Scrubber {
 public:
  // What it works on. All must outlive it.
  struct Store {
    Env& env;
    SegmentLog& log;
    SegmentCache& segments;
    const Recompressor& recompressor;
    DamageList& damage;
  };
  struct Options {
    std::string store;
    StoreUuid uuid;
    TagKey::Secret tag_secret{};
    std::optional<ScrubRecord> reached;                           // by one that has not ended
    std::function<std::shared_ptr<const KvSnapshot>()> snapshot;  // of the last commit
    std::function<Status(const std::vector<Mutation>&)> write_through;
    std::function<void(const std::string&)> report;  // told of damage; may be empty
    std::function<void()> on_damage;                 // the list has grown; may be empty
    uint64_t bytes_per_second = 64u << 20;           // plain bytes, at the gentle pace
  };
  Scrubber(const Store& store, Options options);
  ~Scrubber();  // stops

  // Somebody is about to scrub, and is done with it and with what came of it.
  void Enter() SILTFS_EXCLUDES(mutex_);
  void Leave() SILTFS_EXCLUDES(mutex_);
  // By who has entered; one after another.
  Result<ScrubOutcome> Scrub(ScrubPace pace) SILTFS_EXCLUDES(run_mutex_, mutex_);
  // Those who have entered are done soon; their scrubs are not complete.
  void Interrupt() SILTFS_EXCLUDES(mutex_);
  // kInterrupted to those, and after Stop.
  Status CheckRunning() SILTFS_EXCLUDES(mutex_);
  // So it does, and no other begins.
  void Stop() SILTFS_EXCLUDES(run_mutex_, mutex_);

 private:
  static constexpr size_t kMostTold = 1000;

  Status Pace(ScrubPace pace, uint64_t bytes) SILTFS_EXCLUDES(mutex_);
  Status ScrubAll(ScrubPace pace) SILTFS_REQUIRES(run_mutex_);
  Status ScrubSegment(SegmentId id, const SegmentRecord& record, ScrubPace pace)
      SILTFS_REQUIRES(run_mutex_);
  Result<SegmentFindings> Verify(const OpenSegment& segment, const SegmentRecord& record,
                                 ScrubPace pace);
  // Of a segment that is not there, or cannot be opened.
  void NoteLost(SegmentId id, const SegmentRecord& record, const Status& why)
      SILTFS_REQUIRES(run_mutex_);
  void Note(SegmentId id, const SegmentFindings& findings) SILTFS_REQUIRES(run_mutex_);
  // With what metadata does not know of the damage yet.
  Status WriteProgress(std::optional<std::string> progress);
  // The first kMostTold sentences.
  void Report(const std::string& sentence) SILTFS_REQUIRES(run_mutex_);

  const Store store_;
  const Options options_;

  Mutex run_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);  // held during a scrub
  ScrubRecord figures_ SILTFS_GUARDED_BY(run_mutex_);
  size_t told_ SILTFS_GUARDED_BY(run_mutex_) = 0;  // since the scrub was begun

  Mutex mutex_;
  CondVar wakes_;
  int callers_ SILTFS_GUARDED_BY(mutex_) = 0;           // who have entered
  bool interrupted_ SILTFS_GUARDED_BY(mutex_) = false;  // all of them
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
};

}  // namespace siltfs
