#include "fs/versions/version_key.h"

#include "fs/records/schema.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr char kEscape = '\0';
constexpr char kEscaped = '\xFF';
constexpr char kEnd = '\x01';
constexpr char kBehindEnd = '\x02';
constexpr size_t kNumberBytes = 8;
constexpr char kAbsent = 0;
constexpr char kPresent = 1;

char Byte(Table table) { return static_cast<char>(table); }

std::string Escaped(std::string_view key) {
  std::string escaped(1, Byte(Table::kVersion));
  for (const char byte : key) {
    escaped.push_back(byte);
    if (byte == kEscape) escaped.push_back(kEscaped);
  }
  return escaped;
}

}  // namespace

bool IsVersionedKey(std::string_view key, uint64_t& inode) {
  if (key.size() < 1 + kNumberBytes) return false;
  switch (static_cast<Table>(key[0])) {
    case Table::kInode:
    case Table::kDirectoryEntry:
    case Table::kDirectoryCookie:
    case Table::kOverlay:
    case Table::kXattr:
    case Table::kQuota:
      inode = Decoder(AsBytes(key.substr(1, kNumberBytes))).BigU64();
      return true;
    default:
      return false;
  }
}

std::string FirstVersionKey(std::string_view key) { return Escaped(key); }

std::string EndOfVersionKeys(std::string_view key) {
  std::string end = Escaped(key);
  end.push_back(kEscape);
  end.push_back(kBehindEnd);
  return end;
}

std::string EndOfVersionKeys() { return RangeOf(Table::kVersion).end; }

std::string VersionKey(std::string_view key, SnapshotNumber snapshot) {
  Encoder out;
  out.Raw(Escaped(key)).U8(kEscape).U8(kEnd).BigU64(~snapshot);
  return out.Take();
}

std::optional<VersionKeyParts> ParseVersionKey(std::string_view version_key) {
  if (version_key.empty() || version_key[0] != Byte(Table::kVersion)) return std::nullopt;
  VersionKeyParts parts;
  for (size_t i = 1; i < version_key.size(); ++i) {
    if (version_key[i] != kEscape) {
      parts.key.push_back(version_key[i]);
      continue;
    }
    if (++i == version_key.size()) return std::nullopt;
    if (version_key[i] == kEscaped) {
      parts.key.push_back(kEscape);
      continue;
    }
    const std::string_view number = version_key.substr(i + 1);
    if (version_key[i] != kEnd || number.size() != kNumberBytes) return std::nullopt;
    parts.snapshot = ~Decoder(AsBytes(number)).BigU64();
    return parts;
  }
  return std::nullopt;
}

std::string EncodeVersion(const std::optional<std::string>& value) {
  if (!value) return std::string(1, kAbsent);
  return std::string(1, kPresent) + *value;
}

std::optional<std::optional<std::string_view>> DecodeVersion(std::string_view version) {
  if (version.size() == 1 && version[0] == kAbsent) return std::optional<std::string_view>();
  if (version.empty() || version[0] != kPresent) return std::nullopt;
  return std::optional(version.substr(1));
}

std::string VersionListKey(SnapshotNumber snapshot, SnapshotNumber born, std::string_view key) {
  Encoder out;
  out.U8(static_cast<uint8_t>(Table::kVersionList)).BigU64(snapshot).BigU64(born).Raw(key);
  return out.Take();
}

std::optional<VersionListKeyParts> ParseVersionListKey(std::string_view list_key) {
  if (list_key.size() <= 1 + 2 * kNumberBytes || list_key[0] != Byte(Table::kVersionList))
    return std::nullopt;
  Decoder in(AsBytes(list_key.substr(1, 2 * kNumberBytes)));
  VersionListKeyParts parts;
  parts.snapshot = in.BigU64();
  parts.born = in.BigU64();
  parts.key = list_key.substr(1 + 2 * kNumberBytes);
  uint64_t inode = 0;
  if (IsVersionedKey(parts.key, inode)) parts.lineage = LineageOf(inode);
  return parts;
}

}  // namespace siltfs
