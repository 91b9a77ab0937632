// Injects known faults in the order of writes, to show that the crash tests find them. An injection
// turns the trace of a correct store into the trace of a store with the fault. A sync only changes
// what survives a power cut, so it is enough to leave syncs out of the trace, or to move them.
#pragma once

#include <optional>
#include <string_view>

#include "store/env/sim_trace.h"

namespace siltfs::testing {

enum class Injection {
  kNone,
  kSkipSegmentSync,    // segments are never synced
  kSwapCommitOrder,    // metadata becomes durable before the segments it refers to
  kDropDirectorySync,  // no directory is ever synced
};

// Parses a name on the command line, such as "skip-segment-sync". Returns nullopt for an unknown
// name.
std::optional<Injection> ParseInjection(std::string_view name);

// Returns the trace with the fault. The first `keep` records stay unchanged.
SimTrace Inject(SimTrace trace, Injection injection, size_t keep);

}  // namespace siltfs::testing
