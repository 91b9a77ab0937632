// Translates attributes between the core's form and the kernel's.
#pragma once

#include "fs/fuse/fuse_api.h"
#include "fs/fuse/kernel_messages.h"
#include "fs/interface/file_system.h"

namespace siltfs::fuse {

struct stat ToStat(const Attributes& attributes);

// Attributes, and how long the kernel may cache them.
struct AttributeReply {
  Attributes attributes;
  uint32_t valid_seconds = 0;
};

// The reply to STATX, which includes the birth time.
StatxReply ToStatx(const AttributeReply& told);

// The reply for a name, which stays valid for a day. The node id is the inode number.
fuse_entry_param ToEntry(const AttributeReply& told);

// `which` has the FUSE_SET_ATTR_... bits of the attributes to change. The bits for the current time
// set a time to `now`, in nanoseconds since 1970.
AttributeChange ToChange(const struct stat& wanted, int which, int64_t now);

}  // namespace siltfs::fuse
