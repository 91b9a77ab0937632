#include "fs/inodes/quotas.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "fs/records/lineage.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

// The kernel collects at most some tens of MiB of written data for a FUSE mount.
constexpr uint64_t kFewBytes = 64u << 20;
constexpr uint64_t kFewShare = 16;
// The most that can be counted. Copies that share their data may amount to more.
constexpr uint64_t kMostUsage = std::numeric_limits<int64_t>::max();
// The longest wait for operations that have reserved more than they may need. They hold their
// reservations for milliseconds.
constexpr std::chrono::seconds kReleasePatience{2};

// Whether `wanted` more than `used` exceeds the limit; 0: no limit.
bool Exceeds(uint64_t limit, int64_t used, int64_t wanted) {
  if (wanted <= 0) return false;
  const uint64_t most = limit == 0 ? kMostUsage : std::min(limit, kMostUsage);
  const uint64_t before = static_cast<uint64_t>(std::max<int64_t>(used, 0));
  return before > most || static_cast<uint64_t>(wanted) > most - before;
}

enum class Lacking : uint8_t { kNothing, kBytes, kFiles };
Lacking Check(const QuotaLimits& limits, const QuotaUsage& used, const QuotaUsage& room) {
  if (Exceeds(limits.bytes, used.bytes, room.bytes)) return Lacking::kBytes;
  if (Exceeds(limits.files, used.files, room.files)) return Lacking::kFiles;
  return Lacking::kNothing;
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
  StopCount(counting_number_);
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
  const auto end = std::chrono::steady_clock::now() + kReleasePatience;
  const MutexLock lock(mutex_);
  for (;;) {
    Known* const known = At(quota);
    if (known == nullptr || quota == counting_number_) return Reservation();
    const QuotaLimits& limits = known->record.limits;
    QuotaUsage used = known->usage;
    used += known->reserved;
    const Lacking lacking = Check(limits, used, room);
    if (lacking == Lacking::kNothing) {
      known->reserved += room;
      return Reservation(*this, quota, room);
    }
    const auto left = end - std::chrono::steady_clock::now();
    if (Check(limits, known->usage, room) != Lacking::kNothing || left <= left.zero())
      return Exceeded(known->record, lacking == Lacking::kBytes ? "data" : "files");
    released_.WaitFor(mutex_, left);
  }
}

void Quotas::Release(QuotaNumber quota, const QuotaUsage& room) {
  const MutexLock lock(mutex_);
  if (Known* const known = At(quota)) known->reserved += -room;
  released_.NotifyAll();
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
  if (found == quotas_.end() || quota == counting_number_) return std::nullopt;
  return State{quota, found->second.record, found->second.usage};
}

std::vector<Quotas::State> Quotas::All() const {
  const MutexLock lock(mutex_);
  std::vector<State> all;
  for (const auto& [number, known] : quotas_) {
    if (number != counting_number_) all.push_back({number, known.record, known.usage});
  }
  return all;
}

std::optional<Quotas::State> Quotas::Counting() const {
  if (!counting_.load(std::memory_order_acquire)) return std::nullopt;
  const MutexLock lock(mutex_);
  const auto found = quotas_.find(counting_number_);
  if (found == quotas_.end()) return std::nullopt;
  return State{counting_number_, found->second.record, found->second.usage};
}

bool Quotas::BeginCount(QuotaNumber quota, const QuotaRecord& record) {
  const MutexLock lock(mutex_);
  if (counting_number_ != kNoQuota) return false;
  quotas_[quota] = {.record = record, .usage = {}, .reserved = {}};
  counting_number_ = quota;
  to_count_.clear();
  any_.store(true, std::memory_order_release);
  counting_.store(true, std::memory_order_release);
  return true;
}

void Quotas::AddToCount(InodeNumber directory) {
  const MutexLock lock(mutex_);
  to_count_.push_back(directory);
}

std::vector<InodeNumber> Quotas::TakeToCount(QuotaNumber quota) {
  const MutexLock lock(mutex_);
  if (quota != counting_number_) return {};
  return std::exchange(to_count_, {});
}

void Quotas::EndCount(QuotaNumber quota) {
  const MutexLock lock(mutex_);
  StopCount(quota);
}

void Quotas::StopCount(QuotaNumber quota) {
  if (quota != counting_number_) return;
  counting_number_ = kNoQuota;
  counting_.store(false, std::memory_order_release);
}

void Quotas::SetLimits(QuotaNumber quota, const QuotaLimits& limits) {
  const MutexLock lock(mutex_);
  if (Known* const known = At(quota)) known->record.limits = limits;
}

void Quotas::Remove(QuotaNumber quota) {
  const MutexLock lock(mutex_);
  quotas_.erase(quota);
  StopCount(quota);
  any_.store(!quotas_.empty(), std::memory_order_release);
}

}  // namespace siltfs
