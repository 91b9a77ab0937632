// siltfs-bench says what scripts rely on, and measures what is there.
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tools/bench/run_bench.h"

namespace siltfs::testing {
namespace {

struct BenchOutcome {
  int code;
  std::string out;
  std::string err;
};

BenchOutcome Bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "siltfs-bench");
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunBench(arguments, out, err);
  return {.code = code, .out = out.str(), .err = err.str()};
}

}  // namespace

TEST_CASE("bench trie tells speed and size of every mode") {
  const BenchOutcome outcome =
      Bench({"trie", "--entries", "20000", "--part-entries", "6000", "--json"});
  REQUIRE(outcome.code == 0);
  const auto figures = nlohmann::json::parse(outcome.out);
  CHECK(figures["entries"] == 20000);
  CHECK(figures["parts"] == 4);
  CHECK(figures["lookups"] == 20000);
  CHECK(figures["verified"] == true);
  for (const char* mode : {"weak", "exact", "sparse_weak", "sparse_exact"}) {
    for (const char* figure : {"build_per_s", "lookup_per_s", "bits_per_key"}) {
      INFO(mode << " " << figure);
      CHECK(figures["modes"][mode][figure] > 0);
    }
  }
  for (const char* figure : {"build_per_s", "lookup_per_s", "bits_per_key"}) {
    CHECK(figures[figure] == figures["modes"]["weak"][figure]);
  }
}

TEST_CASE("bench trie measures the modes it is asked for") {
  const auto modes_of = [](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"trie", "--entries", "500", "--json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const BenchOutcome outcome = Bench(arguments);
    REQUIRE(outcome.code == 0);
    std::string names;
    const auto modes = nlohmann::json::parse(outcome.out)["modes"];
    for (const auto& [name, figures] : modes.items()) {
      names += name + " ";
    }
    return names;
  };
  CHECK(modes_of({"--weak"}) == "weak ");
  CHECK(modes_of({"--exact"}) == "exact weak ");
  CHECK(modes_of({"--sparse"}) == "sparse_exact sparse_weak weak ");
  CHECK(modes_of({"--sparse", "--exact"}) == "sparse_exact weak ");
}

TEST_CASE("bench cuckoo tells speed and occupancy") {
  const BenchOutcome outcome = Bench({"cuckoo", "--entries", "40000", "--json"});
  REQUIRE(outcome.code == 0);
  const auto figures = nlohmann::json::parse(outcome.out);
  CHECK(figures["tables"] == 3);
  CHECK(figures["verified"] == true);
  CHECK(figures["occupancy"] >= 0.93);
  CHECK(figures["insert_per_s"] > 0);
  CHECK(figures["lookup_per_s"] > 0);
  CHECK(figures["bits_per_key"] > 0);
}

TEST_CASE("bench prints figures for people, too") {
  const BenchOutcome outcome = Bench({"trie", "--entries", "1000", "--weak"});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out.find("modes.weak.bits_per_key: ") != std::string::npos);
}

TEST_CASE("bench takes a mistaken command line for usage") {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"unknown"},
                                                    {"trie", "--entries", "0"},
                                                    {"trie", "--entries"},
                                                    {"cuckoo", "--bucket-bits", "16"},
                                                    {"cuckoo", "--weak"}}) {
    const BenchOutcome outcome = Bench(arguments);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK_FALSE(outcome.err.empty());
  }
  CHECK(Bench({"--help"}).code == 0);
}

}  // namespace siltfs::testing
