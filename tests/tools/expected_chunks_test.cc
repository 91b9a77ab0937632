// mkfs --expected-chunks: the parameters of the index that mkfs chooses and the store keeps.
#include <filesystem>

#include "fs/open/store_layout.h"
#include "index/silt/manifest_log.h"
#include "store/env/posix_env.h"
#include "store/superblock/superblock.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

EngineParameters ParametersOf(const std::string& store) {
  const auto env = NewPosixEnv();
  const auto state = ReadSuperblock(*env, store, StoreAccess::kReadOnly);
  REQUIRE(state.ok());
  return state->superblock.index_parameters;
}

uint64_t Find(const EngineParameters& parameters, std::string_view name) {
  for (const EngineParameter& parameter : parameters) {
    if (parameter.name == name) return parameter.value;
  }
  FAIL("no parameter " << name);
  return 0;
}

TEST_CASE("mkfs chooses the index's parameters for the expected chunks, and a rebuild keeps them") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  const Outcome made =
      Run({"siltfs", "mkfs", store, "--expected-chunks", "1000000000", "--index-memory", "480M"});
  INFO(made.err);
  REQUIRE(made.code == 0);
  const EngineParameters parameters = ParametersOf(store);
  const uint64_t partition_bits = Find(parameters, "partition_bits");
  const uint64_t bucket_bits = Find(parameters, "bucket_bits");
  CHECK(parameters.size() == 2);
  // With the defaults a lookup would pass ten times as many HashStores as 1.01 reads allow.
  CHECK(partition_bits + bucket_bits >= 19);
  const auto check_index = [&] {
    const auto env = NewPosixEnv();
    const auto manifest = ReadStoreManifest(*env, IndexPath(store));
    REQUIRE(manifest.ok());
    REQUIRE(manifest->has_value());
    CHECK((*manifest)->partition_bits == partition_bits);
    CHECK((*manifest)->bucket_bits == bucket_bits);
  };
  for (int i = 0; i < 2; ++i) {
    const Outcome rebuilt = Run({"siltfs", "index", "rebuild", store});
    INFO(rebuilt.err);
    REQUIRE(rebuilt.code == 0);
    check_index();
    CHECK(ParametersOf(store) == parameters);
  }
}

TEST_CASE("mkfs keeps the index options that are given, and adds only the others") {
  const TemporaryDirectory directory;
  REQUIRE(Run({"siltfs", "mkfs", directory / "both", "--expected-chunks", "10M", "--index-option",
               "partition_bits=3", "--index-option", "bucket_bits=12"})
              .code == 0);
  CHECK(ParametersOf(directory / "both") ==
        EngineParameters{{"partition_bits", 3}, {"bucket_bits", 12}});
  REQUIRE(Run({"siltfs", "mkfs", directory / "one", "--expected-chunks", "10M", "--index-option",
               "partition_bits=5"})
              .code == 0);
  const EngineParameters one = ParametersOf(directory / "one");
  CHECK(one.size() == 2);
  CHECK(Find(one, "partition_bits") == 5);
  CHECK(Find(one, "bucket_bits") >= 8);
  REQUIRE(Run({"siltfs", "mkfs", directory / "default"}).code == 0);
  CHECK(ParametersOf(directory / "default").empty());
}

TEST_CASE("mkfs explains why no index can hold the expected chunks, and makes nothing") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  const auto refused = [&](std::vector<std::string> options, int code) {
    options.insert(options.begin(), {"siltfs", "mkfs", store, "--expected-chunks"});
    const Outcome outcome = Run(options);
    CHECK(outcome.code == code);
    CHECK(outcome.out.empty());
    CHECK(Lines(outcome.err) == 1);
    CHECK_FALSE(std::filesystem::exists(store));
    return outcome.err;
  };
  const std::string little = refused({"1000000000", "--index-memory", "44M"}, 1);
  INFO(little);
  CHECK(little.starts_with(
      "siltfs: --expected-chunks: the index of 1000000000 chunks needs at least "));
  CHECK(little.ends_with(
      "more than the 44.0 MiB of --index-memory; give that size as --index-memory or "
      "expect fewer chunks\n"));
  CHECK(Has(refused({"0"}, 2), "--expected-chunks: 0 is not in the range"));
  CHECK(Has(refused({"1E"}, 2), "--expected-chunks: 1E is not in the range"));
  CHECK(Has(refused({"many"}, 2), "--expected-chunks: \"many\" is not a size"));
  CHECK(Has(refused({"1M", "--index-engine", "map"}, 2), "engine map has no parameters"));
}

}  // namespace
}  // namespace siltfs::testing
