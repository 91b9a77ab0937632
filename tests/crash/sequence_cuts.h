// Runs one sequence and cuts the power at places before changes of the device, and at the end. The
// plan says how many places are used (most_places in sequence.h). Three sequences in four use 4
// places. Most others use 40, and some use 150 or every place. If the plan limits their number, the
// places are drawn at random. In stores with deltas half of them lie in recompression and garbage
// collection, and in sequences with snapshots half of them lie in steps that receive, clone,
// restore or remove snapshots. At each place two cuts are made. In the first cut no unsynced write
// survives, and in the second cut a random part of these writes.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/crash/cut.h"
#include "tests/crash/injection.h"
#include "tests/crash/sequence.h"

namespace siltfs::testing {

struct CutReport {
  std::string problem;  // empty: the state was legal
  std::string place;
  bool in_recovery = false;  // whether the cut was made in a recovery or after it
  bool noticed = false;      // whether the store noticed the rot
  bool deltas = false;       // whether the store had deltas
};
// Called for each cut, with the chain that reproduces the cut.
using CutVerdict = std::function<void(const CutReport& report, const CutChain& chain)>;

// Runs a sequence and kills its process at no more than `limit` places. After each kill a byte rots
// (rot.h). The chain has no links.
void RotSequence(uint64_t seed, Workload workload, uint64_t limit, const CutVerdict& verdict);

// Runs a sequence and makes at most `limit` cuts. A sequence that cannot be run is reported as a
// verdict, too.
void CutSequence(uint64_t seed, Workload workload, uint64_t limit, Injection injection,
                 const CutVerdict& verdict);

}  // namespace siltfs::testing
