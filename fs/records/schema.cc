#include "fs/records/schema.h"

#include "store/base/coding.h"

namespace siltfs {
namespace {

Encoder StartKey(Table table) {
  Encoder key;
  key.U8(static_cast<uint8_t>(table));
  return key;
}

Encoder StartKey(Table table, uint64_t inode) {
  Encoder key = StartKey(table);
  key.BigU64(inode);
  return key;
}

// Returns a decoder of the bytes after the table byte; nullopt if the key belongs to another table.
std::optional<Decoder> StartParse(Table table, std::string_view key) {
  if (key.empty() || key[0] != static_cast<char>(table)) return std::nullopt;
  return Decoder(AsBytes(key.substr(1)));
}

std::optional<SegmentId> ParseSegmentId(Table table, std::string_view key) {
  auto rest = StartParse(table, key);
  if (!rest) return std::nullopt;
  SegmentId segment = rest->BigU32();
  if (!rest->Done()) return std::nullopt;
  return segment;
}

}  // namespace

std::string FirstBytesOfInodes() {
  std::string bytes;
  for (const Table table : kTablesOfInodes) bytes += static_cast<char>(table);
  return bytes;
}

std::string InodeKey(uint64_t inode) { return StartKey(Table::kInode, inode).Take(); }

std::string DirectoryEntryKey(uint64_t directory, std::string_view name) {
  return StartKey(Table::kDirectoryEntry, directory).Raw(name).Take();
}

std::string DirectoryCookieKey(uint64_t directory, uint64_t cookie) {
  return StartKey(Table::kDirectoryCookie, directory).BigU64(cookie).Take();
}

std::string OverlayKey(uint64_t inode, uint64_t offset) {
  return StartKey(Table::kOverlay, inode).BigU64(offset).Take();
}

std::string OrphanKey(uint64_t inode) { return StartKey(Table::kOrphan, inode).Take(); }

std::string XattrKey(uint64_t inode, std::string_view name) {
  return StartKey(Table::kXattr, inode).Raw(name).Take();
}

std::string HiddenRangeKey(uint64_t first) { return StartKey(Table::kHidden, first).Take(); }

std::string HiddenLinkKey(uint64_t first, uint64_t inode) {
  return StartKey(Table::kHidden, first).BigU64(inode).Take();
}

std::string SegmentKey(SegmentId segment) {
  return StartKey(Table::kSegment).BigU32(segment).Take();
}

std::string ReplacementKey(SegmentId segment) {
  return StartKey(Table::kReplacement).BigU32(segment).Take();
}

std::string RemovedSegmentKey(SegmentId segment) {
  return StartKey(Table::kRemovedSegment).BigU32(segment).Take();
}

std::string FormerSegmentsKey(uint32_t number) {
  return StartKey(Table::kFormerSegments).BigU32(number).Take();
}

std::string SecondaryKey(SegmentId segment) {
  return StartKey(Table::kSecondary).BigU32(segment).Take();
}

std::string DamageKey(SegmentId segment, uint32_t first_ordinal) {
  return StartKey(Table::kDamage).BigU32(segment).BigU32(first_ordinal).Take();
}

std::string SnapshotKey(uint64_t number) { return StartKey(Table::kSnapshot, number).Take(); }

std::string LineageKey(uint64_t lineage) { return StartKey(Table::kLineage, lineage).Take(); }

KeyRange RangeOf(Table table) {
  char first = static_cast<char>(table);
  return {std::string(1, first), std::string(1, static_cast<char>(first + 1))};
}

KeyRange RangeOf(Table table, uint64_t inode) { return RangeOf(table, inode, inode + 1); }

KeyRange RangeOf(Table table, uint64_t first, uint64_t end) {
  return {StartKey(table, first).Take(), StartKey(table, end).Take()};
}

std::optional<NumberedKey> ParseNumberedKey(Table table, std::string_view key) {
  auto rest = StartParse(table, key);
  if (!rest) return std::nullopt;
  NumberedKey parts{};
  parts.inode = rest->BigU64();
  parts.number = rest->BigU64();
  if (!rest->Done()) return std::nullopt;
  return parts;
}

std::optional<uint64_t> ParseInodeKey(Table table, std::string_view key) {
  auto rest = StartParse(table, key);
  if (!rest) return std::nullopt;
  uint64_t inode = rest->BigU64();
  if (!rest->Done()) return std::nullopt;
  return inode;
}

std::optional<SegmentId> ParseSegmentKey(std::string_view key) {
  return ParseSegmentId(Table::kSegment, key);
}

std::optional<SegmentId> ParseReplacementKey(std::string_view key) {
  return ParseSegmentId(Table::kReplacement, key);
}

std::optional<SegmentId> ParseRemovedSegmentKey(std::string_view key) {
  return ParseSegmentId(Table::kRemovedSegment, key);
}

std::optional<uint32_t> ParseFormerSegmentsKey(std::string_view key) {
  return ParseSegmentId(Table::kFormerSegments, key);
}

std::optional<SegmentId> ParseSecondaryKey(std::string_view key) {
  return ParseSegmentId(Table::kSecondary, key);
}

std::optional<std::pair<SegmentId, uint32_t>> ParseDamageKey(std::string_view key) {
  auto rest = StartParse(Table::kDamage, key);
  if (!rest) return std::nullopt;
  const SegmentId segment = rest->BigU32();
  const uint32_t ordinal = rest->BigU32();
  if (!rest->Done()) return std::nullopt;
  return std::pair(segment, ordinal);
}

std::optional<NamePlace> ParseDirectoryEntryKey(std::string_view key) {
  auto rest = StartParse(Table::kDirectoryEntry, key);
  if (!rest) return std::nullopt;
  const uint64_t directory = rest->BigU64();
  if (!rest->ok() || rest->remaining() == 0) return std::nullopt;
  return NamePlace{directory, std::string(AsText(rest->Raw(rest->remaining())))};
}

std::optional<std::string_view> ParseXattrName(std::string_view key) {
  auto rest = StartParse(Table::kXattr, key);
  if (!rest) return std::nullopt;
  rest->Skip(8);
  if (!rest->ok()) return std::nullopt;
  return AsText(rest->Raw(rest->remaining()));
}

std::optional<uint64_t> ParseSnapshotKey(std::string_view key) {
  return ParseInodeKey(Table::kSnapshot, key);
}

}  // namespace siltfs
