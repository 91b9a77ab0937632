// Keeps the read queues of lookups that have ended for the next lookups, and runs batches of
// lookups with them.
//
// Thread-safety: any. Ownership: `env`, and what the function of the depth uses, must outlive the
// pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "index/flash/lookup_batch.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"

namespace siltfs {

class ReaderPool {
 public:
  // `depth` returns the depth of read queues at present. It may take locks, but must not use the
  // pool.
  ReaderPool(Env& env, std::function<unsigned()> depth) : env_(env), depth_(std::move(depth)) {}

  Result<LookupReader> Take();
  // Keeps the reader for a later Take, unless the depth has changed or enough are idle.
  void Return(LookupReader reader);
  // Frees all idle readers. Call it when the depth has changed.
  void Clear();
  uint64_t memory_bytes() const;       // of idle readers
  uint64_t most_memory_bytes() const;  // of as many idle readers as are kept

 private:
  size_t Bytes() const;  // of a reader's pages

  Env& env_;
  const std::function<unsigned()> depth_;
  mutable Mutex mutex_;  // only the locks of depth_ are taken under it
  std::vector<LookupReader> idle_ SILTFS_GUARDED_BY(mutex_);
};

// Batches of at most this many lookups are not worth a read queue.
inline constexpr size_t kFewLookups = 3;

// Runs all lookups of a batch: with a reader of the pool, or one after the other if they are few.
// Fails if there is no read queue to be had. The batch has the failures of its lookups.
template <typename Lookup>
Status RunBatch(LookupBatch<Lookup>& batch, ReaderPool& readers) {
  if (batch.size() > kFewLookups) {
    SILTFS_ASSIGN_OR_RETURN(LookupReader reader, readers.Take());
    RunLookups(batch, reader);
    readers.Return(std::move(reader));
    return Status::Ok();
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    Lookup lookup = batch.Prepare(i);
    batch.Begin(lookup);
    FinishLookup(lookup);
    batch.End(i, lookup);
  }
  return Status::Ok();
}

}  // namespace siltfs
