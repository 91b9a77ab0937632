#include <nlohmann/json.hpp>

#include "fs/interface/file_system.h"
#include "store/superblock/superblock.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

// Makes a store of small segments with a compressible file that fills several of them.
void FillStore(const std::string& path) {
  REQUIRE(Run({"siltfs", "mkfs", "--compression", "zstd:9", path}).code == 0);
  const auto env = NewPosixEnv();
  auto state = ReadSuperblock(*env, path);
  REQUIRE_OK(state);
  state->superblock.segment_bytes = 64u << 10;
  REQUIRE_OK(WriteSuperblock(*env, path, state->superblock));
  FileSystemOptions options;
  options.store = path;
  auto fs = FileSystem::Open(*env, options);
  REQUIRE_OK(fs);
  auto file = (*fs)->CreateFile(kRootInode, "file", 0600, {});
  REQUIRE_OK(file);
  std::string text;
  for (uint64_t i = 0; text.size() < 3'000'000; ++i)
    text += std::to_string(i * i * 2654435761U) + (i % 3 == 0 ? " is a number\n" : " is another, ");
  REQUIRE_OK((*fs)->Write(file->inode, 0, AsBytes(text)));
  (*fs)->ReleaseFile(file->inode);
  REQUIRE_OK((*fs)->Close());
}

nlohmann::json Statistics(const std::string& store) {
  const Outcome outcome = Run({"siltfs", "stat", "--json", store});
  REQUIRE(outcome.code == 0);
  return nlohmann::json::parse(outcome.out);
}

TEST_CASE("settle recompresses a store that is not mounted, and reports its work") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  FillStore(store);
  const auto before = Statistics(store);
  REQUIRE(before.at("awaiting_recompression_bytes") > 500'000);

  const Outcome outcome = Run({"siltfs", "settle", "--json", store});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.empty());
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json.at("store") == store);
  CHECK(json.at("segments_rewritten") > 3);
  CHECK(json.at("segments_kept") == 0);
  CHECK(json.at("segments_left") == 0);
  CHECK(json.at("bytes_after") < json.at("bytes_before"));
  const auto after = Statistics(store);
  CHECK(json.at("awaiting_recompression_bytes") == after.at("awaiting_recompression_bytes"));
  CHECK(after.at("awaiting_recompression_bytes") < 200'000);
  const uint64_t expected = before.at("stored_bytes").get<uint64_t>() -
                            json.at("bytes_before").get<uint64_t>() +
                            json.at("bytes_after").get<uint64_t>();
  // The stored bytes include the footers of segments that FillStore left unsealed.
  CHECK(after.at("stored_bytes") >= expected);
  CHECK(after.at("stored_bytes") < expected + 4096);
  CHECK(Run({"siltfs", "fsck", "--data", "--quiet", store}).code == 0);

  const Outcome again = Run({"siltfs", "settle", store});
  CHECK(again.code == 0);
  CHECK(Lines(again.out) == 1);
  CHECK(Has(again.out, "0 segments recompressed, 0 kept"));
}

TEST_CASE("settle refuses a path without a store, and a store in use, with one sentence") {
  const TemporaryDirectory directory;
  const Outcome none = Run({"siltfs", "settle", directory / "none"});
  CHECK(none.code == 10);
  CHECK(none.out.empty());
  CHECK(Lines(none.err) == 1);
  const std::string store = directory / "store";
  REQUIRE(Run({"siltfs", "mkfs", store}).code == 0);
  const auto env = NewPosixEnv();
  FileSystemOptions options;
  options.store = store;
  auto fs = FileSystem::Open(*env, options);
  REQUIRE_OK(fs);
  const Outcome used = Run({"siltfs", "settle", store});
  CHECK(used.code == 11);
  CHECK(used.out.empty());
  CHECK(Lines(used.err) == 1);
  REQUIRE_OK((*fs)->Close());
}

}  // namespace
}  // namespace siltfs::testing
