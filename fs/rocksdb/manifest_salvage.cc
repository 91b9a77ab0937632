#include "fs/rocksdb/manifest_salvage.h"

#include <algorithm>
#include <optional>

#include "fs/rocksdb/table_block.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

enum Tag : uint64_t {
  kComparator = 1,
  kLogNumber = 2,
  kNextFile = 3,
  kLastChange = 4,
  kCompactCursor = 5,
  kRemovedTable = 6,
  kPreviousLog = 9,
  kFirstLog = 10,
  kAddedTable = 103,
  kColumnFamily = 200,
  kMostColumnFamilies = 203,
  kInGroup = 300,
  kIgnorable = 1u << 13,  // a text follows
};
constexpr uint64_t kEndOfTable = 1;
constexpr uint64_t kMustBeKnown = 1u << 6;

bool SkipText(Decoder& in) {
  const auto length = DecodeVarint(in);
  if (!length || *length > in.remaining()) return false;
  in.Skip(*length);
  return true;
}

bool SkipNumbers(Decoder& in, int count) {
  for (int i = 0; i < count; ++i) {
    if (!DecodeVarint(in)) return false;
  }
  return true;
}

bool AddTable(Decoder& in, LiveFiles& files) {
  const auto level = DecodeVarint(in);
  const auto number = DecodeVarint(in);
  // Skip the table's size, its first and last key, and the numbers of its first and last change.
  if (!level || !number || !SkipNumbers(in, 1) || !SkipText(in) || !SkipText(in) ||
      !SkipNumbers(in, 2)) {
    return false;
  }
  while (true) {
    const auto field = DecodeVarint(in);
    if (!field || (*field & kMustBeKnown) != 0) return false;
    if (*field == kEndOfTable) break;
    if (!SkipText(in)) return false;
  }
  files.tables.insert(*number);
  return true;
}

bool RemoveTable(Decoder& in, LiveFiles& files) {
  const auto level = DecodeVarint(in);
  const auto number = DecodeVarint(in);
  if (!level || !number) return false;
  files.tables.erase(*number);
  return true;
}

bool RaiseFirstLog(Decoder& in, LiveFiles& files) {
  const auto number = DecodeVarint(in);
  if (number) files.first_log = std::max(files.first_log, *number);
  return number.has_value();
}

bool ApplyField(uint64_t tag, Decoder& in, LiveFiles& files) {
  switch (tag) {
    case kLogNumber:
    case kFirstLog:
      return RaiseFirstLog(in, files);
    case kRemovedTable:
      return RemoveTable(in, files);
    case kAddedTable:
      return AddTable(in, files);
    case kComparator:
      return SkipText(in);
    case kNextFile:
    case kLastChange:
    case kPreviousLog:
    case kMostColumnFamilies:
    case kInGroup:
      return SkipNumbers(in, 1);
    case kCompactCursor:
      return SkipNumbers(in, 1) && SkipText(in);
    case kColumnFamily:
      return DecodeVarint(in) == uint64_t{0};  // the only column family
    default:
      return (tag & kIgnorable) != 0 && SkipText(in);
  }
}

}  // namespace

bool ApplyEdit(ByteView edit, LiveFiles& files) {
  // An edit that moves a table to another level both removes and adds it, in either order. So the
  // additions are applied last.
  LiveFiles added;
  added.first_log = files.first_log;
  for (Decoder in(edit); in.remaining() > 0;) {
    const auto tag = DecodeVarint(in);
    if (!tag) return false;
    LiveFiles& into = *tag == kAddedTable ? added : files;
    if (!ApplyField(*tag, in, into)) return false;
  }
  files.tables.insert(added.tables.begin(), added.tables.end());
  return true;
}

}  // namespace siltfs
