// The flash reads of a batch of lookups: gathered first, then issued together, a page that several
// lookups need once. The one place where lookups touch the device.
//
// Thread-safety: any number of calls may run together. The stores must outlive the call.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "index/silt/log_store.h"

namespace siltfs {

struct SlotRead {
  const LogStore* store = nullptr;
  uint32_t slot = 0;  // written out, not in the tail

  enum class Outcome : uint8_t { kRead, kDamaged, kFailed };
  Outcome outcome = Outcome::kFailed;
  IndexEntry entry = {};  // if kRead
};

struct SlotReadsResult {
  uint64_t pages_read = 0;
  Status status;  // the first failure; the other reads were done all the same
};

SlotReadsResult ReadSlots(std::span<SlotRead> reads);

}  // namespace siltfs
