// Checks the metadata: that it opens, that its records of the store are well-formed, that it is as
// new as it must be (docs/crash-model.md, I5), and that it is consistent.
#pragma once

#include "fs/check/check_context.h"

namespace siltfs {

// Opens the key-value store and reads the store-wide records into the context. Missing or
// unreadable ones are findings; kNeedsNewer for a sync ledger of a later version.
Status OpenMetadata(CheckContext& context);

// Compares all tables with each other; see inode_check.h and name_check.h.
Status CheckMetadata(CheckContext& context);

}  // namespace siltfs
