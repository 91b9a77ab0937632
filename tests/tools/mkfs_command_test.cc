#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

TEST_CASE("mkfs makes a store in a missing or empty directory, and prints nothing") {
  const TemporaryDirectory directory;
  const Outcome fresh = Run({"siltfs", "mkfs", directory / "fresh"});
  INFO(fresh.err);
  CHECK(fresh.code == 0);
  CHECK(fresh.out.empty());
  CHECK(fresh.err.empty());
  std::filesystem::create_directory(directory / "empty");
  CHECK(Run({"mkfs.siltfs", directory / "empty"}).code == 0);
  CHECK(Run({"siltfs", "stat", directory / "empty"}).code == 0);
}

TEST_CASE("mkfs refuses a directory that is not empty") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "precious") << "data";
  const Outcome outcome = Run({"siltfs", "mkfs", directory.path()});
  CHECK(outcome.code == 1);
  CHECK(Has(outcome.err, directory.path()));
  CHECK(Lines(outcome.err) == 1);
  CHECK(std::filesystem::file_size(directory / "precious") == 4);
  REQUIRE(Run({"siltfs", "mkfs", directory / "store"}).code == 0);
  CHECK(Run({"siltfs", "mkfs", directory / "store"}).code == 1);
}

TEST_CASE("mkfs below a missing directory fails") {
  const TemporaryDirectory directory;
  CHECK(Run({"siltfs", "mkfs", directory / "missing/store"}).code == 1);
}

TEST_CASE("mkfs refuses invalid options, and makes nothing") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--chunk-avg", "lots"},
                                             {"--chunk-avg", "8Q"},
                                             {"--chunk-avg", "1T"},
                                             {"--chunk-min", "0"},
                                             {"--chunk-min", "16K", "--chunk-avg", "8K"},
                                             {"--chunk-avg", "8K", "--chunk-max", "8K"},
                                             {"--chunk-max", "1G"},
                                             {"--compression", "zstd"},
                                             {"--compression", "zstd:"},
                                             {"--compression", "zstd:0"},
                                             {"--compression", "zstd:20"},
                                             {"--compression", "zstd:3x"},
                                             {"--compression", "zstd:-1"},
                                             {"--compression", "lz4"},
                                             {"--index-engine", "skimpystash"},
                                             {"--index-engine", ""},
                                             {"--index-memory", "-1"},
                                             {"--root-owner", "root:root"},
                                             {"--root-owner", "1000"},
                                             {"--root-owner", "1000:"},
                                             {"--root-owner", ":1000"},
                                             {"--root-owner", "-1:0"},
                                             {"--root-owner", "0:0:0"},
                                             {"--root-owner", "4294967295:0"},
                                             {"--root-owner", ""}}) {
    std::vector<std::string> arguments = {"siltfs", "mkfs", store};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Outcome outcome = Run(arguments);
    INFO(options[0] << " " << options[1] << ": " << outcome.err);
    CHECK(outcome.code == 2);
    CHECK(Lines(outcome.err) == 1);
    CHECK_FALSE(std::filesystem::exists(store));
  }
}

TEST_CASE("mkfs names the option with a wrong size, and its range") {
  const TemporaryDirectory directory;
  const auto mistake = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"siltfs", "mkfs", directory / "store"});
    const Outcome outcome = Run(options);
    CHECK(outcome.code == 2);
    return outcome.err;
  };
  CHECK(mistake({"--chunk-avg", "0"}) ==
        "siltfs: --chunk-avg: 0 is not in the range from 256 to 128K\n");
  CHECK(Has(mistake({"--chunk-avg", "129K"}), "--chunk-avg: 129K is not in the range"));
  CHECK(Has(mistake({"--chunk-avg", "0", "--chunk-min", "64", "--chunk-max", "1M"}),
            "from 128 to 512K\n"));
  CHECK(Has(mistake({"--chunk-min", "5K"}), "--chunk-min: 5K is not in the range from 64 to 4K"));
  CHECK(Has(mistake({"--chunk-min", "9K", "--chunk-avg", "16K"}),
            "--chunk-min: 9K is not in the "
            "range from 64 to 8K"));
  CHECK(Has(mistake({"--chunk-max", "2M"}), "--chunk-max: 2M is not in the range from 16K to 1M"));
  CHECK(Has(mistake({"--chunk-avg", "16777216P"}), "--chunk-avg: the size \"16777216P\" is too"));
}

TEST_CASE("mkfs explains the form of the root directory's owner") {
  const TemporaryDirectory directory;
  const Outcome outcome =
      Run({"siltfs", "mkfs", directory / "store", "--root-owner", "alice:users"});
  CHECK(outcome.code == 2);
  CHECK(
      outcome.err ==
      "siltfs: --root-owner: \"alice:users\" is not UID:GID, a user's and a group's number, as in "
      "1000:1000\n");
}

TEST_CASE("Both limits of each range of chunk sizes are accepted") {
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"--chunk-avg", "256"},
           {"--chunk-avg", "128KiB"},
           {"--chunk-avg", "128", "--chunk-min", "64"},
           {"--chunk-avg", "512K", "--chunk-max", "1MiB"},
           {"--chunk-avg", "512K", "--chunk-min", "256K", "--chunk-max", "1M"},
           {"--chunk-min", "64"},
           {"--chunk-min", "4K"},
           {"--chunk-max", "16K"},
           {"--chunk-max", "1M"}}) {
    const TemporaryDirectory directory;
    std::vector<std::string> arguments = {"siltfs", "mkfs", directory / "store"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Outcome outcome = Run(arguments);
    INFO(options[0] << " " << options[1] << ": " << outcome.err);
    CHECK(outcome.code == 0);
  }
}

TEST_CASE("mkfs warns of too much or too little memory for the index") {
  const TemporaryDirectory directory;
  const Outcome much = Run({"siltfs", "mkfs", directory / "much", "--index-memory", "16383P"});
  CHECK(much.code == 0);
  CHECK(much.err.starts_with("siltfs: warning: --index-memory: 16.0 EiB is more than this"));
  CHECK(Lines(much.err) == 1);
  const Outcome little = Run({"siltfs", "mkfs", directory / "little", "--index-memory", "1"});
  CHECK(little.code == 0);
  CHECK(little.err ==
        "siltfs: warning: --index-memory: 1 B is less than the 3.0 MiB that the index takes in any "
        "case\n");
  CHECK(Run({"siltfs", "mkfs", directory / "none", "--index-memory", "0"}).err.empty());
  CHECK(Run({"siltfs", "mkfs", directory / "fits", "--index-memory", "3M"}).err.empty());
}

TEST_CASE("mkfs accepts every option that it offers") {
  const TemporaryDirectory directory;
  const Outcome all =
      Run({"siltfs", "mkfs", directory / "all", "--chunk-min", "4K", "--chunk-avg", "16K",
           "--chunk-max", "128K", "--compression", "zstd:19", "--index-engine", "map",
           "--index-memory", "8M", "--root-owner", "4294967294:0"});
  INFO(all.err);
  CHECK(all.code == 0);
  const Outcome proportional =
      Run({"siltfs", "mkfs", directory / "avg", "--chunk-avg", "32K", "--compression", "none"});
  INFO(proportional.err);
  CHECK(proportional.code == 0);
  const Outcome parameters = Run({"siltfs", "mkfs", directory / "parameters", "--index-option",
                                  "partition_bits=2", "--index-option", "bucket_bits=9"});
  INFO(parameters.err);
  CHECK(parameters.code == 0);
  CHECK(Run({"siltfs", "stat", directory / "parameters"}).code == 0);
}

TEST_CASE("mkfs names the index option that is wrong, and the right ones") {
  const TemporaryDirectory directory;
  const auto mistake = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"siltfs", "mkfs", directory / "store"});
    const Outcome outcome = Run(options);
    CHECK(outcome.code == 2);
    CHECK_FALSE(std::filesystem::exists(directory / "store"));
    return outcome.err;
  };
  CHECK(mistake({"--index-option", "depth=1"}) ==
        "siltfs: --index-option: engine silt has no parameter \"depth\" (there are: "
        "partition_bits, bucket_bits, named_slots, tries, sorted_runs)\n");
  CHECK(mistake({"--index-option", "partition_bits=13"}) ==
        "siltfs: --index-option: engine silt: 13 is not a value from 0 to 12 for parameter "
        "partition_bits\n");
  CHECK(mistake({"--index-option", "partition_bits=1", "--index-option", "partition_bits=1"}) ==
        "siltfs: --index-option: engine silt: parameter partition_bits is given twice; give it "
        "once\n");
  CHECK(Has(mistake({"--index-engine", "map", "--index-option", "partition_bits=1"}),
            "engine map has no parameter \"partition_bits\" (there are: none)"));
  CHECK(Has(mistake({"--index-option", "partition_bits"}),
            "--index-option: \"partition_bits\" is not NAME=VALUE"));
  CHECK(Has(mistake({"--index-engine", "oak"}),
            "siltfs: --index-engine: there is no engine \"oak\" (there are: silt, map, "));
}

}  // namespace
}  // namespace siltfs::testing
