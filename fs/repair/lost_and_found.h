// /lost+found, the directory for inodes without a name. It is created on first need, with the root
// directory's owner and mode 0700. An inode's name there is #NUMBER.
//
// Not thread-safe. Finish changes the records of the root and of /lost+found; no other code may
// change them in the same step.
#pragma once

#include <optional>

#include "fs/records/inode_record.h"
#include "fs/repair/metadata_edit.h"

namespace siltfs {

class LostAndFound {
 public:
  // `now`: nanoseconds since 1970.
  LostAndFound(MetadataEdit& edit, int64_t now) : edit_(edit), now_(now) {}

  // Gives the inode a name in /lost+found. Returns the inode number of /lost+found, which becomes
  // the parent of the inode if that is a directory.
  Result<uint64_t> TakeIn(uint64_t inode, uint32_t type);
  // Updates the records of the root and of /lost+found. kCorruption if there is no root.
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
