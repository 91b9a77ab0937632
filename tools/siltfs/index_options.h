// Parses the options of mkfs that choose the index engine and its parameters; errors are
// kInvalidArgument and name the option.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fs/open/make_store.h"
#include "index/index_engine.h"

namespace siltfs {

// --index-engine
Result<const IndexEngineRow*> FindEngine(std::string_view name);

// --index-option, each NAME=VALUE
Result<EngineParameters> ParseIndexOptions(const std::vector<std::string>& options,
                                           IndexEngine engine);

// --expected-chunks: returns the parameters in `options` and those that the engine chooses for this
// number of chunks. kUnsupported if no parameters suit the memory in `options`.
Result<EngineParameters> ChooseIndexParameters(const std::string& chunks,
                                               const MakeStoreOptions& options);

}  // namespace siltfs
