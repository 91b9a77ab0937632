#include "fs/segments/space_account.h"

#include <algorithm>

#include "store/segment/segment_format.h"

namespace siltfs {

SpaceAccount::SpaceAccount(const GarbageRecord& known)
    : released_(known.released_bytes), dead_(known) {}

void SpaceAccount::CountRecompressed(uint64_t before, uint64_t after) {
  MutexLock lock(mutex_);
  totals_.saved_bytes += before - after;
  totals_.recompressed_bytes += before;
}

void SpaceAccount::SetDead(const GarbageRecord& counted) {
  MutexLock lock(mutex_);
  dead_ = counted;
}

void SpaceAccount::CountRemoved(const SegmentRecord& record, uint64_t dead_chunks,
                                uint64_t dead_bytes) {
  MutexLock lock(mutex_);
  dead_.dead_bytes -= std::min(dead_.dead_bytes, dead_bytes);
  totals_.removed_bytes += record.length;
  if (record.kind != static_cast<uint8_t>(SegmentKind::kData)) return;
  dead_.dead_chunks -= std::min(dead_.dead_chunks, dead_chunks);
  dead_.dead_plain_bytes -=
      std::min(dead_.dead_plain_bytes, record.plain_bytes * dead_chunks / record.chunks);
  if (!record.recompressed) totals_.removed_not_recompressed_bytes += record.length;
  totals_.removed_chunks += record.chunks;
  totals_.removed_plain_bytes += record.plain_bytes;
}

void SpaceAccount::SetCollected(uint64_t released) {
  MutexLock lock(mutex_);
  collected_ = released;
}

GarbageRecord SpaceAccount::known() const {
  MutexLock lock(mutex_);
  GarbageRecord record = dead_;
  record.released_bytes = released_ - collected_;
  return record;
}

SpaceAccount::Totals SpaceAccount::totals() const {
  MutexLock lock(mutex_);
  return totals_;
}

}  // namespace siltfs
