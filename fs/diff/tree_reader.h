// Reads inodes and directories of one state.
//
// Not thread-safe. Ownership: borrows the state, which must outlive it. Errors: those of the
// key-value store; kCorruption, with the inode, for malformed or contradictory records.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fs/kv/kv_store.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/schema.h"

namespace siltfs {

class TreeReader {
 public:
  explicit TreeReader(const KvSnapshot& state);

  // nullopt if there is no such inode, or if it has no name.
  Result<std::optional<InodeRecord>> FindInode(uint64_t inode) const;
  // The record of a directory that has a name in `parent`. Each directory has one parent. So a walk
  // that reads all its directories with this function meets none of them below itself.
  Result<InodeRecord> ReadChildDirectory(uint64_t directory, uint64_t parent) const;
  Result<std::optional<NameEntry>> FindName(const NamePlace& place) const;

  struct Name {
    std::string name;
    NameEntry entry;
  };
  // The first name of the directory after `last`, in the order of bytes; nullopt at the end. Calls
  // that go through a directory in order are cheap.
  Result<std::optional<Name>> NextName(uint64_t directory, std::string_view last);

 private:
  const KvSnapshot& state_;
  // Of one directory: an iterator over a view of a snapshot reads all versions up to its end.
  std::unique_ptr<KvIterator> names_;
  uint64_t directory_ = 0;  // whose names names_ reads; 0: none
  std::string at_;          // the key at which names_ stands; empty: nowhere
};

Status Contradiction(uint64_t inode, std::string_view what);

}  // namespace siltfs
