// The table of index engines. A new engine adds one row to engines.cc.
//
// Functions, safe to call from any thread. The rows live as long as the program.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "index/index_engine.h"

namespace siltfs {

// All engines, the default first.
std::span<const IndexEngineRow* const> IndexEngines();

// Returns null for an engine of a later version.
const IndexEngineRow* FindIndexEngine(IndexEngine number);
// kInvalidArgument, with the names of all engines, if no engine has this name.
Result<const IndexEngineRow*> FindIndexEngine(std::string_view name);

// Checks that the engine exists and accepts the parameters, before a store is made. Otherwise
// returns kInvalidArgument, with one sentence.
Status CheckIndexChoice(IndexEngine engine, const EngineParameters& parameters);

}  // namespace siltfs
