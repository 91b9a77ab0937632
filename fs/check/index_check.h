// The chunk index by itself. That it finds every chunk is checked with the segments
// (segment_walk.h).
#pragma once

#include "fs/check/check_context.h"

namespace siltfs {

// Opens the index into the context, read-only. One that cannot be opened is a finding; kNeedsNewer
// for an engine or format of a later version.
Status OpenCheckedIndex(CheckContext& context);

// What the index's own verification finds, and how many of its entries lead nowhere.
Status CheckIndex(CheckContext& context);

}  // namespace siltfs
