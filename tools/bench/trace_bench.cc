// siltfs-bench trace: records a trace of deduplication, and replays it on engines of the index.
#include <memory>
#include <string>
#include <vector>

#include "store/env/posix_env.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/trace_record.h"
#include "tools/bench/trace_replay.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

struct TraceBenchArguments {
  std::vector<std::string> directories;
  std::string output;
  uint64_t chunk_bytes = 8192;
  uint32_t value_bytes = Location::kEncodedSize;

  std::string trace;
  std::vector<std::string> engines = {"silt"};
  TraceReplayOptions replay;
};

Json Record(const TraceBenchArguments& arguments) {
  const auto env = NewPosixEnv();
  const RecordedTrace recorded =
      RecordTrace(*env, arguments.directories, static_cast<uint32_t>(arguments.chunk_bytes),
                  arguments.value_bytes);
  Require(WriteTrace(*env, arguments.output, recorded.trace));
  return {{"trace", arguments.output},
          {"files", recorded.files},
          {"bytes", recorded.bytes},
          {"lookups", recorded.trace.names.size()},
          {"chunk_bytes", recorded.trace.chunk_bytes},
          {"value_bytes", recorded.trace.value_bytes}};
}

Json Replay(const TraceBenchArguments& arguments) {
  const auto env = NewPosixEnv();
  auto trace = ReadTrace(*env, arguments.trace);
  Require(trace.status());
  return ReplayTrace(*env, *trace, arguments.replay);
}

void AddRecord(CLI::App& app, TraceBenchArguments& arguments) {
  app.add_option("DIR", arguments.directories,
                 "Cut the regular files of these directories, in order")
      ->required();
  app.add_option("-o,--output", arguments.output, "Write the trace to this file")->required();
  app.add_option("--avg", arguments.chunk_bytes, "Mean length of the chunks")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{256}, uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--value-bytes", arguments.value_bytes, "Size of a value, noted in the trace")
      ->capture_default_str();
}

void AddReplay(CLI::App& app, TraceBenchArguments& arguments) {
  TraceReplayOptions& options = arguments.replay;
  app.add_option("TRACE", arguments.trace, "A trace that siltfs-bench trace record has written")
      ->required();
  app.add_option("--engine", arguments.engines,
                 "Index engines, one after the other; a name may be followed by parameters, as in "
                 "silt:partition_bits=4. \"all\" stands for all engines")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CheckEngineChoice)
      ->capture_default_str();
  app.add_option("--dir", options.directory,
                 "Where to make the indexes, in a directory that is removed afterwards (the "
                 "system's temporary directory)");
  app.add_option("--memory", options.memory, "Memory limit of each index (no limit)")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--batch", options.batch, "Names in a lookup")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--flush", options.puts_per_flush, "Puts between two flushes")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--limit", options.limit, "Replay only so many names, the first ones");
  app.add_option("--rounds", options.rounds,
                 "Replay the trace so often on each engine, in turn; rates are medians")
      ->check(CLI::Range(1U, 100U))
      ->capture_default_str();
}

}  // namespace

std::function<Json()> ConfigureTraceBench(CLI::App& app) {
  auto arguments = std::make_shared<TraceBenchArguments>();
  app.require_subcommand(1);
  CLI::App* const record = app.add_subcommand("record", "Records a trace of files");
  CLI::App* const replay = app.add_subcommand("replay", "Replays a trace on engines of the index");
  for (CLI::App* command : {record, replay}) {
    command->set_help_flag("-h,--help", "Print this help and exit");
    command->fallthrough();
  }
  AddRecord(*record, *arguments);
  AddReplay(*replay, *arguments);
  return [arguments, record] {
    if (record->parsed()) return Record(*arguments);
    arguments->replay.indexes = ParseEngineChoices(arguments->engines);
    return Replay(*arguments);
  };
}

}  // namespace siltfs
