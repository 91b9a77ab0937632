#include "tools/siltfs/tune_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <utility>
#include <vector>

#include "index/engines.h"
#include "store/base/size_text.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/store_options.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

std::string EngineName(const Superblock& superblock) {
  const IndexEngineRow* const row =
      FindIndexEngine(static_cast<IndexEngine>(superblock.index_engine));
  return row == nullptr ? fmt::format("unknown ({})", superblock.index_engine)
                        : std::string(row->name);
}

std::string MetadataEngineName(const Superblock& superblock) {
  return superblock.metadata_engine.empty() ? "rocksdb" : superblock.metadata_engine;
}

std::string LabelText(const Superblock& superblock) {
  return superblock.label.empty() ? "-" : Printable(superblock.label);
}

}  // namespace

Json ParametersToJson(const std::string& store, const Superblock& superblock) {
  Json index_options = Json::object();
  for (const EngineParameter& parameter : superblock.index_parameters)
    index_options[parameter.name] = parameter.value;
  return {{"store", store},
          {"label", superblock.label.empty() ? Json() : Json(superblock.label)},
          {"uuid", superblock.shown_uuid().ToText()},
          {"original_uuid", superblock.uuid.ToText()},
          {"created_at", static_cast<double>(superblock.created_ns) / 1e9},
          {"format_version", kStoreFormatVersion},
          {"compression", FormatCompression(superblock.compression)},
          {"index_memory_bytes", superblock.index_memory},
          {"index_engine", EngineName(superblock)},
          {"index_options", std::move(index_options)},
          {"metadata_engine", MetadataEngineName(superblock)},
          {"delta", superblock.deltas()},
          {"chunk_min_bytes", superblock.chunk_min},
          {"chunk_avg_bytes", superblock.chunk_avg},
          {"chunk_max_bytes", superblock.chunk_max},
          {"block_bytes", superblock.block_plain_bytes},
          {"segment_bytes", superblock.segment_bytes}};
}

std::string FormatParameters(const std::string& store, const Superblock& superblock) {
  const auto size = [](uint64_t bytes) { return FormatSizeArgument(bytes); };
  std::string engine = EngineName(superblock);
  for (const EngineParameter& parameter : superblock.index_parameters)
    engine += fmt::format(", {}={}", parameter.name, parameter.value);
  const std::vector<std::pair<std::string, std::string>> changeable = {
      {"Label", LabelText(superblock)},
      {"UUID", superblock.shown_uuid().ToText()},
      {"Compression", FormatCompression(superblock.compression)},
      {"Index memory", size(superblock.index_memory)}};
  const std::vector<std::pair<std::string, std::string>> fixed = {
      {"Created", fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(
                                                 superblock.created_ns / 1'000'000'000)))},
      {"Chunks", fmt::format("{} on average, {} to {}", size(superblock.chunk_avg),
                             size(superblock.chunk_min), size(superblock.chunk_max))},
      {"Segments", size(superblock.segment_bytes)},
      {"Deltas", superblock.deltas() ? "on" : "off"},
      {"Index engine", engine},
      {"Metadata", MetadataEngineName(superblock)},
      {"First UUID", superblock.uuid.ToText()}};
  std::string text = fmt::format("{:<16}{}\n", "Store", Printable(store));
  text += "Can be changed\n";
  for (const auto& [name, value] : changeable) text += fmt::format("  {:<14}{}\n", name, value);
  text += "Set by mkfs\n";
  for (const auto& [name, value] : fixed) text += fmt::format("  {:<14}{}\n", name, value);
  return text;
}

std::string FormatChanges(const TunedStore& tuned) {
  std::string text;
  const auto compare = [&](std::string_view name, const std::string& before,
                           const std::string& after) {
    if (before != after) text += fmt::format("{}: {} -> {}\n", name, before, after);
  };
  compare("label", LabelText(tuned.before), LabelText(tuned.after));
  compare("UUID", tuned.before.shown_uuid().ToText(), tuned.after.shown_uuid().ToText());
  compare("compression", FormatCompression(tuned.before.compression),
          FormatCompression(tuned.after.compression));
  compare("index memory", FormatSizeArgument(tuned.before.index_memory),
          FormatSizeArgument(tuned.after.index_memory));
  return text;
}

}  // namespace siltfs
