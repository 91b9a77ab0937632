// Known faults of a store that keeps the order of its writes wrong, to show that the crash tests
// would find one: a trace as it would be had the store had that fault. Syncs show in nothing but
// what a power cut leaves, so leaving them out of the trace, or moving them, is all there is to it.
#pragma once

#include <optional>
#include <string_view>

#include "store/env/sim_trace.h"

namespace siltfs::testing {

enum class Injection {
  kNone,
  kSkipSegmentSync,    // segments are never synced
  kSwapCommitOrder,    // metadata is made durable before the segments it refers to
  kDropDirectorySync,  // no directory is ever synced
};

// By its name on the command line: "skip-segment-sync"; nothing for an unknown one.
std::optional<Injection> ParseInjection(std::string_view name);

// The first `keep` records stay as they are.
SimTrace Inject(SimTrace trace, Injection injection, size_t keep);

}  // namespace siltfs::testing
