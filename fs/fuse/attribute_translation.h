// Attributes as the core has them, and as the kernel wants and sends them.
#pragma once

#include "fs/core/file_system.h"
#include "fs/fuse/fuse_api.h"
#include "fs/fuse/kernel_messages.h"

namespace siltfs::fuse {

struct stat ToStat(const Attributes& attributes);

// Attributes, and for how long the kernel may believe them.
struct ToldAttributes {
  Attributes attributes;
  uint32_t valid_seconds = 0;
};

// With the birth time.
StatxReply ToStatx(const ToldAttributes& told);

// Under the inode's number as node id, the name valid for a day.
fuse_entry_param ToEntry(const ToldAttributes& told);

// `which` are FUSE_SET_ATTR_... bits; "now" becomes `now`, nanoseconds since 1970.
AttributeChange ToChange(const struct stat& wanted, int which, int64_t now);

}  // namespace siltfs::fuse
