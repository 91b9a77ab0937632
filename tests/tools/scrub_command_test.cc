#include <filesystem>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "fs/interface/file_system.h"
#include "store/superblock/superblock.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

// Makes a store of small segments with an incompressible file that fills several of them.
void FillStore(const std::string& path) {
  REQUIRE(Run({"siltfs", "mkfs", "--compression", "none", path}).code == 0);
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
  for (uint64_t i = 0; text.size() < 1'000'000; ++i) text += std::to_string(i * i * 2654435761U);
  REQUIRE_OK((*fs)->Write(file->inode, 0, AsBytes(text)));
  (*fs)->ReleaseFile(file->inode);
  REQUIRE_OK((*fs)->Close());
}

// Changes a byte in the middle of the store's largest file, which is a segment.
std::string DamageSegment(const std::string& store) {
  std::filesystem::path largest;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(store + "/segments")) {
    if (!entry.is_regular_file()) continue;
    if (largest.empty() || entry.file_size() > std::filesystem::file_size(largest))
      largest = entry.path();
  }
  std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(largest) / 2);
  file.seekg(middle);
  const char byte = static_cast<char>(file.get());
  file.seekp(middle);
  file.put(static_cast<char>(byte ^ 1));
  REQUIRE(file.good());
  return largest;
}

TEST_CASE("scrub verifies a store that is not mounted, and reports its findings") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  FillStore(store);
  const Outcome clean = Run({"siltfs", "scrub", "--json", store});
  INFO(clean.err);
  REQUIRE(clean.code == 0);
  CHECK(clean.err.empty());
  const auto json = nlohmann::json::parse(clean.out);
  CHECK(json.at("store") == store);
  CHECK(json.at("complete") == true);
  CHECK(json.at("resumed") == false);
  CHECK(json.at("segments") > 3);
  CHECK(json.at("blocks") > 3);
  CHECK(json.at("chunks") > 20);
  CHECK(json.at("bytes") > 900'000);
  CHECK(json.at("damaged_blocks") == 0);
  CHECK(json.at("damaged_chunks") == 0);
  CHECK(json.at("seconds").is_number_float());

  const std::string damaged = DamageSegment(store);
  const Outcome found = Run({"siltfs", "scrub", "--json", store});
  CHECK(found.code == 13);
  CHECK(Has(found.err, damaged));
  CHECK(Has(found.err, "/file (inode "));
  const auto what = nlohmann::json::parse(found.out);
  CHECK(what.at("complete") == true);
  CHECK(what.at("damaged_blocks") == 1);
  CHECK(what.at("damaged_chunks") > 0);
  CHECK(what.at("damaged_files") == 1);
  const Outcome sentence = Run({"siltfs", "scrub", store});
  CHECK(sentence.code == 13);
  CHECK(Lines(sentence.out) == 1);
  CHECK(Has(sentence.out, "1 files cannot be read"));
  const auto statistics = nlohmann::json::parse(Run({"siltfs", "stat", "--json", store}).out);
  CHECK(statistics.at("damaged_blocks") == 1);
  CHECK(statistics.at("damaged_chunks") == what.at("damaged_chunks"));
}

TEST_CASE("scrub refuses a path without a store, and a store in use, with one sentence") {
  const TemporaryDirectory directory;
  const Outcome none = Run({"siltfs", "scrub", directory / "none"});
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
  const Outcome used = Run({"siltfs", "scrub", store});
  CHECK(used.code == 11);
  CHECK(used.out.empty());
  CHECK(Lines(used.err) == 1);
  REQUIRE_OK((*fs)->Close());
}

}  // namespace
}  // namespace siltfs::testing
