// siltfs-bench trace: records a trace of files, and replays it on engines of the index.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/posix_env.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tools/bench/run_bench.h"
#include "tools/bench/trace_file.h"

namespace siltfs::testing {
namespace {

using Json = nlohmann::json;

struct Outcome {
  int code = 0;
  Json statistics;
  std::string err;
};

Outcome Trace(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"siltfs-bench", "trace"});
  arguments.emplace_back("--json");
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunBench(arguments, out, err);
  return {
      .code = code, .statistics = code == 0 ? Json::parse(out.str()) : Json(), .err = err.str()};
}

void WriteFile(const std::string& path, uint64_t seed, size_t size) {
  Bytes bytes(size);
  Random(seed).Fill(bytes);
  std::ofstream(path, std::ios::binary) << AsText(bytes);
}

// Two generations of a directory: a file stays, one is new, one is removed.
struct Generations {
  Generations() {
    std::filesystem::create_directories(directory.path() + "/one/inner");
    std::filesystem::create_directories(directory.path() + "/two/inner");
    WriteFile(directory.path() + "/one/a", 1, 200'000);
    WriteFile(directory.path() + "/one/inner/b", 2, 300'000);
    WriteFile(directory.path() + "/two/a", 3, 100'000);
    WriteFile(directory.path() + "/two/inner/b", 2, 300'000);
    std::filesystem::create_symlink("a", directory.path() + "/two/link");
  }
  std::string path(const std::string& name) const { return directory.path() + "/" + name; }
  TemporaryDirectory directory;
};

}  // namespace

TEST_CASE("a trace has the names of all chunks, in the order of directories and files") {
  const Generations generations;
  const std::string trace = generations.path("trace");
  const Outcome recorded = Trace({"record", generations.path("one"), generations.path("two"), "-o",
                                  trace, "--avg", "1K", "--value-bytes", "44"});
  INFO(recorded.err);
  REQUIRE(recorded.code == 0);
  CHECK(recorded.statistics["files"] == 4);
  CHECK(recorded.statistics["bytes"] == 900'000);
  const auto env = NewPosixEnv();
  auto read = ReadTrace(*env, trace);
  REQUIRE_OK(read);
  CHECK(read->chunk_bytes == 1024);
  CHECK(read->value_bytes == 44);
  CHECK(read->names.size() == recorded.statistics["lookups"]);
  CHECK(read->names.size() > 500);
  // The chunks of inner/b are there twice, and no others.
  std::multiset<ChunkName> all(read->names.begin(), read->names.end());
  std::set<ChunkName> unique(read->names.begin(), read->names.end());
  const size_t repeated = all.size() - unique.size();
  CHECK(repeated > 150);
  CHECK(repeated < 500);
  const std::vector<ChunkName> end(read->names.end() - static_cast<ptrdiff_t>(repeated),
                                   read->names.end());
  for (const ChunkName& name : end) REQUIRE(all.count(name) == 2);
}

TEST_CASE("a trace is replayed on all engines, and every answer is right") {
  const Generations generations;
  const std::string trace = generations.path("trace");
  REQUIRE(Trace({"record", generations.path("one"), generations.path("two"), "-o", trace, "--avg",
                 "256"})
              .code == 0);
  const Outcome replayed =
      Trace({"replay", trace, "--engine", "all,buffer_hash:table_bits=3:incarnations=4", "--batch",
             "64", "--flush", "500", "--dir", generations.directory.path()});
  INFO(replayed.err);
  REQUIRE(replayed.code == 0);
  const Json& statistics = replayed.statistics;
  CHECK(statistics["verified"] == true);
  REQUIRE(statistics["engines"].size() >= 4);
  std::set<std::string> names;
  for (const Json& engine : statistics["engines"]) {
    names.insert(engine["engine"]);
    CHECK(engine["verified"] == true);
    CHECK(engine["hits"] == statistics["engines"][0]["hits"]);
    CHECK(engine["lookups_per_s"] > 0);
    CHECK(engine["written_bytes_per_put"] > 20);
  }
  CHECK(names.contains("silt"));
  CHECK(names.contains("buffer_hash"));
  CHECK(statistics["engines"].back()["merges"] > 0);
  CHECK(statistics["unique"].get<uint64_t>() + statistics["engines"][0]["hits"].get<uint64_t>() <=
        statistics["lookups"].get<uint64_t>());
  // The indexes are removed.
  CHECK(std::filesystem::exists(trace));
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(generations.directory.path())) {
    ++entries;
  }
  CHECK(entries == 3);
}

TEST_CASE("files that are no traces, and unknown engines, are refused") {
  const Generations generations;
  const std::string trace = generations.path("trace");
  REQUIRE(Trace({"record", generations.path("one"), "-o", trace}).code == 0);
  const Outcome engine = Trace({"replay", trace, "--engine", "oak"});
  CHECK(engine.code == 2);
  CHECK(engine.err.find("there is no engine \"oak\"") != std::string::npos);
  CHECK(Trace({"replay", trace, "--engine", "silt:oak=1"}).code == 2);
  CHECK(Trace({"replay", generations.path("absent")}).code == 1);
  CHECK(Trace({"replay", generations.path("one/a")}).code == 1);
  std::fstream file(trace, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(40);
  file.put('x');
  file.close();
  const Outcome damaged = Trace({"replay", trace});
  CHECK(damaged.code == 1);
  CHECK(damaged.err.find("wrong checksum") != std::string::npos);
  CHECK(Trace({"record", generations.path("one")}).code == 2);
}

}  // namespace siltfs::testing
