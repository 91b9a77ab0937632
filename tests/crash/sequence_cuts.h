// Runs one sequence and cuts the power before changes that its store made to the device, and at the
// end: before as many, drawn from all, as its plan says (most_places in sequence.h: 40 as a rule,
// and every one in about one sequence of eight), twice each.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/crash/cut.h"
#include "tests/crash/injection.h"

namespace siltfs::testing {

// Told of each cut: what is wrong (empty: it was legal), where it was, and how to make it again.
using CutVerdict = std::function<void(const std::string& problem, const std::string& place,
                                      bool in_recovery, const CutChain& chain)>;

// A sequence whose process is killed at `limit` places at most, a byte rotting each time (rot.h).
// The last argument of `verdict` tells whether the store noticed; there is no chain.
void RotSequence(uint64_t seed, uint64_t limit,
                 const std::function<void(const std::string& problem, const std::string& place,
                                          bool noticed)>& verdict);

// At most `limit` cuts. What keeps the sequence itself from being run is a verdict, too.
void CutSequence(uint64_t seed, uint64_t limit, Injection injection, const CutVerdict& verdict);

}  // namespace siltfs::testing
