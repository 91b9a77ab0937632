// Keeps the history of a store's sizes (fs/records/savings_history.h): a sample when the store is
// closed, and one a day while it stays open.
//
// A sample is left out if the sizes are those of the last one. So a mount that changes nothing
// writes nothing. A sample costs one write of at most 27 KB.
//
// Thread-safety: every call from any thread. Ownership: borrows env and metadata, which must
// outlive it. Durability: a sample is durable when Record has returned; a crash leaves the history
// before or after it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "fs/interface/stats.h"
#include "fs/jobs/background_job.h"
#include "fs/kv/kv_store.h"
#include "fs/meta/commit_port.h"
#include "fs/records/savings_history.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

class SizeRecorder {
 public:
  using ReadStats = std::function<Result<FileSystemStats>()>;
  // `store`: path, for errors. `wait` is for tests (BackgroundJob::Options).
  SizeRecorder(Env& env, CommitPort& metadata, const std::string& store, ReadStats stats,
               BackgroundJob::Wait wait = {});

  // Starts the thread that takes the samples of each day.
  void StartInBackground();
  void Stop() { job_.Stop(); }

  // Returns the record with a sample of now; nullopt if there is nothing new, or the statistics or
  // the history cannot be read. For the caller to write.
  std::optional<Mutation> Sample() const;
  // The same with these statistics of now.
  std::optional<Mutation> Sample(const FileSystemStats& stats) const;

 private:
  // Takes a sample if the last one is a day old.
  void RecordDaily();
  // nullopt for a history that must not be replaced: a later version of siltfs has written it, or
  // metadata cannot be read.
  std::optional<SavingsHistory> Read() const;

  Env& env_;
  CommitPort& metadata_;
  const ReadStats stats_;
  BackgroundJob job_;
};

}  // namespace siltfs
