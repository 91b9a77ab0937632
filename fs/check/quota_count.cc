#include "fs/check/quota_count.h"

#include <fmt/format.h>

#include "fs/content/file_content.h"
#include "fs/records/schema.h"

namespace siltfs {

Status QuotaCount::Load(const KvSnapshot& live) {
  const KeyRange range = RangeOf(Table::kQuota);
  const auto records = live.NewIteratorBelow(range.end);
  for (records->Seek(range.begin); records->Valid(); records->Next()) {
    const auto key = ParseQuotaKey(records->key());
    if (!key) {
      malformed_keys_.emplace_back(records->key());
      continue;
    }
    Entry& entry = entries_[key->quota];
    if (key->part == QuotaPart::kLimits) {
      auto record = QuotaRecord::Decode(records->value());
      if (record.ok()) entry.record = *record;
    } else {
      auto usage = DecodeUsage(records->value());
      if (usage.ok()) entry.stored = *usage;
    }
  }
  return records->status();
}

void QuotaCount::Add(uint64_t inode, const InodeRecord& record) {
  if (record.quota == kNoQuota) return;
  const auto found = entries_.find(record.quota);
  if (found == entries_.end()) return;  // a removed quota
  Entry& entry = found->second;
  if (entry.record && entry.record->directory == inode) {
    entry.has_directory = record.IsDirectory() && record.links > 0;
    return;
  }
  QuotaUsage usage = {.bytes = 0, .files = 1};
  if (record.IsRegular()) usage.bytes = static_cast<int64_t>(FileContent::AllocatedBytes(record));
  entry.counted += usage;
}

std::vector<QuotaFault> QuotaCount::Faults(bool all_counted) const {
  std::vector<QuotaFault> faults;
  for (const std::string& key : malformed_keys_)
    faults.push_back({.message = "the key of a quota is malformed", .key = key, .value = {}});
  for (const auto& [number, entry] : entries_) {
    const auto remove = [&, quota = number](std::string message) {
      for (const QuotaPart part : {QuotaPart::kLimits, QuotaPart::kUsage})
        faults.push_back({quota, message, QuotaKey(quota, part), {}});
    };
    if (!entry.record) {
      remove(fmt::format("the limits of quota {} are malformed or missing", number));
      continue;
    }
    if (!all_counted) continue;
    if (!entry.has_directory) {
      remove(
          fmt::format("the directory of quota {}, inode {}, does not exist or does not belong "
                      "to it",
                      number, entry.record->directory));
    } else if (!entry.stored) {
      faults.push_back({number,
                        fmt::format("the usage of quota {} is malformed or missing", number),
                        QuotaKey(number, QuotaPart::kUsage), EncodeUsage(entry.counted)});
    } else if (*entry.stored != entry.counted) {
      faults.push_back({number,
                        fmt::format("quota {} counts {} bytes and {} files, there are {} and {}",
                                    number, entry.stored->bytes, entry.stored->files,
                                    entry.counted.bytes, entry.counted.files),
                        QuotaKey(number, QuotaPart::kUsage), EncodeUsage(entry.counted)});
    }
  }
  return faults;
}

}  // namespace siltfs
