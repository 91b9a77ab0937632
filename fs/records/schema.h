// The keys of the metadata (docs/format.md, "Metadata"): their tables and their order. Numbers in
// keys are big-endian, so that keys sort by number. Values: inode_record.h, directory_entry.h,
// overlay_extent.h, segment_record.h and the headers named below.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "store/base/location.h"

namespace siltfs {

// The first byte of every key. Each comment names the rest of the key. If a key is only this byte,
// the comment names the value, or the header that describes the value.
enum class Table : char {
  kDamage = 'b',           // segment id, ordinal: damage_record.h
  kCommitNumber = 'c',     // metadata_store.h
  kCounters = 't',         // metadata_store.h
  kDirectoryEntry = 'd',   // inode of the directory, name
  kDirectoryCookie = 'k',  // inode of the directory, cookie
  kCollisions = 'h',       // number of SHA-1 collisions found since mkfs
  kSecondary = 'e',        // segment id: the segment may hold copies that the index does not point
                           // to; see kNotesKey
  kHidden = 'n',           // first inode of a hidden range; or this, and an inode: hidden_range.h
  kInode = 'i',            // inode
  kOverlay = 'o',          // inode, offset
  kIdRanges = 'r',         // IdRanges, segment_record.h
  kReplacement = 'p',      // segment id: the intent, which is the segment's record after its file
                           // is replaced
  kRemovedSegment = 'g',   // segment id: unreferenced; its file is to be removed
  kSegment = 's',          // segment id
  kOrphan = 'u',           // inode without a name, to be removed when it is no longer in use
  kScrub = 'v',            // scrub_record.h
  kGarbage = 'w',          // garbage_record.h
  kLastScrub = 'f',        // last_scrub_record.h
  kSavingsHistory = 'a',   // savings_history.h
  kScrubHistory = 'j',     // scrub_history.h
  kXattr = 'x',            // inode, name
  kQuota = 'q',            // number of a quota, part: quota_record.h
  kSnapshot = 'm',         // snapshot number: snapshot_record.h; see kNextSnapshotKey
  kLineage = 'l',          // number of a lineage: lineage.h
  kVersion = 'y',          // a key, and a snapshot's number: fs/versions/version_key.h
  kBucketPosition = 'B',   // fs/records/position_record.h
  kEpochFloors = 'E',      // fs/records/epoch_floors.h
  kFormerSegments = 'F',   // segment id / 4096: former_segments.h
  kVersionList = 'z',      // versions by snapshot: fs/versions/version_key.h
};

// The tables whose keys begin with the inode that they belong to, in ascending order, but for
// kHidden and kOrphan. A quota counts as an inode of its number.
inline constexpr std::array kTablesOfInodes = {Table::kDirectoryEntry,  Table::kInode,
                                               Table::kDirectoryCookie, Table::kOverlay,
                                               Table::kQuota,           Table::kXattr};

inline bool IsKeyOf(Table table, std::string_view key) {
  return !key.empty() && key[0] == static_cast<char>(table);
}

// The first bytes of the keys of kTablesOfInodes.
std::string FirstBytesOfInodes();

std::string InodeKey(uint64_t inode);
std::string DirectoryEntryKey(uint64_t directory, std::string_view name);
std::string DirectoryCookieKey(uint64_t directory, uint64_t cookie);
std::string OverlayKey(uint64_t inode, uint64_t offset);
std::string OrphanKey(uint64_t inode);
std::string XattrKey(uint64_t inode, std::string_view name);
std::string HiddenRangeKey(uint64_t first);
std::string HiddenLinkKey(uint64_t first, uint64_t inode);
std::string SegmentKey(SegmentId segment);
std::string ReplacementKey(SegmentId segment);
std::string RemovedSegmentKey(SegmentId segment);
std::string FormerSegmentsKey(uint32_t number);
std::string SecondaryKey(SegmentId segment);
// Values of SecondaryKey: kVictimNote for a segment that a mount after a crash compares with the
// index, because GC collects it (a victim) or makes entries for its chunks; kPlainNote for other
// segments.
inline constexpr std::string_view kVictimNote = "c";
inline constexpr std::string_view kPlainNote = "";
std::string DamageKey(SegmentId segment, uint32_t first_ordinal);
std::string SnapshotKey(uint64_t number);
std::string LineageKey(uint64_t lineage);

// The range [begin, end) of all keys of one table, or of the keys of one inode in a table with keys
// that begin with the inode.
struct KeyRange {
  std::string begin;
  std::string end;
};
KeyRange RangeOf(Table table);
KeyRange RangeOf(Table table, uint64_t inode);
// The keys of the inodes [first, end).
KeyRange RangeOf(Table table, uint64_t first, uint64_t end);

// The Parse functions return the parts of a key; nullopt if the key is not of that table.
struct NumberedKey {
  uint64_t inode;
  uint64_t number;  // offset or cookie, or an inode in kHidden
};
std::optional<NumberedKey> ParseNumberedKey(Table table, std::string_view key);
// kInode, kOrphan, kLineage, and the ranges of kHidden.
std::optional<uint64_t> ParseInodeKey(Table table, std::string_view key);
std::optional<SegmentId> ParseSegmentKey(std::string_view key);
std::optional<SegmentId> ParseReplacementKey(std::string_view key);
std::optional<SegmentId> ParseRemovedSegmentKey(std::string_view key);
std::optional<uint32_t> ParseFormerSegmentsKey(std::string_view key);
std::optional<SegmentId> ParseSecondaryKey(std::string_view key);
// Returns the segment and the ordinal.
std::optional<std::pair<SegmentId, uint32_t>> ParseDamageKey(std::string_view key);
// kDirectoryEntry.
struct NamePlace {
  uint64_t directory = 0;
  std::string name;
  bool operator==(const NamePlace&) const = default;
};
std::optional<NamePlace> ParseDirectoryEntryKey(std::string_view key);
std::optional<std::string_view> ParseXattrName(std::string_view key);
std::optional<uint64_t> ParseSnapshotKey(std::string_view key);

inline constexpr std::string_view kCollisionsKey = "h";
inline constexpr std::string_view kIdRangesKey = "r";
inline constexpr std::string_view kGarbageKey = "w";
inline constexpr std::string_view kBucketPositionKey = "B";
inline constexpr std::string_view kEpochFloorsKey = "E";
// A key without a value. If it is present, all segments were compared with the index at some time,
// and the table kSecondary has been complete since that time.
inline constexpr std::string_view kNotesKey = "e";
inline constexpr std::string_view kScrubKey = "v";
inline constexpr std::string_view kLastScrubKey = "f";
inline constexpr std::string_view kSavingsHistoryKey = "a";
inline constexpr std::string_view kScrubHistoryKey = "j";
// The number of the next snapshot (little-endian, 8 bytes); absent if there never was a snapshot.
inline constexpr std::string_view kNextSnapshotKey = "m";

// Positions in Counters (metadata_store.h). They are stored on disk, so only append new ones.
enum class Counter : uint8_t {
  kLogicalBytes = 0,    // of regular files: sizes without holes
  kFiles = 1,           // inodes that are not directories
  kDirectories = 2,     //
  kChunkReferences = 3  // from files' recipes and overlays
};

}  // namespace siltfs
