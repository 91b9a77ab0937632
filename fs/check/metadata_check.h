// Checks the metadata: it can be opened, its store-wide records are well-formed, and its tables are
// consistent. It must also not be older than the rest of the store (docs/crash-model.md, I5).
#pragma once

#include "fs/check/check_context.h"

namespace siltfs {

// Opens the key-value store and reads the store-wide records into the context. Missing or
// unreadable records are findings. Fails with kNeedsNewer if the sync ledger is of a later version.
Status OpenMetadata(CheckContext& context);

// Compares all tables with each other; see inode_check.h and name_check.h.
Status CheckMetadata(CheckContext& context);

}  // namespace siltfs
