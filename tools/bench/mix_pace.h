// Keeps puts and gets at a fixed ratio while both run: the side that is ahead waits.
//
// Thread-safety: one thread calls BeforePut and AfterPut; any thread may call the others.
#pragma once

#include <cstdint>
#include <optional>

#include "store/base/thread_annotations.h"

namespace siltfs {

class MixPace {
 public:
  // Allows `gets` gets for every `puts` puts. `present` keys exist before the first put. Gets may
  // lag behind by `slack`, which must be at least the number of gets that one thread claims at a
  // time.
  MixPace(uint64_t puts, uint64_t gets, uint64_t present, uint64_t slack)
      : puts_weight_(puts), gets_weight_(gets), present_(present), slack_(slack) {}

  // Waits until the gets lag behind by at most the slack.
  void BeforePut();
  void AfterPut(uint64_t count);

  // Waits until the puts are far enough ahead, then claims `count` gets. Returns how many keys
  // exist, or nullopt after End.
  std::optional<uint64_t> ClaimGets(uint64_t count);
  void AfterGets(uint64_t count);

  // Ends all waiting; later calls do not wait.
  void End();
  uint64_t gets() const;

 private:
  uint64_t GetsDue() const SILTFS_REQUIRES(mutex_) { return puts_ * gets_weight_ / puts_weight_; }

  const uint64_t puts_weight_;
  const uint64_t gets_weight_;
  const uint64_t present_;
  const uint64_t slack_;

  mutable Mutex mutex_;
  CondVar changed_;
  uint64_t puts_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t claimed_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t gets_ SILTFS_GUARDED_BY(mutex_) = 0;
  bool ended_ SILTFS_GUARDED_BY(mutex_) = false;
};

}  // namespace siltfs
