#include <nlohmann/json.hpp>

#include "fs/interface/file_system.h"
#include "store/base/random.h"
#include "store/superblock/superblock.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

// Makes a store of small segments with two files, one of which is removed.
void FillStore(const std::string& path) {
  REQUIRE(Run({"siltfs", "mkfs", path}).code == 0);
  const auto env = NewPosixEnv();
  auto state = ReadSuperblock(*env, path);
  REQUIRE_OK(state);
  state->superblock.segment_bytes = 64u << 10;
  REQUIRE_OK(WriteSuperblock(*env, path, state->superblock));
  FileSystemOptions options;
  options.store = path;
  auto fs = FileSystem::Open(*env, options);
  REQUIRE_OK(fs);
  Random random(7);
  for (const std::string name : {"kept", "removed"}) {
    auto file = (*fs)->CreateFile(kRootInode, name, 0600, {});
    REQUIRE_OK(file);
    Bytes content(1'000'000);
    for (uint8_t& byte : content) byte = static_cast<uint8_t>(random.Next());
    REQUIRE_OK((*fs)->Write(file->inode, 0, content));
    (*fs)->ReleaseFile(file->inode);
  }
  REQUIRE_OK((*fs)->Unlink(kRootInode, "removed"));
  REQUIRE_OK((*fs)->Close());
}

nlohmann::json JsonOf(const std::vector<std::string>& arguments) {
  const Outcome outcome = Run(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.empty());
  return nlohmann::json::parse(outcome.out);
}

TEST_CASE("gc frees removed data of a store that is not mounted, and reports it") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  FillStore(store);
  const auto before = JsonOf({"siltfs", "stat", "--json", store});

  const auto estimate = JsonOf({"siltfs", "gc", "--dry-run", "--json", store});
  CHECK(estimate.at("dry_run") == true);
  // Chunk boundaries differ between stores, so the first and the last segment may hold chunks of
  // both files.
  CHECK(estimate.at("bytes_freed") > 700'000);
  CHECK(JsonOf({"siltfs", "stat", "--json", store}).at("stored_bytes") ==
        before.at("stored_bytes"));

  const auto done = JsonOf({"siltfs", "gc", "--json", store});
  CHECK(done.at("store") == store);
  CHECK(done.at("dry_run") == false);
  CHECK(done.at("segments_removed") > 5);
  CHECK(done.at("segments_left") == 0);
  CHECK(done.at("bytes_freed") ==
        done.at("bytes_removed").get<uint64_t>() - done.at("bytes_copied").get<uint64_t>());
  CHECK(done.at("dead_chunks") > 50);
  CHECK(done.at("live_chunks") > 50);
  CHECK(done.at("segments_checked") > done.at("segments_removed"));
  const auto after = JsonOf({"siltfs", "stat", "--json", store});
  CHECK(after.at("stored_bytes") < 1'300'000);
  CHECK(after.at("unique_bytes") < 1'300'000);
  CHECK(Run({"siltfs", "fsck", "--data", "--quiet", store}).code == 0);

  const Outcome again = Run({"siltfs", "gc", store});
  CHECK(again.code == 0);
  CHECK(Lines(again.out) == 1);
  CHECK(Has(again.out, "segments removed"));
}

TEST_CASE("gc refuses a path without a store, and a store in use, with one sentence") {
  const TemporaryDirectory directory;
  const Outcome none = Run({"siltfs", "gc", directory / "none"});
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
  const Outcome used = Run({"siltfs", "gc", store});
  CHECK(used.code == 11);
  CHECK(used.out.empty());
  CHECK(Lines(used.err) == 1);
  REQUIRE_OK((*fs)->Close());
}

}  // namespace
}  // namespace siltfs::testing
