// The directory that takes in inodes without a name: /lost+found, made when it is first needed,
// for its owner alone, which is the root's. An inode is called #NUMBER there.
//
// Not thread-safe. The records of the root and of /lost+found are changed by Finish alone; nobody
// else may change them in the same step.
#pragma once

#include <optional>

#include "fs/meta/inode_record.h"
#include "fs/repair/metadata_edit.h"

namespace siltfs {

class LostAndFound {
 public:
  // `now`: nanoseconds since 1970.
  LostAndFound(MetadataEdit& edit, int64_t now) : edit_(edit), now_(now) {}

  // Gives the inode a name; the directory's number, which is a subdirectory's parent.
  Result<uint64_t> TakeIn(uint64_t inode, uint32_t type);
  // Enters what was taken in. kCorruption without a root.
  Status Finish();

 private:
  Status Open();
  Status Make();
  Result<std::optional<uint64_t>> Find(std::string_view name);
  void AddName(uint64_t directory, InodeRecord& record, std::string name, uint64_t inode,
               uint32_t type);

  MetadataEdit& edit_;
  const int64_t now_;
  uint64_t number_ = 0;  // 0: not opened yet
  bool made_ = false;
  InodeRecord record_;
  InodeRecord root_;
};

}  // namespace siltfs
