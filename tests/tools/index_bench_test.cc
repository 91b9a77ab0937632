// siltfs-bench index prints the keys that scripts rely on for each of its options, on tiny indexes.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tools/bench/run_bench.h"

namespace siltfs::testing {
namespace {

using Json = nlohmann::json;

struct Outcome {
  int code;
  Json statistics;  // null after a failure
  std::string err;
};

// Runs the benchmark with these arguments, and with small numbers for the options that they lack.
// The index has 4 partitions with LogStores of 128 entries, so that 20,000 entries cause merges.
Outcome IndexBench(const std::vector<std::string>& arguments) {
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

Json Measured(const std::vector<std::string>& arguments) {
  const Outcome outcome = IndexBench(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.statistics;
}

void CheckLatency(const Json& latency, uint64_t calls) {
  CHECK(latency["calls"] == calls);
  CHECK(latency["p50"] > 0);
  CHECK(latency["mean"] > 0);
  CHECK(latency["p99"] >= latency["p50"]);
  CHECK(latency["p99_9"] >= latency["p99"]);
  CHECK(latency["max"] >= latency["p99_9"]);
}

// Returns the table's rows as maps of column names to cells.
std::vector<std::map<std::string, std::string>> ReadCsv(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    if (names.empty()) {
      names = row;
      continue;
    }
    REQUIRE(row.size() == names.size());
    auto& named = rows.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) named[names[i]] = row[i];
  }
  return rows;
}

}  // namespace

TEST_CASE("bench index reports growth and updates separately, and looks up after both") {
  const Json statistics = Measured({"--updates", "30000"});
  CHECK(statistics["verified"] == true);
  CHECK(statistics["strategy"] == "default");
  CHECK(statistics["slot_bytes"] == 20);
  CHECK(statistics["growth"]["puts"] == 20000);
  CHECK(statistics["updates"]["puts"] == 30000);
  for (const char* name : {"growth", "updates"}) {
    INFO(name);
    const Json& phase = statistics[name];
    for (const char* figure :
         {"put_per_s", "bytes_written_per_put", "write_amplification", "conversions", "merges",
          "get_hit_per_s", "get_miss_per_s", "reads_per_hit"}) {
      INFO(figure);
      CHECK(phase[figure] > 0);
    }
    // The values may be 0: the process need not grow if an earlier test has left enough memory.
    for (const char* figure :
         {"memory_bytes", "memory_bytes_per_entry", "memory_bytes_per_entry_most",
          "memory_bytes_end", "reads_per_miss"}) {
      INFO(figure);
      CHECK(phase[figure] >= 0);
    }
    CHECK(phase["bytes_written_per_put"].get<double>() ==
          Approx(32 * phase["write_amplification"].get<double>()));
    CHECK(phase["gets"] == 2000);
    CheckLatency(phase["put_call_us"], phase["puts"].get<uint64_t>() / 100);
    CheckLatency(phase["single_hit_us"], 400);
    CheckLatency(phase["single_miss_us"], 400);
    const Json& memory = phase["index_memory_end"];
    CHECK(memory["log_store_bytes"] > 0);
    CHECK(memory["hash_store_filter_bytes"] > 0);
    CHECK(memory["page_index_bytes"] > 0);
    CHECK(memory["sorted_store_filter_bytes"] == 0);
    CHECK(memory["bytes"] >= memory["log_store_bytes"]);
    CHECK_FALSE(phase.contains("index_memory_peak"));
  }
  const double written = statistics["growth"]["bytes_written_per_put"].get<double>() * 20000 +
                         statistics["updates"]["bytes_written_per_put"].get<double>() * 30000;
  CHECK(statistics["write_amplification"].get<double>() >= written / 32 / 50000 * 0.999);
  CHECK_FALSE(Measured({}).contains("updates"));
}

TEST_CASE("bench index measures each strategy") {
  double named = 0;
  double hashed = 0;
  double tries = 0;
  double bounds = 0;
  for (const std::string strategy : {"default", "paper", "named+bounds", "hashed+tries"}) {
    const Json statistics = Measured({"--strategy", strategy, "--get", "500"});
    CHECK(statistics["strategy"] == strategy);
    CHECK(statistics["verified"] == true);
    const bool has_names = strategy == "paper" || strategy == "named+bounds";
    CHECK(statistics["slot_bytes"] == (has_names ? 32 : 20));
    (has_names ? named : hashed) = statistics["growth"]["bytes_written_per_put"];
    const Json& memory = statistics["growth"]["index_memory_end"];
    if (strategy == "default") bounds = memory["page_index_bytes"];
    if (strategy == "hashed+tries") tries = memory["page_index_bytes"];
  }
  CHECK(named > 1.2 * hashed);
  CHECK(tries > 1.5 * bounds);
}

TEST_CASE("bench index leaves out kinds of stores, and says how") {
  const Json all = Measured({"--entries", "60000"});
  CHECK_FALSE(all.contains("without"));
  CHECK(all.contains("plan"));
  const auto memory = [](const Json& statistics, const char* kind) {
    return statistics["growth"]["index_memory_end"][kind].get<double>();
  };
  // Puts wait if a partition has more than 2 HashStores, and if 8 LogStores are frozen. So at most
  // 16 HashStores exist at the end; each filter has 352 bytes.
  constexpr double kFewFilters = 16 * 352;
  CHECK(memory(all, "hash_store_filter_bytes") > kFewFilters);

  const Json no_hash = Measured({"--without", "hash", "--entries", "60000"});
  CHECK(no_hash["without"] == Json::array({"hash"}));
  CHECK(no_hash["without_by"].get<std::string>().find("merged as soon") != std::string::npos);
  CHECK_FALSE(no_hash.contains("plan"));
  CHECK(memory(no_hash, "hash_store_filter_bytes") <= kFewFilters);

  // The only merge may be one of the fullest partition after all puts.
  const Json no_sorted =
      Measured({"--without", "sorted", "--strategy", "hashed+tries", "--entries", "60000"});
  CHECK(no_sorted["merges"] <= 2);
  CHECK(memory(no_sorted, "hash_store_filter_bytes") > 2 * memory(all, "hash_store_filter_bytes"));

  const Json logs = Measured({"--without", "hash,sorted", "--entries", "60000"});
  CHECK(logs["without"] == Json::array({"hash", "sorted"}));
  CHECK(logs["growth"]["conversions"] == 0);
  CHECK(memory(logs, "hash_store_filter_bytes") == 0);
  CHECK(memory(logs, "log_store_bytes") > memory(no_sorted, "hash_store_filter_bytes"));
  CHECK(logs["verified"] == true);
}

TEST_CASE("bench index traces memory over time") {
  const TemporaryDirectory directory;
  const std::string path = directory / "trace.csv";
  const Json statistics = Measured({"--updates", "5000", "--mix", "10:90", "--get-batch", "64",
                                    "--trace-memory", path, "--trace-interval", "1"});
  CHECK(statistics["memory_trace"]["file"] == path);
  for (const char* phase : {"growth", "updates"}) {
    const Json& peak = statistics[phase]["index_memory_peak"];
    CHECK(peak["bytes"] >= statistics[phase]["index_memory_end"]["log_store_bytes"]);
    CHECK(statistics[phase]["index_memory_peak_bytes_per_entry"] > 0);
  }
  CHECK(statistics["updates"]["index_memory_peak_entries"] == 20000);
  CheckLatency(statistics["mix_get_call_us"], statistics["mix_gets"].get<uint64_t>() / 64);

  auto rows = ReadCsv(path);
  REQUIRE(rows.size() == statistics["memory_trace"]["samples"]);
  REQUIRE(rows.size() >= 3);
  double seconds = 0;
  for (auto& row : rows) {
    CHECK(std::stod(row["seconds"]) >= seconds);
    seconds = std::stod(row["seconds"]);
    uint64_t sum = 0;
    for (const char* kind : {"log_store_bytes", "hash_store_filter_bytes", "page_index_bytes",
                             "sorted_store_filter_bytes", "other_bytes"}) {
      sum += std::stoull(row[kind]);
    }
    CHECK(sum == std::stoull(row["index_bytes"]));
    CHECK(row.contains("resident_bytes"));
  }
  auto& last = rows.back();
  CHECK(last["phase"] == "end");
  CHECK(last["entries"] == "20000");
  CHECK(last["puts"] == "25000");
  // The lookups of the mix, then twice 2,000 in batches and 400 single ones of each kind.
  CHECK(std::stoull(last["gets"]) == statistics["mix_gets"].get<uint64_t>() + 2 * 2 * 2400);
  CHECK(std::stoull(last["merges"]) == statistics["merges"].get<uint64_t>());
  for (const char* column :
       {"log_stores", "hash_stores", "sorted_stores", "conversions", "flash_bytes_written"}) {
    INFO(column);
    CHECK(std::stoull(last[column]) > 0);
  }
}

TEST_CASE("bench index limits the rate of a mix") {
  const Json statistics = Measured({"--mix", "50:50", "--get-batch", "64", "--mix-entries", "2000",
                                    "--mix-rate", "20000", "--get", "0", "--single-get", "0"});
  // 2,000 puts and 2,000 lookups; the first batches are not delayed.
  CHECK(statistics["mix_put_per_s"] < 12000);
  CHECK(statistics["mix_get_per_s"] < 12000);
  CHECK_FALSE(statistics["growth"].contains("single_hit_us"));
  CHECK_FALSE(statistics["growth"].contains("reads_per_hit"));
}

TEST_CASE("bench index refuses options that exclude each other, and says why") {
  struct Refused {
    std::vector<std::string> arguments;
    std::string reason;
  };
  for (const auto& [arguments, reason] :
       {Refused{{"--strategy", "quick"}, "--strategy"},
        Refused{{"--engine", "map", "--strategy", "paper"}, "only the engine silt has strategies"},
        Refused{{"--engine", "map", "--without", "hash"}, "only the engine silt can leave out"},
        Refused{{"--index-option", "bucket_bits=5"}, "bucket_bits"},
        Refused{{"--strategy", "paper", "--index-option", "tries=1"}, "tries"},
        Refused{{"--index-option", "hash_store_share=1"}, "hash_store_share"},
        Refused{{"--without", "logs"}, "--without"},
        Refused{{"--trace-interval", "5"}, "--trace-memory"},
        Refused{{"--updates", "5080000"}, "254 updates of each entry"},
        Refused{{"--updates", "5", "--keep", "--dir", "/tmp/none"}, "excludes"}}) {
    const Outcome outcome = IndexBench(arguments);
    INFO(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.err.find(reason) != std::string::npos);
  }
  CHECK(IndexBench({"--trace-memory", "/proc/none/trace"}).code == 1);
}

}  // namespace siltfs::testing
