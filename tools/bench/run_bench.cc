#include "tools/bench/run_bench.h"

#include <fmt/ostream.h>

#include <array>
#include <exception>
#include <memory>
#include <ostream>
#include <vector>

#include "tools/bench/bench.h"

namespace siltfs {
namespace {

enum ExitCode : int { kDone = 0, kFailed = 1, kUsage = 2 };

struct Bench {
  const char* name;
  const char* description;
  ConfigureBench configure;
};

constexpr std::array kBenches = {
    Bench{"attach-index",
          "Puts any number of entries that point to no segment into a store's index",
          ConfigureAttachIndex},
    Bench{"chunker", "Finds cut points with each kernel that can run here, and names the chunks",
          ConfigureChunkerBench},
    Bench{"chunks", "Lengths of the chunks of files, and how many are new, for several means",
          ConfigureChunksBench},
    Bench{"cuckoo", "A LogStore's table: inserts until the table is full, and lookups",
          ConfigureCuckooBench},
    Bench{"delta", "Bases of deltas: lookups of resembling chunks, and how good their choice is",
          ConfigureDeltaBench},
    Bench{"index", "A chunk index: puts, lookups and memory, compared with reads of the device",
          ConfigureIndexBench},
    Bench{"mark", "How garbage collection marks the live chunks of a store of a given size",
          ConfigureMarkBench},
    Bench{"open", "The times until an opened index gives its first answer and has full speed",
          ConfigureOpenBench},
    Bench{"slicebloom", "SliceBloom: additions, lookups, memory and false positives",
          ConfigureSliceBloomBench},
    Bench{"stores", "Each kind of SILT's stores alone: building, lookups, memory",
          ConfigureStoresBench},
    Bench{"trace",
          "A trace of deduplication: recorded from files, replayed on engines of the index",
          ConfigureTraceBench},
    Bench{"trie", "A SortedStore's trie: building, size, lookups", ConfigureTrieBench},
    Bench{"values", "Keys and values of any length: space and reads, for slots of all sizes",
          ConfigureValuesBench},
};

// Prints one value per line, as "name: value". The names of inner values begin with the names of
// the objects around them.
void PrintStatistics(std::ostream& out, const nlohmann::ordered_json& statistics,
                     const std::string& prefix) {
  for (const auto& [name, value] : statistics.items()) {
    if (value.is_object()) {
      PrintStatistics(out, value, prefix + name + ".");
    } else {
      out << prefix << name << ": " << value.dump() << "\n";
    }
  }
}

int Run(std::span<const std::string> arguments, std::ostream& out, std::ostream& err) {
  CLI::App app("Measures parts of siltfs, and verifies every answer it gets", "siltfs-bench");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  std::array<std::function<nlohmann::ordered_json()>, kBenches.size()> runs;
  std::array<CLI::App*, kBenches.size()> commands{};
  bool json = false;
  for (size_t i = 0; i < kBenches.size(); ++i) {
    commands[i] = app.add_subcommand(kBenches[i].name, kBenches[i].description);
    commands[i]->set_help_flag("-h,--help", "Print this help and exit");
    commands[i]->add_flag("--json", json, "Print one JSON document");
    runs[i] = kBenches[i].configure(*commands[i]);
  }
  // CLI11 expects the arguments reversed, and without the program's name.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend() - 1);
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::Success& wish) {  // help
    return app.exit(wish, out, err);
  } catch (const CLI::ParseError& mistake) {
    fmt::print(err, "siltfs-bench: {} (try siltfs-bench --help)\n", mistake.what());
    return kUsage;
  }
  for (size_t i = 0; i < kBenches.size(); ++i) {
    if (!commands[i]->parsed()) continue;
    const nlohmann::ordered_json statistics = runs[i]();
    if (json) {
      out << statistics.dump(2) << "\n";
    } else {
      PrintStatistics(out, statistics, "");
    }
  }
  return kDone;
}

}  // namespace

int RunBench(std::span<const std::string> arguments, std::ostream& out, std::ostream& err) {
  try {
    return Run(arguments, out, err);
  } catch (const std::exception& error) {
    fmt::print(err, "siltfs-bench: {}\n", error.what());
    return kFailed;
  }
}

}  // namespace siltfs
