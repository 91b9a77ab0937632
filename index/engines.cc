#include "index/engines.h"

#include <fmt/format.h>

#include <array>

#include "index/bloom_store/bloom_store_engine.h"
#include "index/buffer_hash/buffer_hash_engine.h"
#include "index/map/map_index.h"
#include "index/silt/silt_index.h"
#include "index/skimpy_stash/skimpy_stash_engine.h"
#include "index/slice_hash/slice_hash_engine.h"

namespace siltfs {

std::span<const IndexEngineRow* const> IndexEngines() {
  static constexpr std::array kRows = {
      &kSiltIndexEngine, &kMapIndexEngine,   &kBufferHashEngine,
      &kSliceHashEngine, &kBloomStoreEngine, &kSkimpyStashEngine,
  };
  return kRows;
}

const IndexEngineRow* FindIndexEngine(IndexEngine number) {
  for (const IndexEngineRow* row : IndexEngines()) {
    if (row->number == number) return row;
  }
  return nullptr;
}

Result<const IndexEngineRow*> FindIndexEngine(std::string_view name) {
  std::string names;
  for (const IndexEngineRow* row : IndexEngines()) {
    if (row->name == name) return row;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row->name);
  }
  return Status(StatusCode::kInvalidArgument,
                fmt::format("there is no engine \"{}\" (there are: {})", name, names));
}

Status CheckIndexChoice(IndexEngine engine, const EngineParameters& parameters) {
  const IndexEngineRow* const row = FindIndexEngine(engine);
  if (row == nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("there is no index engine {}", static_cast<int>(engine)));
  }
  SILTFS_RETURN_IF_ERROR(CheckEngineParameters(row->name, row->parameters, parameters));
  return row->plan({.entries = 1, .parameters = parameters}).status();
}

}  // namespace siltfs
