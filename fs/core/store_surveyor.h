// Surveys an open store (fs/interface/store_survey.h, fs/mark/chunk_survey.h), and reads its
// history.
//
// References that do not fit into memory are sorted in the store's directory `sort-survey`. If the
// store is read-only, or its disk is full, they are sorted in the directory for temporary files.
//
// Thread-safety: every call from any thread; one survey at a time. Ownership: borrows the parts of
// the store, which must outlive it. Errors: as for StoreMaintenance::Survey.
#pragma once

#include <atomic>
#include <string>

#include "fs/chunks/chunk_parts.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/store_survey.h"
#include "fs/kv/kv_store.h"
#include "fs/records/segment_record.h"
#include "index/chunk_index.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class StoreSurveyor {
 public:
  StoreSurveyor(const StoreContext& store, ChunkIndex& index, const ChunkParts& parts)
      : store_(store), index_(index), parts_(parts) {}

  Result<StoreSurvey> Survey(const SurveyProgressFunction& on_progress) SILTFS_EXCLUDES(mutex_);

  // Ends the running survey, and makes all later ones fail.
  void Stop() SILTFS_EXCLUDES(mutex_);

 private:
  // Sorts in this directory.
  Result<ChunkSurvey> SurveyWith(const std::string& directory, const KvSnapshot& metadata,
                                 const SegmentRecords& segments,
                                 const SurveyProgressFunction& on_progress);
  Status CheckRunning() const;

  const StoreContext& store_;
  ChunkIndex& index_;
  const ChunkParts& parts_;
  Mutex mutex_;  // held during a survey
  std::atomic<bool> stopping_{false};
};

}  // namespace siltfs
