// An inode in the metadata: its attributes and, by type, a directory's counts, a symbolic link's
// target or a regular file's recipe. Encoding: docs/format.md, "Inode".
//
// A file's content is its recipe below `recipe_limit`, overridden by its overlay
// (overlay_extent.h), and zeros elsewhere up to `size`. Thread-safety: as for a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fs/recipe/recipe.h"
#include "store/base/result.h"

namespace siltfs {

struct InodeRecord {
  uint32_t mode = 0;  // st_mode
  uint32_t links = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t device = 0;  // st_rdev; 0 unless it is a device node
  uint64_t size = 0;
  int64_t atime = 0;  // times in nanoseconds since 1970
  int64_t mtime = 0;
  int64_t ctime = 0;
  int64_t btime = 0;
  uint32_t xattrs = 0;  // number of extended attributes
  // The quota that the inode counts against (quota_record.h). A number without such a quota has no
  // meaning: the quota was removed.
  uint64_t quota = 0;

  // A directory's parent. For other inodes but device nodes a hint: the directory of the newest
  // name, 0 if it is not known. The hint may be wrong, because nothing corrects it when another
  // name is removed.
  uint64_t parent = 0;

  // Directories.
  uint64_t next_cookie = 0;
  uint64_t entries = 0;

  // Symbolic links.
  std::string target;

  // Regular files.
  Recipe recipe;
  // At most recipe.size(). The file does not use the recipe's bytes from this offset on.
  uint64_t recipe_limit = 0;
  uint64_t overlay_chunks = 0;  // chunk slices in the overlay
  uint64_t overlay_bytes = 0;   // bytes of chunk slices and raw bytes in the overlay
  bool has_overlay = false;

  bool IsDirectory() const { return (mode & 0170000) == 0040000; }
  bool IsRegular() const { return (mode & 0170000) == 0100000; }
  bool IsDevice() const { return type() == 0020000 || type() == 0060000; }
  bool IsSymlink() const { return (mode & 0170000) == 0120000; }
  uint32_t type() const { return mode & 0170000; }

  std::string Encode() const;
  static Result<InodeRecord> Decode(std::string_view value);
  // Whether an encoded record has the number of a quota.
  static bool HasQuotaNumber(std::string_view value);
};

}  // namespace siltfs
