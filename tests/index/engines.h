// The engines that this folder's suites test: each row of the table of index engines
// (index/engines.h), and SILT with tiny tables.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "index/chunk_index.h"
#include "store/env/env.h"

namespace siltfs::testing {

struct Engine {
  std::string name;
  std::function<Result<std::unique_ptr<ChunkIndex>>(Env&, const std::string& directory,
                                                    bool read_only)>
      open;
  // Removes files that are no longer needed when the disk is full, and tries again.
  bool makes_room = false;
};

// Engines that make the same device calls in the same order in every run; for GENERATE. SILT's
// tables are so small that they are frozen, converted and merged all the time.
const std::vector<Engine>& Engines();
// Engines(), and engines with background threads.
const std::vector<Engine>& AllEngines();

}  // namespace siltfs::testing
