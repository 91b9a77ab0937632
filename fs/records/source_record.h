// What an imported file keeps of its source, as the hidden extended attribute kSourceXattr.
// Encoding: docs/format.md, "Source record".
//
// The record counts only as long as the file is as the import left it. So it also has the file's
// ctime and the checksum of its recipe. A change of attributes sets a new ctime, and a change of
// content makes another recipe.
//
// Thread-safety: as for a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fs/records/inode_record.h"
#include "store/base/result.h"

namespace siltfs {

// Extended attributes in this namespace belong to siltfs. They are neither listed nor accessible.
inline constexpr std::string_view kHiddenXattrs = "siltfs.";
inline constexpr std::string_view kSourceXattr = "siltfs.source";

inline bool IsHiddenXattr(std::string_view name) { return name.starts_with(kHiddenXattrs); }

struct SourceRecord {
  // Of the source. Times in nanoseconds since 1970.
  uint64_t inode = 0;
  int64_t ctime = 0;
  uint64_t size = 0;
  int64_t mtime = 0;
  // Of the file.
  int64_t own_ctime = 0;
  uint64_t recipe_checksum = 0;

  // Records the present state of the file.
  void DescribeFile(const InodeRecord& file);
  // Whether the file has the content that it had when it was recorded.
  bool HasContentOf(const InodeRecord& file) const;
  // Whether the file's attributes, extended attributes included, are the recorded ones, too.
  bool HasAttributesOf(const InodeRecord& file) const { return own_ctime == file.ctime; }

  std::string Encode() const;
  static Result<SourceRecord> Decode(std::string_view value);
  bool operator==(const SourceRecord&) const = default;
};

}  // namespace siltfs
