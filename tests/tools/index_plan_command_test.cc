#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

using Words = std::vector<std::string>;

Outcome Plan(const Words& options) {
  Words arguments = {"siltfs", "index", "plan"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return Run(arguments);
}

const Words kEasy = {"--entries", "100000000", "--memory", "120M", "--flash", "64G"};

Words Easy(const Words& more) {
  Words options = kEasy;
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

nlohmann::json Statistics(const Words& options) {
  Words with_json = options;
  with_json.emplace_back("--json");
  const Outcome outcome = Plan(with_json);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.empty());
  return nlohmann::json::parse(outcome.out);
}

TEST_CASE("index plan prints one JSON document with values within the limits") {
  const nlohmann::json plan = Statistics(kEasy);
  for (const char* key :
       {"k", "d", "P", "H", "write_amplification", "written_bytes_per_put",
        "written_bytes_per_put_growing", "read_amplification", "read_amplification_hit",
        "read_amplification_miss", "memory_bytes", "memory_bytes_peak", "memory_bytes_per_entry",
        "memory_bytes_per_entry_peak", "flash_bytes", "device_life_years"}) {
    INFO(key);
    REQUIRE(plan.at(key).is_number());
    CHECK(plan.at(key).get<double>() > 0);
  }
  CHECK(plan.at("entries") == 100'000'000);
  CHECK(plan.at("strategy") == "default");
  CHECK(plan.at("written_bytes_per_put").get<double>() ==
        Approx(32 * plan.at("write_amplification").get<double>()));
  CHECK(plan.at("k") == 15);
  CHECK(plan.at("write_amplification").get<double>() <= 5);
  CHECK(plan.at("read_amplification").get<double>() <= 1.01);
  CHECK(plan.at("read_amplification_hit").get<double>() <
        plan.at("read_amplification_miss").get<double>());
  CHECK(plan.at("memory_bytes_peak").get<double>() <= 120 * (1 << 20));
  CHECK(plan.at("memory_bytes").get<double>() < plan.at("memory_bytes_peak").get<double>());
  CHECK(plan.at("memory_bytes_per_entry").get<double>() ==
        Approx(plan.at("memory_bytes").get<double>() / 1e8));
  // The paper's formula: F E / (U c WA), in years.
  CHECK(plan.at("device_life_years").get<double>() ==
        Approx(64.0 * (1 << 30) * 10'000 /
               (5'000 * 32 * plan.at("write_amplification").get<double>()) / 31'557'600));
}

TEST_CASE("index plan follows its options") {
  const nlohmann::json plan = Statistics(kEasy);
  const auto peak = [](const nlohmann::json& of) {
    return of.at("memory_bytes_peak").get<double>();
  };
  const auto writes = [](const nlohmann::json& of) {
    return of.at("write_amplification").get<double>();
  };
  CHECK(peak(Statistics(Easy({"--write-amplification", "9"}))) < peak(plan));
  CHECK(peak(Statistics(Easy({"--trie", "sparse"}))) < peak(Statistics(Easy({"--trie", "weak"}))));
  CHECK(peak(Statistics(Easy({"--trie", "weak"}))) < peak(Statistics(Easy({"--trie", "exact"}))));
  CHECK(peak(Statistics(Easy({"--strategy", "hashed+bounds", "--trie", "sparse"}))) ==
        peak(Statistics(Easy({"--strategy", "hashed+tries"}))));
  CHECK(peak(plan) < peak(Statistics(Easy({"--trie", "sparse"}))));
  CHECK(plan == Statistics(Easy({"--strategy", "default"})));
  CHECK(
      Statistics(Easy({"--read-amplification", "1.004"})).at("read_amplification").get<double>() <=
      1.004);
  const nlohmann::json all = Statistics(Easy({"--use-all-memory"}));
  CHECK(writes(all) < writes(plan));
  CHECK(peak(all) <= 120 * (1 << 20));
  CHECK(Statistics(Easy({"--erase-cycles", "1000"})).at("device_life_years").get<double>() ==
        Approx(plan.at("device_life_years").get<double>() / 10));
  CHECK(Statistics(Easy({"--updates-per-second", "50000"})).at("device_life_years").get<double>() ==
        Approx(plan.at("device_life_years").get<double>() / 10));
  CHECK(Statistics(Easy({"--updates-per-second", "0"})).at("device_life_years").is_null());
  CHECK(Statistics({"--entries", "2M", "--memory", "1G", "--flash", "1T"}).at("entries") ==
        2'097'152);
}

TEST_CASE("index plan compares strategies at the same number of written bytes") {
  const auto with = [](const char* strategy) {
    const nlohmann::json plan =
        Statistics(Easy({"--strategy", strategy, "--write-amplification", "5.4"}));
    CHECK(plan.at("strategy") == strategy);
    CHECK(plan.at("written_bytes_per_put").get<double>() <= 5.4 * 32);
    return plan.at("memory_bytes_per_entry_peak").get<double>();
  };
  const double both = with("hashed+bounds");
  CHECK(both < with("hashed+tries"));
  CHECK(with("hashed+tries") < with("named+bounds"));
  CHECK(with("named+bounds") < with("paper"));
  CHECK(both < 0.7 * with("paper"));
  CHECK(with("runs+bounds") < 0.9 * both);
  CHECK(with("default") == with("runs+bounds"));
  const Outcome unknown = Plan(Easy({"--strategy", "oak"}));
  CHECK(unknown.code == 2);
  CHECK(unknown.err ==
        "siltfs: --strategy: there is no strategy \"oak\" (there are: default, paper, "
        "named+bounds, hashed+tries, hashed+bounds, runs+bounds)\n");
}

TEST_CASE("index plan prints text") {
  const Outcome outcome = Plan(kEasy);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  for (const char* words :
       {"k, bits of a tag", "P, partitions", "write amplification", "bytes written per put",
        "bytes an entry)", "years at 5000 updates a second"}) {
    INFO(words);
    CHECK(Has(outcome.out, words));
  }
}

TEST_CASE("An impossible plan exits 1 with one sentence about the cause") {
  const Outcome memory = Plan({"--entries", "100000000", "--memory", "1M", "--flash", "64G"});
  CHECK(memory.code == 1);
  CHECK(memory.out.empty());
  CHECK(Lines(memory.err) == 1);
  CHECK(Has(memory.err, "MiB, more than the 1.0 MiB of memory\n"));
  const Outcome flash =
      Plan({"--entries", "100000000", "--memory", "1G", "--flash", "1G", "--json"});
  CHECK(flash.code == 1);
  CHECK(Has(flash.err, "entries need at least 2.2 GiB, more than the 1.0 GiB of flash\n"));
  const Outcome large = Plan({"--entries", "100G", "--memory", "1G", "--flash", "1T"});
  CHECK(Has(large.err, " TiB, more than the 1.0 TiB of flash\n"));
  const Outcome small = Plan({"--entries", "1G", "--memory", "1K", "--flash", "1P"});
  CHECK(Has(small.err, "more than the 1.0 KiB of memory\n"));
  CHECK(Plan(Easy({"--write-amplification", "1.3"})).code == 1);
  CHECK(Plan(Easy({"--read-amplification", "1"})).code == 1);
}

TEST_CASE("index plan refuses invalid arguments with 2") {
  for (const Words& options :
       std::vector<Words>{{},
                          {"--entries", "1000", "--memory", "1M"},
                          {"--entries", "many", "--memory", "1M", "--flash", "1G"},
                          {"--entries", "0", "--memory", "1M", "--flash", "1G"},
                          {"--entries", "1000", "--memory", "-1", "--flash", "1G"},
                          {"--entries", "1000", "--memory", "1M", "--flash", "1Q"},
                          Easy({"--write-amplification", "little"}),
                          Easy({"--write-amplification", "-1"}),
                          Easy({"--write-amplification", "nan"}),
                          Easy({"--updates-per-second", "-5"}),
                          Easy({"--erase-cycles", "0"}),
                          Easy({"--read-amplification", "inf"}),
                          Easy({"--entries", "15E"}),
                          Easy({"--trie", "oak"}),
                          Easy({"store"})}) {
    const Outcome outcome = Plan(options);
    INFO((options.empty() ? "" : options.back()) << ": " << outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(Lines(outcome.err) == 1);
  }
  CHECK(Run({"siltfs", "index"}).code == 2);
  CHECK(Run({"siltfs", "index", "frobnicate"}).code == 2);
}

}  // namespace
}  // namespace siltfs::testing
