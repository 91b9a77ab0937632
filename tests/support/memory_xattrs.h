// Extended attributes of a MemoryInode, and the permission bits that depend on them.
//
// Not thread-safe: MemoryFileSystem's mutex guards the inode. Errors: those of FileSystem. `now` is
// the clock that gives the time of the change.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "fs/interface/file_system.h"
#include "tests/support/memory_inodes.h"

namespace siltfs::testing {

Status SetXattrOf(MemoryInode& inode, std::string_view name, std::string_view value, XattrMode mode,
                  const std::function<int64_t()>& now);
Status RemoveXattrOf(MemoryInode& inode, std::string_view name,
                     const std::function<int64_t()>& now);
// Sets the permission bits, and adapts the access control list.
void SetPermissionBitsOf(MemoryInode& inode, uint32_t mode);
void DropPrivilegesOf(MemoryInode& inode, Privileges privileges);
// Gives a new inode its inherited access control lists; returns its resulting mode.
uint32_t InheritAcls(const MemoryInode& directory, MemoryInode& inode, uint32_t mode,
                     const Caller& caller);

}  // namespace siltfs::testing
