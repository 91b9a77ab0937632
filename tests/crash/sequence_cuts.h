// Runs one sequence and cuts the power before changes of the device, and at the end. The plan says
// how many places are drawn from all (most_places in sequence.h: usually 40; about one sequence in
// eight uses every place). Each place is cut twice.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/crash/cut.h"
#include "tests/crash/injection.h"

namespace siltfs::testing {

// Called for each cut: the problem (empty: it was legal), the place, and the chain that reproduces
// it.
using CutVerdict = std::function<void(const std::string& problem, const std::string& place,
                                      bool in_recovery, const CutChain& chain)>;

// Runs a sequence and kills its process at no more than `limit` places; each time a byte rots
// (rot.h). The last argument of `verdict` says whether the store noticed; there is no chain.
void RotSequence(uint64_t seed, uint64_t limit,
                 const std::function<void(const std::string& problem, const std::string& place,
                                          bool noticed)>& verdict);

// At most `limit` cuts. A sequence that cannot be run is reported as a verdict, too.
void CutSequence(uint64_t seed, uint64_t limit, Injection injection, const CutVerdict& verdict);

}  // namespace siltfs::testing
