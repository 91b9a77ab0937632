// Keeps the read queues of lookups that have ended for the next lookups.
//
// Thread-safety: any. Ownership: `env`, and what the function of the depth uses, must outlive the
// pool.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "index/flash/lookup_batch.h"
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

}  // namespace siltfs
