// siltfs check-health, metrics and list, for stores that are not mounted. tests/posix tests them
// with mounts.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "store/superblock/superblock.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/open_metrics.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

// Makes an empty store that seems to have been made this number of days ago.
void MakeStore(const std::string& path, int64_t days = 0) {
  REQUIRE(Run({"siltfs", "mkfs", path}).code == 0);
  const auto env = NewPosixEnv();
  auto state = ReadSuperblock(*env, path);
  REQUIRE_OK(state);
  state->superblock.created_ns -= days * 86'400 * 1'000'000'000;
  REQUIRE_OK(WriteSuperblock(*env, path, state->superblock));
}

// The limits that concern the disk are switched off: the disk of the test may be full.
std::vector<std::string> Check(const std::string& store, std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"siltfs", "check-health",  store, "--full",
                                    "0",      "--nearly-full", "0"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_CASE("check-health answers with one line and the exit code of a plugin") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  MakeStore(store);
  const Outcome ok = Run(Check(store));
  INFO(ok.out);
  CHECK(ok.code == 0);
  CHECK(ok.err.empty());
  CHECK(Lines(ok.out) == 1);
  CHECK(ok.out.starts_with("SILTFS OK - " + store + ": not mounted, 0 B of data"));
  CHECK(Has(ok.out, " | 'damaged_blocks'=0;;0;0 "));

  const Outcome mounted = Run(Check(store, {"--mounted"}));
  CHECK(mounted.code == 2);
  CHECK(mounted.out.starts_with("SILTFS CRITICAL - "));
  const Outcome json = Run(Check(store, {"--mounted", "--json"}));
  CHECK(json.code == 2);
  CHECK(nlohmann::json::parse(json.out).at("findings")[0].at("check") == "mount");
}

TEST_CASE("check-health warns of a store that was not verified for a long time") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  MakeStore(store, 40);
  const Outcome old = Run(Check(store));
  CHECK(old.code == 1);
  CHECK(Has(old.out, "is 40 days old, and its data were never verified"));
  CHECK(Run(Check(store, {"--scrub-age", "41"})).code == 0);
  REQUIRE(Run({"siltfs", "scrub", store}).code == 0);
  const Outcome verified = Run(Check(store));
  INFO(verified.out);
  CHECK(verified.code == 0);
  CHECK(Has(verified.out, "verified 0 days ago"));
}

TEST_CASE("check-health says which limit it cannot use, with the exit code of a plugin") {
  const TemporaryDirectory directory;
  const std::vector<std::string> wrong = GENERATE(
      std::vector<std::string>{"--full", "101"}, std::vector<std::string>{"--nearly-full", "96"},
      std::vector<std::string>{"--dead", "x"}, std::vector<std::string>{"--scrub-age", "-1"},
      std::vector<std::string>{"--backlog", "much"}, std::vector<std::string>{"--timeout", "0"},
      std::vector<std::string>{"--full"});
  std::vector<std::string> words = {"siltfs", "check-health", directory.path()};
  words.insert(words.end(), wrong.begin(), wrong.end());
  const Outcome outcome = Run(words);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 3);
  CHECK(outcome.out.starts_with("SILTFS UNKNOWN - "));
  CHECK(Has(outcome.out, wrong[0]));
  CHECK(Lines(outcome.out) == 1);
  CHECK(Lines(outcome.err) == 1);
  words.emplace_back("--json");
  const Outcome json = Run(words);
  CHECK(json.code == 3);
  CHECK(nlohmann::json::parse(json.out).at("error").get<std::string>().find(wrong[0]) == 0);
}

TEST_CASE("check-health of a wrong command line or of no store is unknown") {
  const TemporaryDirectory directory;
  CHECK(Run({"siltfs", "check-health"}).code == 3);
  CHECK(Run({"siltfs", "check-health", ""}).code == 3);
  CHECK(Run({"siltfs", "check-health", directory.path(), "--no-such-option"}).code == 3);
  CHECK(Run({"siltfs", "check-health", "--help"}).code == 0);
  for (const std::string& path : {directory.path(), directory / "missing"}) {
    const Outcome outcome = Run({"siltfs", "check-health", path});
    INFO(outcome.out);
    CHECK(outcome.code == 3);
    CHECK(outcome.out.starts_with("SILTFS UNKNOWN - " + path + ": "));
    CHECK(Has(outcome.out, "name the directory of a store"));
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("check-health of a store that cannot be opened is critical") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  MakeStore(store);
  for (const int copy : {0, 1})
    std::ofstream(SuperblockPath(store, copy), std::ios::trunc) << "no superblock";
  const Outcome outcome = Run(Check(store));
  INFO(outcome.out);
  CHECK(outcome.code == 2);
  CHECK(Has(outcome.out, "the store cannot be opened"));
  CHECK(Has(outcome.out, "run \"siltfs fsck " + store + "\""));
}

TEST_CASE("metrics of a store that is not mounted go to standard output or to a file") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  const std::string file = directory / "siltfs.prom";
  MakeStore(store);
  const Outcome printed = Run({"siltfs", "metrics", store});
  REQUIRE(printed.code == 0);
  const auto families = ParseOpenMetrics(printed.out);
  CHECK(families.at("siltfs_mounted").samples.at(0).value == 0);
  CHECK(families.at("siltfs_directories").samples.at(0).labels.at("store") == store);
  CHECK(families.at("siltfs_disk_size_bytes").samples.at(0).value > 0);
  CHECK_FALSE(families.contains("siltfs_last_scrub_timestamp_seconds"));
  REQUIRE(Run({"siltfs", "scrub", store}).code == 0);
  const Outcome written = Run({"siltfs", "metrics", store, "--output", file});
  CHECK(written.code == 0);
  CHECK(written.out.empty());
  const auto text = ReadTextOf(file);
  REQUIRE(text);
  CHECK(Has(*text, "\nsiltfs_last_scrub_timestamp_seconds{"));
  CHECK(Has(*text, "# TYPE siltfs_commits_total counter\n"));  // as node_exporter reads it
}

TEST_CASE("metrics of no store say that, and the command fails") {
  const TemporaryDirectory directory;
  const std::string file = directory / "siltfs.prom";
  const Outcome outcome = Run({"siltfs", "metrics", directory / "missing", "--output", file});
  CHECK(outcome.code == 10);
  CHECK(Lines(outcome.err) == 1);
  const auto text = ReadTextOf(file);
  REQUIRE(text);
  const auto families = ParseOpenMetrics(*text);
  CHECK(families.size() == 1);
  CHECK(families.at("siltfs_up").samples.at(0).value == 0);
  CHECK(Run({"siltfs", "metrics"}).code == 2);
}

TEST_CASE("a file of metrics that cannot be written is a failure") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  MakeStore(store);
  for (const std::string& file : {directory.path(), directory / "missing/file"}) {
    const Outcome outcome = Run({"siltfs", "metrics", store, "--output", file});
    INFO(outcome.err);
    CHECK(outcome.code == 1);
    CHECK(Has(outcome.err, file));
    CHECK(Lines(outcome.err) == 1);
  }
}

TEST_CASE("list prints JSON with the mounts of this machine") {
  const Outcome outcome = Run({"siltfs", "list", "--json"});
  REQUIRE(outcome.code == 0);
  CHECK(nlohmann::json::parse(outcome.out).at("mounts").is_array());
  CHECK(Run({"siltfs", "list", "argument"}).code == 2);
}

}  // namespace
}  // namespace siltfs::testing
