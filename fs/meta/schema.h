// The keys of the metadata (docs/format.md, "Metadata"): which table a key belongs to, and how it
// sorts. Numbers in keys are big-endian, so that keys sort by number. Values: inode_record.h,
// directory_entry.h, overlay_extent.h, segment_record.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "store/base/location.h"

namespace siltfs {

// The first byte of every key.
enum class Table : char {
  kDamage = 'b',           // segment id, ordinal: damage_record.h
  kCommitNumber = 'c',     // metadata_store.h
  kCounters = 't',         // metadata_store.h
  kDirectoryEntry = 'd',   // inode of the directory, name
  kDirectoryCookie = 'k',  // inode of the directory, cookie
  kCollisions = 'h',       // how many SHA-1 collisions were met, ever
  kSecondary = 'e',        // segment id: it may hold copies to which the index does not lead; kNotesKey
  kInode = 'i',            // inode
  kOverlay = 'o',          // inode, offset
  kIdRanges = 'r',         // id_ranges.h
  kReplacement = 'p',      // segment id: the record it will have when its file was replaced
  kRemovedSegment = 'g',   // segment id: nothing refers to it, and its file is to be removed
  kSegment = 's',          // segment id
  kOrphan = 'u',           // inode without a name, to be removed when nobody uses it
  kScrub = 'v',            // scrub_record.h
  kGarbage = 'w',          // garbage_record.h
  kXattr = 'x',            // inode, name
};

std::string InodeKey(uint64_t inode);
std::string DirectoryEntryKey(uint64_t directory, std::string_view name);
std::string DirectoryCookieKey(uint64_t directory, uint64_t cookie);
std::string OverlayKey(uint64_t inode, uint64_t offset);
std::string OrphanKey(uint64_t inode);
std::string XattrKey(uint64_t inode, std::string_view name);
std::string SegmentKey(SegmentId segment);
std::string ReplacementKey(SegmentId segment);
std::string RemovedSegmentKey(SegmentId segment);
std::string SecondaryKey(SegmentId segment);
// The values of that key: of a segment that is being collected, and of any other.
inline constexpr std::string_view kCondemnedNote = "c";
inline constexpr std::string_view kPlainNote = "";
std::string DamageKey(SegmentId segment, uint32_t first_ordinal);

// The bounds of all keys of one table, or of one inode in a table keyed by inode first: [begin,
// end).
struct KeyRange {
  std::string begin;
  std::string end;
};
KeyRange RangeOf(Table table);
KeyRange RangeOf(Table table, uint64_t inode);

// The parts of a key; nullopt if it is not one of that table.
struct NumberedKey {
  uint64_t inode;
  uint64_t number;  // offset or cookie
};
std::optional<NumberedKey> ParseNumberedKey(Table table, std::string_view key);
std::optional<uint64_t> ParseInodeKey(Table table, std::string_view key);  // kInode, kOrphan
std::optional<SegmentId> ParseSegmentKey(std::string_view key);
std::optional<SegmentId> ParseReplacementKey(std::string_view key);
std::optional<SegmentId> ParseRemovedSegmentKey(std::string_view key);
std::optional<SegmentId> ParseSecondaryKey(std::string_view key);
// Segment and ordinal.
std::optional<std::pair<SegmentId, uint32_t>> ParseDamageKey(std::string_view key);
std::optional<std::string_view> ParseXattrName(std::string_view key);

inline constexpr std::string_view kCollisionsKey = "h";
inline constexpr std::string_view kIdRangesKey = "r";
inline constexpr std::string_view kGarbageKey = "w";
// Without a value: segments have been noted in kSecondary ever since all were compared with the
// index.
inline constexpr std::string_view kNotesKey = "e";
inline constexpr std::string_view kScrubKey = "v";

// Positions in Counters (metadata_store.h). On disk; append only.
enum class Counter : uint8_t {
  kLogicalBytes = 0,    // of regular files: sizes less holes
  kFiles = 1,           // inodes that are not directories
  kDirectories = 2,     //
  kChunkReferences = 3  // from files' recipes and overlays
};

}  // namespace siltfs
