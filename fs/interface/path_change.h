// A difference between two states of the file system (Snapshots::Diff).
//
// Thread-safety: as for a plain value.
#pragma once

#include <cstdint>
#include <string>

namespace siltfs {

enum class ChangeKind : uint8_t { kCreated, kChanged, kRenamed, kDeleted };

struct PathChange {
  ChangeKind kind = ChangeKind::kCreated;
  std::string path;  // from the root, such as "/a/b", in the newer state; of kDeleted, in the older
  // Only of kRenamed and kChanged: the path in the older state. For kChanged it is different if a
  // directory above was renamed.
  std::string old_path;
  uint32_t type = 0;  // S_IFMT bits
  // Only of kChanged and kRenamed: whether the data may differ, and whether the attributes do.
  bool content = false;
  bool metadata = false;

  bool operator==(const PathChange&) const = default;
};

}  // namespace siltfs
