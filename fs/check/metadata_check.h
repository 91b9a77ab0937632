// Metadata as a whole: whether it opens, what it says of the store, whether it is as new as it must
// be (docs/crash-model.md, I5), and whether it agrees with itself.
#pragma once

#include "fs/check/check_context.h"

namespace siltfs {

// Opens the key-value store and reads the records of the store as a whole into the context. What
// cannot be had is a finding; kNeedsNewer for a sync ledger of a later version.
Status OpenMetadata(CheckContext& context);

// All tables against each other: see inode_check.h and name_check.h.
Status CheckMetadata(CheckContext& context);

}  // namespace siltfs
