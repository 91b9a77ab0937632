// Compares names with inodes. Every name must refer to an inode of the type that the name records.
// An inode must have as many names as its link count says; a directory must have one name, in the
// parent that its inode records.
//
// Works in passes. Each pass handles a bounded number of inodes: it reads all names of the store
// once, and counts the names of these inodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fs/check/check_context.h"
#include "fs/records/inode_record.h"

namespace siltfs {

class NameCheck {
 public:
  // `live`: the snapshot has the live files, and so perhaps hidden inodes.
  NameCheck(CheckContext& context, const KvSnapshot& snapshot, bool live)
      : context_(context), snapshot_(snapshot), live_(live) {}

  // Adds an inode with a higher number than the one before. `record` is empty if the inode's record
  // is malformed.
  Status Add(uint64_t number, const std::optional<InodeRecord>& record, bool orphan);
  // Checks the inodes that are left. Call after the last Add.
  Status Finish();

 private:
  struct Slot {
    uint64_t number = 0;
    uint64_t parent = 0;   // of a directory, according to its record
    uint64_t seen_in = 0;  // the last directory in which a name of the inode was found
    uint32_t links = 0;
    uint32_t names = 0;
    uint32_t type = 0;
    bool known = false;
    bool orphan = false;
  };

  // Checks the inodes from first_ to `last`.
  Status Pass(uint64_t last);
  void CountName(uint64_t directory, std::string_view name, std::string_view value, uint64_t last);
  void Judge(const Slot& slot);
  void Say(const char* code, uint64_t inode, std::string message);

  CheckContext& context_;
  const KvSnapshot& snapshot_;
  const bool live_;
  std::vector<Slot> slots_;
  uint64_t first_ = 0;
};

}  // namespace siltfs
