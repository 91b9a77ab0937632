// Runs siltfs-bench index on a tiny index.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tools/bench/run_bench.h"

namespace siltfs::testing {

using Json = nlohmann::json;

struct IndexBenchOutcome {
  int code;
  Json statistics;  // null after a failure
  std::string err;
};

// Runs the benchmark with these arguments, and with small numbers for the options that they lack.
// The index has 4 partitions with LogStores of 128 entries, so that 20,000 entries cause merges.
inline IndexBenchOutcome IndexBench(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {
      "siltfs-bench",     "index",          "--json",       "--index-option",
      "partition_bits=2", "--index-option", "bucket_bits=5"};
  const std::vector<std::pair<std::string, std::string>> numbers = {{"--entries", "20000"},
                                                                    {"--put-batch", "100"},
                                                                    {"--get", "2000"},
                                                                    {"--single-get", "400"},
                                                                    {"--rounds", "1"}};
  for (const auto& [option, number] : numbers) {
    if (std::find(arguments.begin(), arguments.end(), option) != arguments.end()) continue;
    all.insert(all.end(), {option, number});
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunBench(all, out, err);
  return {
      .code = code, .statistics = code == 0 ? Json::parse(out.str()) : Json(), .err = err.str()};
}

inline Json Measured(const std::vector<std::string>& arguments) {
  const IndexBenchOutcome outcome = IndexBench(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.statistics;
}

inline void CheckLatency(const Json& latency, uint64_t calls) {
  CHECK(latency["calls"] == calls);
  CHECK(latency["p50"] > 0);
  CHECK(latency["mean"] > 0);
  CHECK(latency["p99"] >= latency["p50"]);
  CHECK(latency["p99_9"] >= latency["p99"]);
  CHECK(latency["max"] >= latency["p99_9"]);
}

}  // namespace siltfs::testing
