#include <nlohmann/json.hpp>

#include "store/env/files.h"
#include "store/superblock/superblock.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

using Json = nlohmann::json;

Outcome Tune(const std::string& store, std::vector<std::string> more) {
  std::vector<std::string> words = {"siltfs", "tune", store};
  words.insert(words.end(), more.begin(), more.end());
  return Run(words);
}

Json Parameters(const std::string& store) {
  const Outcome outcome = Tune(store, {"--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return Json::parse(outcome.out);
}

uint64_t Generation(const std::string& store) {
  const auto env = NewPosixEnv();
  const auto state = ReadSuperblock(*env, store);
  REQUIRE_OK(state);
  return state->superblock.generation;
}

TEST_CASE("tune shows the parameters of a store") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  REQUIRE(Run({"siltfs", "mkfs", store, "--label", "my files", "--chunk-avg", "16K",
               "--compression", "zstd:7", "--index-memory", "20M", "--delta", "on"})
              .code == 0);
  const Json json = Parameters(store);
  CHECK(json.at("store") == store);
  CHECK(json.at("label") == "my files");
  CHECK(json.at("uuid") == json.at("original_uuid"));
  CHECK(json.at("compression") == "zstd:7");
  CHECK(json.at("index_memory_bytes") == 20 << 20);
  CHECK(json.at("index_engine") == "silt");
  CHECK(json.at("delta") == true);
  CHECK(json.at("chunk_avg_bytes") == 16384);
  const Outcome text = Tune(store, {});
  INFO(text.out);
  CHECK(text.code == 0);
  CHECK(Has(text.out, "  Label         my files\n"));
  CHECK(Has(text.out, "  Compression   zstd:7\n"));
  CHECK(Has(text.out, "  Index memory  20M\n"));
  CHECK(Has(text.out, "  Chunks        16K on average, 4K to 128K\n"));
}

TEST_CASE("tune changes several parameters at once, and stat shows the label and the UUID") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  REQUIRE(Run({"siltfs", "mkfs", store}).code == 0);
  const Json before = Parameters(store);
  const std::string uuid = "01234567-89ab-4def-8123-456789abcdef";
  const Outcome changed = Tune(store, {"--label", "weekly", "--compression", "none",
                                       "--index-memory", "8M", "--uuid", uuid});
  INFO(changed.err);
  CHECK(changed.code == 0);
  CHECK(changed.out == "label: - -> weekly\nUUID: " + before.at("uuid").get<std::string>() +
                           " -> " + uuid +
                           "\ncompression: zstd:3 -> none\nindex memory: 44M -> 8M\n");
  const Json after = Parameters(store);
  CHECK(after.at("label") == "weekly");
  CHECK(after.at("uuid") == uuid);
  CHECK(after.at("original_uuid") == before.at("uuid"));
  CHECK(after.at("compression") == "none");
  const Json stat = Json::parse(Run({"siltfs", "stat", "--json", store}).out);
  CHECK(stat.at("label") == "weekly");
  CHECK(stat.at("uuid") == uuid);
  CHECK(Has(Run({"siltfs", "stat", store}).out, "Label       weekly\n"));
  CHECK(Run({"siltfs", "fsck", "-n", store}).code == 0);
}

TEST_CASE("Without a label and a chosen UUID, the store is as an earlier version made it") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  REQUIRE(Run({"siltfs", "mkfs", store}).code == 0);
  const auto env = NewPosixEnv();
  const auto features = [&] {
    const auto state = ReadSuperblock(*env, store);
    REQUIRE_OK(state);
    return state->superblock.ro_compat_features;
  };
  CHECK(features() == kUsualRoCompatFeatures);
  REQUIRE(Tune(store, {"--label", "x", "--uuid", "random"}).code == 0);
  CHECK(features() == (kUsualRoCompatFeatures | kRoCompatIdentity));
  REQUIRE(Tune(store, {"--label", ""}).code == 0);
  CHECK(features() == (kUsualRoCompatFeatures | kRoCompatIdentity));
  REQUIRE(Tune(store, {"--uuid", "original"}).code == 0);
  CHECK(features() == kUsualRoCompatFeatures);
  CHECK(Parameters(store).at("label").is_null());
}

TEST_CASE("tune writes nothing if nothing changes") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  REQUIRE(Run({"siltfs", "mkfs", store, "--label", "a"}).code == 0);
  const uint64_t generation = Generation(store);
  const Outcome same = Tune(store, {"--label", "a", "--compression", "zstd:3"});
  CHECK(same.code == 0);
  CHECK(same.out == "nothing to change\n");
  CHECK(Generation(store) == generation);
}

TEST_CASE("tune refuses what cannot be changed, with a reason and a remedy") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  REQUIRE(Run({"siltfs", "mkfs", store}).code == 0);
  const uint64_t generation = Generation(store);
  const std::vector<std::vector<std::string>> fixed = {
      {"--chunk-avg", "16K"},    {"--chunk-min", "1K"},     {"--chunk-max", "128K"},
      {"--delta", "on"},         {"--index-engine", "map"}, {"--index-option", "a=1"},
      {"--expected-chunks", "9"}};
  for (std::vector<std::string> words : fixed) {
    const std::string option = words[0];
    words.insert(words.end(), {"--label", "new"});
    const Outcome outcome = Tune(store, words);
    INFO(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.starts_with("siltfs: " + option + " cannot be changed after mkfs: "));
    CHECK(Has(outcome.err, "copy the files into it with siltfs import\n"));
    CHECK(Lines(outcome.err) == 1);
  }
  CHECK(Has(Tune(store, {"--root-owner", "1:1"}).err, "use chown(1) on its root"));
  CHECK(Generation(store) == generation);
}

TEST_CASE("tune refuses values that a store cannot have") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  REQUIRE(Run({"siltfs", "mkfs", store, "--delta", "on"}).code == 0);
  const uint64_t generation = Generation(store);
  const auto refused = [&](const std::vector<std::string>& words, const std::string& why) {
    const Outcome outcome = Tune(store, words);
    INFO(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(Has(outcome.err, why));
  };
  refused({"--label", std::string(65, 'x')}, "--label: the label has 65 bytes, and at most 64 fit");
  refused({"--label", "a/b"}, "--label: the label has a slash or a control character");
  refused({"--label", "a\nb"}, "--label: the label has a slash or a control character");
  refused({"--label", "a\xff"}, "--label: the label has characters that terminals do not show");
  refused({"--uuid", "1234"}, "--uuid: \"1234\" is neither random, nor original, nor a UUID");
  refused({"--uuid", "00000000-0000-0000-0000-000000000000"}, "a UUID of zeros");
  refused({"--compression", "none"}, "the store has deltas, which need compression");
  refused({"--compression", "zstd:20"}, "--compression: \"zstd:20\" is neither none nor zstd:N");
  refused({"--index-memory", "much"}, "--index-memory");
  CHECK(Generation(store) == generation);
  REQUIRE(Tune(store, {"--label", std::string(64, 'x')}).code == 0);
  CHECK(Run({"siltfs", "mkfs", directory / "other", "--label", "a/b"}).code == 2);
}

TEST_CASE("tune needs a store that no other process has open") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  CHECK(Tune(store, {"--label", "a"}).code == 10);
  CHECK(Tune(store, {}).code == 10);
  CHECK(Tune(directory.path(), {"--label", "a"}).code == 10);
  const auto env = NewPosixEnv();
  CHECK_FALSE(env->GetFileInfo(JoinPath(directory.path(), "lock")).ok());
  REQUIRE(Run({"siltfs", "mkfs", store}).code == 0);
  const auto lock = env->LockFile(JoinPath(store, "lock"));
  REQUIRE_OK(lock);
  const Outcome locked = Tune(store, {"--label", "a"});
  INFO(locked.err);
  CHECK(locked.code == 11);
  CHECK(Tune(store, {}).code == 0);  // showing needs no lock
}

}  // namespace
}  // namespace siltfs::testing
