// Whether two messages of a transfer are equal in all that they say.
#pragma once

#include <algorithm>
#include <vector>

#include "fs/transfer/content_record.h"
#include "fs/transfer/entry_record.h"
#include "fs/transfer/lane_message.h"

namespace siltfs::testing {

inline bool Same(const transfer::Request& a, const transfer::Request& b) {
  return a.type == b.type && a.flags == b.flags && a.slot == b.slot && a.bytes == b.bytes &&
         a.count == b.count && a.number == b.number && a.second == b.second;
}

inline bool Same(const transfer::Answer& a, const transfer::Answer& b) {
  return a.code == b.code && a.flags == b.flags && a.bytes == b.bytes && a.count == b.count &&
         a.number == b.number && a.second == b.second && a.cause == b.cause;
}

inline bool Same(const transfer::Outcome& a, const transfer::Outcome& b) {
  return a.code == b.code && a.effect == b.effect && a.inode == b.inode && a.cause == b.cause;
}

inline bool Same(const transfer::ListedName& a, const transfer::ListedName& b) {
  return a.mode == b.mode && a.name == b.name;
}

inline bool Same(const ChunkPlace& a, const ChunkPlace& b) {
  return a.name == b.name && a.length == b.length && a.location == b.location;
}

inline bool Same(const transfer::FilePiece& a, const transfer::FilePiece& b) {
  if (a.file != b.file || a.code != b.code) return false;
  if (a.code != StatusCode::kOk) return true;  // then there is no piece
  return a.piece.kind == b.piece.kind && a.piece.offset == b.piece.offset &&
         a.piece.length == b.piece.length && Same(a.piece.chunk, b.piece.chunk);
}

inline bool Same(const transfer::DecodedRecord& a, const transfer::DecodedRecord& b) {
  const auto same_xattr = [](const XattrImage& one, const XattrImage& other) {
    return one.name == other.name && one.value == other.value;
  };
  const auto same_extent = [](const ExtentImage& one, const ExtentImage& other) {
    return one.offset == other.offset && AsText(one.bytes) == AsText(other.bytes);
  };
  const EntryImage& one = a.image;
  const EntryImage& other = b.image;
  return a.kind == b.kind && a.number == b.number && one.parent == other.parent &&
         one.name == other.name && one.mode == other.mode && one.uid == other.uid &&
         one.gid == other.gid && one.device == other.device && one.size == other.size &&
         one.atime == other.atime && one.mtime == other.mtime && one.target == other.target &&
         one.source == other.source && std::ranges::equal(a.xattrs, b.xattrs, same_xattr) &&
         std::ranges::equal(a.extents, b.extents, same_extent);
}

template <typename Value>
bool Same(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::ranges::equal(a, b,
                            [](const Value& one, const Value& two) { return Same(one, two); });
}

}  // namespace siltfs::testing
