// The names of an inode's extended attributes, without the hidden ones
// (fs/records/source_record.h).
//
// Thread-safety: any thread; the caller holds the inode's lock, and the inode is loaded. Errors:
// those of metadata, and as stated.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fs/inodes/inode_table.h"
#include "fs/meta/metadata_store.h"
#include "store/base/result.h"

namespace siltfs {

Result<std::vector<std::string>> ListXattrNames(const MetadataStore& metadata, const Inode& inode);

// Returns kNoSpace if the inode's attribute names, together with `new_name`, would exceed
// kMaxXattrListBytes.
Status CheckXattrList(const MetadataStore& metadata, const Inode& inode, std::string_view new_name);

}  // namespace siltfs
