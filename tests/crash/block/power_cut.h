// Where in a device's log the power is cut, and what each cut leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/crash/block/device.h"

namespace siltfs::blocktest {

// `count` positions in [first, log.size()], ascending: half of them near flushes, some near
// `landmarks` (mounts and unmounts), the others anywhere.
std::vector<uint64_t> ChooseCuts(const DeviceLog& log, uint64_t first,
                                 const std::vector<uint64_t>& landmarks, uint64_t count,
                                 Random& random);

// Makes what cuts leave, one after the other in ascending order. Not thread-safe.
class PowerCuts {
 public:
  // Borrows `log`. Writes are torn at multiples of `tear_bytes`.
  PowerCuts(const DeviceLog& log, uint64_t size, uint64_t tear_bytes)
      : log_(log), tear_bytes_(tear_bytes), durable_(size) {}

  // What there is if the power is cut after the first `position` records: all before the last flush
  // among them, and a random part of what follows it. Valid until the next call.
  std::unique_ptr<CutDevice> Cut(uint64_t position, Random& random);

 private:
  void Keep(const DeviceRecord& record, Random& random, bool tear, CutDevice& device) const;

  const DeviceLog& log_;
  const uint64_t tear_bytes_;
  SparseImage durable_;  // the first `applied_` records
  uint64_t applied_ = 0;
};

}  // namespace siltfs::blocktest
