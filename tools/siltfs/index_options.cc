#include "tools/siltfs/index_options.h"

#include <fmt/format.h>

#include <utility>

#include "index/engines.h"
#include "store/base/size_text.h"
#include "tools/siltfs/size_option.h"

namespace siltfs {
namespace {

Status Wrong(std::string cause) { return {StatusCode::kInvalidArgument, std::move(cause)}; }

}  // namespace

Result<const IndexEngineRow*> FindEngine(std::string_view name) {
  auto found = FindIndexEngine(name);
  if (!found.ok()) return Wrong(fmt::format("--index-engine: {}", found.status().cause()));
  return found;
}

Result<EngineParameters> ParseIndexOptions(const std::vector<std::string>& options,
                                           IndexEngine engine) {
  EngineParameters parameters;
  for (const std::string& option : options) {
    auto parameter = ParseEngineParameter(option);
    if (!parameter.ok())
      return Wrong(fmt::format("--index-option: {}", parameter.status().cause()));
    parameters.push_back(std::move(*parameter));
  }
  const Status checked = CheckIndexChoice(engine, parameters);
  if (!checked.ok()) return Wrong(fmt::format("--index-option: {}", checked.cause()));
  return parameters;
}

Result<EngineParameters> ChooseIndexParameters(const std::string& chunks,
                                               const MakeStoreOptions& options) {
  constexpr std::string_view kOption = "--expected-chunks";
  constexpr uint64_t kMost = uint64_t{1} << 48;
  SILTFS_ASSIGN_OR_RETURN(const uint64_t entries, ParseSizeOption(kOption, chunks));
  if (entries == 0 || entries > kMost) {
    return Wrong(fmt::format("{}: {} is not in the range from 1 to {}", kOption, chunks,
                             FormatSizeArgument(kMost)));
  }
  const IndexEngineRow& row = *FindIndexEngine(options.index_engine);
  if (row.choose == nullptr) {
    return Wrong(fmt::format("{}: engine {} has no parameters that depend on the number of chunks",
                             kOption, row.name));
  }
  auto chosen = row.choose({.entries = entries,
                            .memory_limit = options.index_memory,
                            .parameters = options.index_parameters});
  if (chosen.ok()) return chosen;
  return Status(chosen.status().code(), fmt::format("{}: {}", kOption, chosen.status().cause()));
}

}  // namespace siltfs
