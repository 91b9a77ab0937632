// SliceHash on several devices: subdirectories of the index, which may be links, and the order of a
// batch's lookups over the devices' channels.
#include <algorithm>
#include <filesystem>

#include "hook_env.h"
#include "index/device_directories.h"
#include "slice_hash_fixture.h"
#include "store/env/files.h"
#include "store/env/posix_env.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

std::vector<std::string> NamesIn(Env& env, const std::string& directory) {
  const auto entries = env.ListDirectory(directory);
  REQUIRE_OK(entries);
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
  std::ranges::sort(names);
  return names;
}

size_t PageFilesOn(Env& env, unsigned device) {
  return NamesIn(env, JoinPath("/index", DeviceDirectoryName(device))).size();
}

}  // namespace

TEST_CASE("Partitions are distributed over the devices") {
  SliceHashFixture fixture({{"table_bits", 1}, {"incarnations", 51}, {"directories", 3}});
  fixture.options.partition_bits = 2;
  auto index = fixture.Open();
  fixture.Put(*index, 0, 6000);
  REQUIRE_OK(index->Flush());
  CHECK(index->stats().merges > 0);
  size_t files = 0;
  for (unsigned device = 0; device < 3; ++device) {
    CHECK(PageFilesOn(fixture.env, device) > CountOf(index->stats(), "buffer") / 6);
    files += PageFilesOn(fixture.env, device);
  }
  CHECK(files == CountOf(index->stats(), "slicetable"));
  // All page files beside them belong to the log of puts, which is the last log.
  for (const std::string& name : NamesIn(fixture.env, "/index")) {
    if (name.ends_with(".pages")) CHECK(name.starts_with("00009-"));
  }
  CHECK(ReadsPerLookup(*index, 0, 6000) < 2);
  CHECK(Findings(*index) == 0);
  REQUIRE_OK(index->Close());
  index.reset();
  fixture.env.PowerCut();
  ReadsPerLookup(*fixture.Open(), 0, 6000);
}

TEST_CASE("A partition can have a slicetable on each device, and needs a buffer for all of them") {
  SliceHashFixture fixture(
      {{"table_bits", 2}, {"incarnations", 51}, {"directories", 3}, {"spread", 1}});
  auto index = fixture.Open();
  // More than two slicetables of 816 entries, fewer than three.
  fixture.Put(*index, 0, 2200);
  REQUIRE_OK(index->Flush());
  const IndexStats stats = index->stats();
  REQUIRE(stats.merges == 0);
  CHECK(CountOf(stats, "buffer") == 1);
  CHECK(CountOf(stats, "slicetable") == 3);
  for (unsigned device = 0; device < 3; ++device) CHECK(PageFilesOn(fixture.env, device) == 1);
  // A lookup reads at most two pages of each slicetable.
  CHECK(ReadsPerLookup(*index, 9000, 9500, 0) <= 6);
  CHECK(ReadsPerLookup(*index, 9000, 9500, 0) > 3);
  // Newer entries are in newer slicetables, and hide older ones; so do deletions.
  fixture.Put(*index, 0, 100, 2);
  for (uint64_t i = 100; i < 150; ++i) REQUIRE_OK(index->Delete(NameOf(i)));
  fixture.Put(*index, 3000, 40);
  ReadsPerLookup(*index, 0, 100, 2);
  ReadsPerLookup(*index, 100, 150, 0);
  ReadsPerLookup(*index, 150, 2200);
  // The slicetables split together.
  fixture.Put(*index, 4000, 1000);
  CHECK(index->stats().merges > 0);
  ReadsPerLookup(*index, 0, 100, 2);
  ReadsPerLookup(*index, 100, 150, 0);
  ReadsPerLookup(*index, 150, 2200);
  CHECK(Findings(*index) == 0);
  REQUIRE_OK(index->Close());
}

TEST_CASE("A split that finds no space releases the slicetables that it has written") {
  const uint64_t nth = GENERATE(1, 2, 3, 4);
  const EngineParameters parameters = {
      {"table_bits", 2}, {"incarnations", 51}, {"directories", 3}, {"spread", 1}};
  // The put that splits the partition writes four slicetables, two for each half.
  uint64_t before_split = 0;
  {
    SliceHashFixture fixture(parameters);
    auto index = fixture.Open();
    fixture.Put(*index, 0, 2200);
    for (uint64_t put = 2200; index->stats().merges == 0; ++put) {
      before_split = put;
      fixture.Put(*index, put, 1);
    }
    REQUIRE(CountOf(index->stats(), "slicetable") == 4);
  }
  SliceHashFixture fixture(parameters);
  auto index = fixture.Open();
  fixture.Put(*index, 0, 2200);
  for (uint64_t put = 2200; put < before_split; ++put) fixture.Put(*index, put, 1);
  REQUIRE_OK(index->Flush());  // afterwards no file can be removed to make room
  fixture.env.FailCall(
      {.calls = SimCall::kWrite, .nth = nth, .code = StatusCode::kNoSpace, .path_part = "device-"});
  const IndexEntry last = SliceEntry(before_split);
  REQUIRE_CODE(index->Put({&last, 1}, ++fixture.sequence), kNoSpace);
  CHECK(index->stats().merges == 0);
  ReadsPerLookup(*index, 0, before_split);
  REQUIRE_OK(index->PutAgain({&last, 1}, fixture.sequence));
  CHECK(index->stats().merges == 1);
  ReadsPerLookup(*index, 0, before_split + 1);
  // The next checkpoint removes all other files.
  REQUIRE_OK(index->Flush());
  uint64_t bytes = 0;
  for (unsigned device = 0; device < 3; ++device) {
    const std::string directory = JoinPath("/index", DeviceDirectoryName(device));
    for (const std::string& name : NamesIn(fixture.env, directory)) {
      const auto info = fixture.env.GetFileInfo(JoinPath(directory, name));
      REQUIRE_OK(info);
      bytes += info->size;
    }
  }
  CHECK(bytes == SumOf(index->stats(), "slicetable", &IndexComponentStats::flash_bytes));
  CHECK(Findings(*index) == 0);
}

TEST_CASE("A device's directory may be a link, and a missing one is made") {
  TemporaryDirectory temporary;
  auto env = NewPosixEnv();
  const std::string path = temporary / "index";
  const std::string elsewhere = temporary / "elsewhere";
  std::filesystem::create_directory(path);
  std::filesystem::create_directory(elsewhere);
  std::filesystem::create_directory_symlink(elsewhere, path + "/device-1");
  SliceHashFixture fixture({{"table_bits", 1}, {"incarnations", 51}, {"directories", 2}});
  fixture.options.directory = path;
  fixture.options.partition_bits = 2;
  {
    auto index = fixture.OpenIn(*env);
    fixture.Put(*index, 0, 1000);
    REQUIRE_OK(index->Close());
  }
  CHECK_FALSE(NamesIn(*env, elsewhere).empty());
  CHECK_FALSE(NamesIn(*env, path + "/device-0").empty());
  ReadsPerLookup(*fixture.OpenIn(*env), 0, 1000);

  // A rebuild removes the index's files, but neither the link nor files of others.
  std::filesystem::create_directory(elsewhere + "/lost+found");
  std::filesystem::copy_file(path + "/manifest", elsewhere + "/notes");
  REQUIRE_OK(EmptyDeviceDirectory(*env, path + "/device-1"));
  CHECK(std::filesystem::is_symlink(path + "/device-1"));
  CHECK(NamesIn(*env, elsewhere) == std::vector<std::string>{"lost+found", "notes"});
  REQUIRE_OK(EmptyDeviceDirectory(*env, path + "/device-7"));
  // The index notices that files are missing.
  REQUIRE_CODE(fixture.TryOpen(*env), kCorruption);
}

TEST_CASE("Page files in a device's directory without a manifest are no index") {
  SliceHashFixture fixture({{"table_bits", 1}, {"directories", 2}});
  {
    auto index = fixture.Open();
    fixture.Put(*index, 0, 3000);
    REQUIRE_OK(index->Close());
  }
  REQUIRE_OK(fixture.env.RemoveFile("/index/manifest"));
  REQUIRE_OK(fixture.env.RemoveFile("/index/manifest.edits"));
  for (const std::string& name : NamesIn(fixture.env, "/index")) {
    if (name.ends_with(".pages")) REQUIRE_OK(fixture.env.RemoveFile(JoinPath("/index", name)));
  }
  REQUIRE_CODE(fixture.TryOpen(fixture.env), kCorruption);
  for (unsigned device = 0; device < 2; ++device) {
    REQUIRE_OK(EmptyDeviceDirectory(fixture.env, JoinPath("/index", DeviceDirectoryName(device))));
  }
  REQUIRE_OK(fixture.TryOpen(fixture.env));
}

TEST_CASE("The lookups of a batch alternate between the channels, if they are reordered") {
  // With one channel for each of two devices, a read's directory shows its channel.
  const uint64_t reorder = GENERATE(0, 1);
  SliceHashFixture fixture(
      {{"table_bits", 4}, {"directories", 2}, {"channels", 1}, {"reorder", reorder}});
  fixture.options.partition_bits = 1;
  fixture.options.read_depth = 8;
  HookEnv env(fixture.env);
  auto index = fixture.OpenIn(env);
  fixture.Put(*index, 0, 4000);
  REQUIRE(index->stats().merges == 0);
  // All lookups of one device come before those of the other.
  std::vector<ChunkName> names;
  for (uint64_t i = 0; i < 4000; ++i) names.push_back(NameOf(i));
  std::stable_partition(names.begin(), names.end(),
                        [&](const ChunkName& name) { return index->OrderOf(name) >> 63 == 0; });
  std::vector<bool> reads;
  env.on_read = [&](const std::string& path) {
    reads.push_back(path.find("device-1") != std::string::npos);
  };
  std::vector<Answer> answers(names.size());
  REQUIRE_OK(index->Get(names, answers));
  env.on_read = [](const std::string&) {};
  REQUIRE(std::ranges::none_of(answers, [](const Answer& answer) { return !answer; }));
  size_t changes = 0;
  for (size_t i = 1; i < reads.size(); ++i) changes += reads[i] != reads[i - 1] ? 1 : 0;
  INFO(reads.size() << " reads, " << changes << " times from the other device");
  CHECK(reads.size() > 3000);
  if (reorder == 1) {
    CHECK(changes > reads.size() / 2);
  } else {
    CHECK(changes < 100);
  }
}

}  // namespace siltfs::testing
