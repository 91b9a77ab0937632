#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

TEST_CASE("mkfs makes a store of a directory that is not there, or empty, and says nothing") {
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

TEST_CASE("mkfs takes nobody's directory") {
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

TEST_CASE("mkfs below a directory that is not there fails") {
  const TemporaryDirectory directory;
  CHECK(Run({"siltfs", "mkfs", directory / "missing/store"}).code == 1);
}

TEST_CASE("mkfs refuses options that make no sense, and makes nothing") {
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
                                             {"--index-memory", "-1"}}) {
    std::vector<std::string> arguments = {"siltfs", "mkfs", store};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Outcome outcome = Run(arguments);
    INFO(options[0] << " " << options[1] << ": " << outcome.err);
    CHECK(outcome.code == 2);
    CHECK(Lines(outcome.err) == 1);
    CHECK_FALSE(std::filesystem::exists(store));
  }
}

TEST_CASE("mkfs takes every option that it offers") {
  const TemporaryDirectory directory;
  const Outcome all = Run({"siltfs", "mkfs", directory / "all", "--chunk-min", "4K", "--chunk-avg",
                           "16K", "--chunk-max", "128K", "--compression", "zstd:19",
                           "--index-engine", "map", "--index-memory", "8M"});
  INFO(all.err);
  CHECK(all.code == 0);
  const Outcome proportional =
      Run({"siltfs", "mkfs", directory / "avg", "--chunk-avg", "32K", "--compression", "none"});
  INFO(proportional.err);
  CHECK(proportional.code == 0);
}

}  // namespace
}  // namespace siltfs::testing
