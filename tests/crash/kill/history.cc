#include "tests/crash/kill/history.h"

#include <array>

namespace siltfs::killtest {

std::string DescribeOperation(const Operation& operation) {
  static constexpr std::array kNames = {"mkdir", "rmdir",      "symlink",  "create",
                                        "write", "write-back", "truncate", "rename",
                                        "link",  "unlink",     "setxattr"};
  std::string text = kNames[static_cast<size_t>(operation.kind)];
  text += " " + operation.name;
  if (!operation.other.empty()) text += " " + operation.other;
  return text;
}

}  // namespace siltfs::killtest
