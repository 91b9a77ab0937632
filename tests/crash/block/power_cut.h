// Chooses where in a device's log the power is cut, and makes the state after each cut.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/crash/block/device.h"

namespace siltfs::blocktest {

// Returns `count` positions in [first, log.size()], ascending. Half of them are near flushes, some
// are near `landmarks` (mounts and unmounts), and the others anywhere.
std::vector<uint64_t> ChooseCuts(const DeviceLog& log, uint64_t first,
                                 const std::vector<uint64_t>& landmarks, uint64_t count,
                                 Random& random);

// Makes the states after cuts, in ascending order. Not thread-safe.
class PowerCuts {
 public:
  // Borrows `log`. Writes are torn at multiples of `tear_bytes`.
  PowerCuts(const DeviceLog& log, uint64_t size, uint64_t tear_bytes)
      : log_(log), tear_bytes_(tear_bytes), durable_(size) {}

  // Returns the device after a power cut that follows the first `position` records. The device has
  // all writes before the last flush among these records, and a random part of the later writes. It
  // is valid until the next call.
  std::unique_ptr<CutDevice> Cut(uint64_t position, Random& random);

 private:
  void Keep(const DeviceRecord& record, Random& random, bool tear, CutDevice& device) const;

  const DeviceLog& log_;
  const uint64_t tear_bytes_;
  SparseImage durable_;  // holds the first `applied_` records
  uint64_t applied_ = 0;
};

}  // namespace siltfs::blocktest
