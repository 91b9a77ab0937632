// Makes a device fail and work again while a load runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/crash/block/recording.h"

namespace siltfs::blocktest {

// Not thread-safe.
class FaultPlan {
 public:
  // Borrows `bench` and `device`.
  FaultPlan(uint64_t seed, Bench& bench, RecordingDevice& device)
      : random_(seed), bench_(bench), device_(device) {}

  // Makes one to three intervals of failure with pauses between them. Returns after the last
  // interval, or soon after `is_over` reports that no writer is left.
  void Run(const std::function<bool()>& is_over);
  // Describes the failures made so far, as text.
  const std::string& Describe() const { return text_; }

 private:
  Fault MakeFault();

  Random random_;
  Bench& bench_;
  RecordingDevice& device_;
  std::string text_;
};

}  // namespace siltfs::blocktest
