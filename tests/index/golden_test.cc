// The files of past versions: read as they were meant, and written byte for byte the same.
// After a deliberate change of format (with a new version number) write them anew: silt_index_test
// "[.write-golden]".
#include <filesystem>

#include "history.h"
#include "index/map/map_index.h"
#include "index/silt/silt_index.h"
#include "store/env/files.h"
#include "store/env/posix_env.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

const std::string kGolden = SILTFS_GOLDEN_DIRECTORY;

Result<std::unique_ptr<ChunkIndex>> OpenMap(Env& env, const std::string& directory) {
  return OpenMapIndex(env, {.directory = directory});
}

Result<std::unique_ptr<ChunkIndex>> OpenSilt(Env& env, const std::string& directory) {
  return OpenSiltIndex(env, {.directory = directory,
                             .bucket_bits = 3,
                             .max_log_pages = 4,
                             .write_batch_pages = 2,
                             .hash_secret = 0x5eed5eed5eed5eed});
}

using Open = Result<std::unique_ptr<ChunkIndex>> (*)(Env&, const std::string&);

Location LocationOf(uint64_t number) {
  return {.segment = static_cast<SegmentId>(1 + number * 7),
          .ordinal = static_cast<uint32_t>(number * 11),
          .block_offset = static_cast<uint32_t>(number * 4099)};
}

// 100 names under sequences 1 to 10, some put again, some deleted.
void Write(ChunkIndex& index) {
  for (uint64_t i = 0; i < 100; ++i) {
    const IndexEntry entry{NameOf(i), LocationOf(i)};
    REQUIRE_OK(index.Put({&entry, 1}, 1 + i / 10));
    if (i == 55) REQUIRE_OK(index.Flush());
  }
  const IndexEntry again{NameOf(42), LocationOf(1042)};
  REQUIRE_OK(index.Put({&again, 1}, 10));
  REQUIRE_OK(index.Delete(NameOf(13)));
  REQUIRE_OK(index.Close());
}

void Check(ChunkIndex& index) {
  CHECK(index.durable_sequence() == 10);
  CHECK(index.stats().damaged_pages == 0);
  for (uint64_t i = 0; i < 100; ++i) {
    auto got = index.Get(NameOf(i));
    REQUIRE_OK(got);
    if (i == 13) {
      CHECK_FALSE(got->has_value());
    } else {
      CHECK(*got == LocationOf(i == 42 ? 1042 : i));
    }
  }
}

std::map<std::string, std::string> FilesIn(Env& env, const std::string& directory) {
  std::map<std::string, std::string> files;
  auto entries = env.ListDirectory(directory);
  REQUIRE_OK(entries);
  for (const DirectoryEntry& entry : *entries) {
    auto contents = ReadWholeFile(env, JoinPath(directory, entry.name), 1U << 20);
    REQUIRE_OK(contents);
    files[entry.name] = *contents;
  }
  return files;
}

void CheckGolden(const std::string& name, Open open) {
  auto env = NewPosixEnv();
  const auto golden = FilesIn(*env, kGolden + "/" + name);
  REQUIRE_FALSE(golden.empty());

  TemporaryDirectory written;
  auto index = open(*env, written.path());
  REQUIRE_OK(index);
  Write(**index);
  const auto files = FilesIn(*env, written.path());
  REQUIRE(files.size() == golden.size());
  for (const auto& [file, contents] : golden) {
    INFO(name << "/" << file);
    REQUIRE(files.count(file) == 1);
    CHECK((files.at(file) == contents));
  }

  TemporaryDirectory copy;
  std::filesystem::copy(kGolden + "/" + name, copy.path());
  auto opened = open(*env, copy.path());
  REQUIRE_OK(opened);
  Check(**opened);
}

void WriteGolden(const std::string& name, Open open) {
  const std::string directory = kGolden + "/" + name;
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  auto env = NewPosixEnv();
  auto index = open(*env, directory);
  REQUIRE_OK(index);
  Write(**index);
}

}  // namespace

TEST_CASE("the map's snapshot is as it has been since version 1") { CheckGolden("map-1", OpenMap); }

TEST_CASE("SILT's manifest and logs are as they have been since version 1") {
  CheckGolden("silt-1", OpenSilt);
}

TEST_CASE("writes the golden files anew", "[.write-golden]") {
  WriteGolden("map-1", OpenMap);
  WriteGolden("silt-1", OpenSilt);
}

}  // namespace siltfs::testing
