// The engines that the suites of this folder run over. A new engine adds one line to engines.cc.
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
};

// For GENERATE: engines that do the same calls to the device in the same order in every run; with
// tables so small that they are frozen, converted and merged all the time.
const std::vector<Engine>& Engines();
// And those with threads of their own, or as they are opened by default.
const std::vector<Engine>& AllEngines();

}  // namespace siltfs::testing
