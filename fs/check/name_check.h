// Names against inodes: every name leads to an inode of its type, every inode has as many names as
// it says, and a directory's one name stands in its parent.
//
// Inodes are taken in passes of a bounded number; each pass reads all names of the store once and
// counts those that lead into it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fs/check/check_context.h"
#include "fs/meta/inode_record.h"

namespace siltfs {

class NameCheck {
 public:
  NameCheck(CheckContext& context, const KvSnapshot& snapshot)
      : context_(context), snapshot_(snapshot) {}

  // The next inode; numbers ascend. Without a record: it is malformed, and nothing is known but
  // that it is there.
  Status Add(uint64_t number, const std::optional<InodeRecord>& record, bool orphan);
  // There are no more.
  Status Finish();

 private:
  struct Slot {
    uint64_t number = 0;
    uint64_t parent = 0;   // that a directory says it has
    uint64_t seen_in = 0;  // a directory that has a name of it
    uint32_t links = 0;
    uint32_t names = 0;
    uint32_t type = 0;
    bool known = false;
    bool orphan = false;
  };

  // Of the inodes from first_ to `last`.
  Status Pass(uint64_t last);
  void CountName(uint64_t directory, std::string_view name, std::string_view value, uint64_t last);
  void Judge(const Slot& slot);
  void Say(const char* code, uint64_t inode, std::string message);

  CheckContext& context_;
  const KvSnapshot& snapshot_;
  std::vector<Slot> slots_;
  uint64_t first_ = 0;
};

}  // namespace siltfs
