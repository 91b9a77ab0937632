// The values of a directory entry's two keys: (directory, name) -> inode, type, cookie; (directory,
// cookie) -> inode, type, name. Cookies count up within a directory and are never reused, so
// readdir follows creation order and seekdir is stable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/result.h"

namespace siltfs {

// Cookies of "." and "..". The cookies of other entries begin after them.
inline constexpr uint64_t kDotCookie = 1;
inline constexpr uint64_t kDotDotCookie = 2;
inline constexpr uint64_t kFirstCookie = 3;

struct NameEntry {
  uint64_t inode = 0;
  uint32_t type = 0;  // S_IFMT bits
  uint64_t cookie = 0;

  bool IsDirectory() const { return type == 0040000; }

  std::string Encode() const;
  static Result<NameEntry> Decode(std::string_view value);
};

struct CookieEntry {
  uint64_t inode = 0;
  uint32_t type = 0;
  std::string name;

  std::string Encode() const;
  static Result<CookieEntry> Decode(std::string_view value);
};

}  // namespace siltfs
