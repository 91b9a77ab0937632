// Which snapshots `siltfs snapshot prune` keeps.
//
// Each rule keeps a number of snapshots: the newest ones, or the newest snapshot of each of the
// newest hours, days, weeks, months or years that have a snapshot. A snapshot is kept if one rule
// keeps it. Periods are those of the local time zone; weeks begin on Monday (ISO 8601).
//
// Pure functions, safe to call from any thread. No errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace siltfs {

struct PrunePolicy {
  uint64_t last = 0;
  uint64_t hourly = 0;
  uint64_t daily = 0;
  uint64_t weekly = 0;
  uint64_t monthly = 0;
  uint64_t yearly = 0;

  bool KeepsNothing() const { return last + hourly + daily + weekly + monthly + yearly == 0; }
};

// Returns for each snapshot the names of the rules that keep it, such as "daily"; an empty list
// means that it is not kept. `times`: when the snapshots were made, in seconds since 1970. Of two
// equal times, the one later in the list is newer. The order does not matter otherwise, because
// the clock may have been set back between two snapshots.
std::vector<std::vector<std::string>> ChooseKept(const std::vector<int64_t>& times,
                                                 const PrunePolicy& policy);

}  // namespace siltfs
