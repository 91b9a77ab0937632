// siltfs mkfs
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <array>
#include <charconv>
#include <memory>
#include <optional>

#include "fs/core/make_store.h"
#include "fs/fuse/size_text.h"
#include "store/env/mountpoint.h"
#include "store/env/posix_env.h"
#include "tools/siltfs/command.h"

namespace siltfs {
namespace {

constexpr int kMinCompressionLevel = 1;
constexpr int kMaxCompressionLevel = 19;

struct EngineName {
  std::string_view name;
  IndexEngine engine;
};
constexpr std::array kEngines = {EngineName{"silt", IndexEngine::kSilt},
                                 EngineName{"map", IndexEngine::kMap}};

// As given on the command line.
struct Arguments {
  std::string store;
  std::optional<std::string> chunk_min;
  std::optional<std::string> chunk_avg;
  std::optional<std::string> chunk_max;
  std::optional<std::string> compression;
  std::optional<std::string> index_engine;
  std::optional<std::string> index_memory;
};

Status Wrong(std::string cause) { return {StatusCode::kInvalidArgument, std::move(cause)}; }

Result<int> ParseCompression(std::string_view text) {
  if (text == "none") return 0;
  constexpr std::string_view kPrefix = "zstd:";
  int level = 0;
  if (text.starts_with(kPrefix)) {
    const std::string_view digits = text.substr(kPrefix.size());
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), level);
    if (error != std::errc() || rest != digits.data() + digits.size()) level = 0;
  }
  if (level < kMinCompressionLevel || level > kMaxCompressionLevel) {
    return Wrong(
        fmt::format("--compression: \"{}\" is neither none nor zstd:N with N from {} to {}", text,
                    kMinCompressionLevel, kMaxCompressionLevel));
  }
  return level;
}

Result<IndexEngine> ParseEngine(std::string_view text) {
  for (const EngineName& engine : kEngines) {
    if (engine.name == text) return engine.engine;
  }
  std::string names;
  for (const EngineName& engine : kEngines)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", engine.name);
  return Wrong(
      fmt::format("--index-engine: there is no engine \"{}\" (there are: {})", text, names));
}

Result<uint64_t> ParseOption(std::string_view option, const std::string& text, uint64_t most) {
  const Result<uint64_t> size = ParseSize(text);
  if (!size.ok()) return Wrong(fmt::format("{}: {}", option, size.status().cause()));
  if (*size > most)
    return Wrong(fmt::format("{}: {} is more than the largest, {}", option, text, most));
  return *size;
}

Status ParseChunkSizes(const Arguments& arguments, MakeStoreOptions& options) {
  const auto parse = [](std::string_view option, const std::optional<std::string>& text,
                        uint32_t& size) -> Status {
    if (!text) return {};
    SILTFS_ASSIGN_OR_RETURN(const uint64_t bytes, ParseOption(option, *text, UINT32_MAX / 8));
    size = static_cast<uint32_t>(bytes);
    return {};
  };
  SILTFS_RETURN_IF_ERROR(parse("--chunk-avg", arguments.chunk_avg, options.chunk_avg));
  if (arguments.chunk_avg) {  // the others keep their proportions
    options.chunk_min = options.chunk_avg / 4;
    options.chunk_max = options.chunk_avg * 8;
  }
  SILTFS_RETURN_IF_ERROR(parse("--chunk-min", arguments.chunk_min, options.chunk_min));
  return parse("--chunk-max", arguments.chunk_max, options.chunk_max);
}

Result<MakeStoreOptions> ToOptions(const Arguments& arguments) {
  MakeStoreOptions options;
  SILTFS_ASSIGN_OR_RETURN(options.path, AbsolutePath(arguments.store));
  SILTFS_RETURN_IF_ERROR(ParseChunkSizes(arguments, options));
  if (arguments.compression) {
    SILTFS_ASSIGN_OR_RETURN(options.compression_level, ParseCompression(*arguments.compression));
  }
  if (arguments.index_engine) {
    SILTFS_ASSIGN_OR_RETURN(options.index_engine, ParseEngine(*arguments.index_engine));
  }
  if (arguments.index_memory) {
    SILTFS_ASSIGN_OR_RETURN(options.index_memory,
                            ParseOption("--index-memory", *arguments.index_memory, UINT64_MAX));
  }
  return options;
}

// A directory that was there before may have been anybody's to look into.
Status Make(Env& env, const MakeStoreOptions& options) {
  SILTFS_RETURN_IF_ERROR(MakeStore(env, options));
  return KeepToOwner(options.path);
}

}  // namespace

std::function<ExitCode()> ConfigureMkfs(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<Arguments>();
  const MakeStoreOptions defaults;
  app.add_option("STORE", arguments->store,
                 "Directory to make the store in; it must be empty if it exists")
      ->required();
  app.add_option("--chunk-avg", arguments->chunk_avg, "Mean chunk size (8K)")->type_name("SIZE");
  app.add_option("--chunk-min", arguments->chunk_min, "Smallest chunk (a quarter of the mean)")
      ->type_name("SIZE");
  app.add_option("--chunk-max", arguments->chunk_max, "Largest chunk (eight times the mean)")
      ->type_name("SIZE");
  app.add_option("--compression", arguments->compression,
                 fmt::format("zstd:N with N from {} to {}, or none (zstd:{})", kMinCompressionLevel,
                             kMaxCompressionLevel, defaults.compression_level))
      ->type_name("HOW");
  app.add_option("--index-engine", arguments->index_engine,
                 "silt, or map, which keeps all in memory (silt)")
      ->type_name("ENGINE");
  app.add_option(
         "--index-memory", arguments->index_memory,
         fmt::format("Memory for the index and its filter ({}M)", defaults.index_memory >> 20))
      ->type_name("SIZE");
  return [arguments, &surroundings] {
    const Result<MakeStoreOptions> options = ToOptions(*arguments);
    const Status made = options.ok() ? Make(surroundings.env, *options) : options.status();
    if (made.ok()) return ExitCode::kDone;
    // What is not there is a directory on the way, not a store.
    const ExitCode code = made.Is(StatusCode::kNotFound) ? ExitCode::kFailed : ExitCodeOf(made);
    return Fail(surroundings, code, made.ToString());
  };
}

}  // namespace siltfs
