#include "fs/inodes/quotas.h"

#include <fmt/format.h>

#include <algorithm>

#include "fs/records/lineage.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

// The kernel collects at most some tens of MiB of written data for a FUSE mount.
constexpr uint64_t kFewBytes = 64u << 20;
constexpr uint64_t kFewShare = 16;

// Whether `wanted` more than `used` exceeds the limit; 0: no limit.
bool Exceeds(uint64_t limit, int64_t used, int64_t wanted) {
  if (limit == 0 || wanted <= 0) return false;
  const uint64_t before = static_cast<uint64_t>(std::max<int64_t>(used, 0));
  return before > limit || static_cast<uint64_t>(wanted) > limit - before;
}

Status Exceeded(const QuotaRecord& record, std::string_view what) {
  return {StatusCode::kQuotaExceeded,
          fmt::format("the quota of the directory with inode {} has no room for more {}",
                      record.directory, what)};
}

}  // namespace

Status Quotas::Load(const MetadataStore& metadata) {
  std::map<QuotaNumber, Known> loaded;
  Status status;
  const KeyRange range = RangeOf(Table::kQuota, 0, kInodesPerLineage);
  const auto take = [&](std::string_view key, std::string_view value) -> Status {
    const auto parsed = ParseQuotaKey(key);
    if (!parsed)
      return {StatusCode::kCorruption, "the key of a quota is malformed; run siltfs fsck"};
    Known& known = loaded[parsed->quota];
    if (parsed->part == QuotaPart::kLimits) {
      SILTFS_ASSIGN_OR_RETURN(known.record, QuotaRecord::Decode(value));
    } else {
      SILTFS_ASSIGN_OR_RETURN(known.usage, DecodeUsage(value));
    }
    return Status::Ok();
  };
  const Status scanned = metadata.Pin().Scan(range.begin, range.end,
                                             [&](std::string_view key, std::string_view value) {
                                               status = take(key, value);
                                               return status.ok();
                                             });
  SILTFS_RETURN_IF_ERROR(status);
  SILTFS_RETURN_IF_ERROR(scanned);
  for (const auto& [number, known] : loaded) {
    if (known.record.directory == 0) {
      return {StatusCode::kCorruption,
              fmt::format("the quota {} has no limits; run siltfs fsck", number)};
    }
  }
  const MutexLock lock(mutex_);
  quotas_ = std::move(loaded);
  any_.store(!quotas_.empty(), std::memory_order_release);
  return Status::Ok();
}

Quotas::Known* Quotas::At(QuotaNumber quota) {
  const auto found = quotas_.find(quota);
  return found == quotas_.end() ? nullptr : &found->second;
}

QuotaNumber Quotas::Existing(QuotaNumber quota) const {
  if (None(quota)) return kNoQuota;
  const MutexLock lock(mutex_);
  return quotas_.contains(quota) ? quota : kNoQuota;
}

Result<Quotas::Reservation> Quotas::Reserve(QuotaNumber quota, const QuotaUsage& room) {
  if (None(quota)) return Reservation();
  const MutexLock lock(mutex_);
  Known* const known = At(quota);
  if (known == nullptr) return Reservation();
  QuotaUsage used = known->usage;
  used += known->reserved;
  const QuotaLimits& limits = known->record.limits;
  if (Exceeds(limits.bytes, used.bytes, room.bytes)) return Exceeded(known->record, "data");
  if (Exceeds(limits.files, used.files, room.files)) return Exceeded(known->record, "files");
  known->reserved += room;
  return Reservation(*this, quota, room);
}

void Quotas::Release(QuotaNumber quota, const QuotaUsage& room) {
  const MutexLock lock(mutex_);
  if (Known* const known = At(quota)) known->reserved += -room;
}

void Quotas::Count(const QuotaDifferences& differences) {
  if (differences.empty()) return;
  const MutexLock lock(mutex_);
  for (const auto& [quota, difference] : differences) {
    if (Known* const known = At(quota)) known->usage += difference;
  }
}

bool Quotas::NearlyUsed(QuotaNumber quota) const {
  const auto state = Find(quota);
  if (!state || state->record.limits.bytes == 0) return false;
  const uint64_t limit = state->record.limits.bytes;
  const auto used = static_cast<uint64_t>(std::max<int64_t>(state->usage.bytes, 0));
  return used >= limit || limit - used < std::max(kFewBytes, limit / kFewShare);
}

std::optional<Quotas::State> Quotas::Find(QuotaNumber quota) const {
  if (None(quota)) return std::nullopt;
  const MutexLock lock(mutex_);
  const auto found = quotas_.find(quota);
  if (found == quotas_.end()) return std::nullopt;
  return State{quota, found->second.record, found->second.usage};
}

std::vector<Quotas::State> Quotas::All() const {
  const MutexLock lock(mutex_);
  std::vector<State> all;
  for (const auto& [number, known] : quotas_) all.push_back({number, known.record, known.usage});
  return all;
}

void Quotas::Add(const State& state) {
  const MutexLock lock(mutex_);
  quotas_[state.number] = {state.record, state.usage, {}};
  any_.store(true, std::memory_order_release);
}

void Quotas::SetLimits(QuotaNumber quota, const QuotaLimits& limits) {
  const MutexLock lock(mutex_);
  if (Known* const known = At(quota)) known->record.limits = limits;
}

void Quotas::Remove(QuotaNumber quota) {
  const MutexLock lock(mutex_);
  quotas_.erase(quota);
  any_.store(!quotas_.empty(), std::memory_order_release);
}

}  // namespace siltfs
