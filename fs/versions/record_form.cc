#include "fs/versions/record_form.h"

#include <algorithm>
#include <array>

#include "fs/interface/file_system.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/quota_record.h"
#include "fs/records/schema.h"
#include "fs/versions/version_key.h"

namespace siltfs {
namespace {

constexpr size_t kNumberedPrefix = 9;

bool IsInode(std::string_view value) {
  constexpr std::array<uint32_t, 7> kTypes = {0010000, 0020000, 0040000, 0060000,
                                              0100000, 0120000, 0140000};
  const auto record = InodeRecord::Decode(value);
  return record.ok() && std::ranges::find(kTypes, record->type()) != kTypes.end();
}

}  // namespace

bool IsRecordKey(std::string_view key) {
  uint64_t inode = 0;
  if (!IsVersionedKey(key, inode) || inode == 0) return false;
  const auto table = static_cast<Table>(key[0]);
  switch (table) {
    case Table::kInode:
      return key.size() == kNumberedPrefix;
    case Table::kDirectoryEntry:
      return IsName(key.substr(kNumberedPrefix));
    case Table::kXattr:
      return key.size() > kNumberedPrefix;
    case Table::kQuota:
      return ParseQuotaKey(key).has_value();
    default:
      return ParseNumberedKey(table, key).has_value();
  }
}

bool IsRecord(std::string_view key, std::string_view value) {
  if (!IsRecordKey(key)) return false;
  switch (static_cast<Table>(key[0])) {
    case Table::kInode:
      return IsInode(value);
    case Table::kDirectoryEntry:
      return NameEntry::Decode(value).ok();
    case Table::kDirectoryCookie:
      return CookieEntry::Decode(value).ok();
    case Table::kOverlay:
      return OverlayExtent::Decode(value).ok();
    case Table::kQuota:
      return ParseQuotaKey(key)->part == QuotaPart::kLimits ? QuotaRecord::Decode(value).ok()
                                                            : DecodeUsage(value).ok();
    default:
      return true;
  }
}

}  // namespace siltfs
