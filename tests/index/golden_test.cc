// Files of past versions are still read correctly, and the present version still writes the same
// bytes. After a deliberate change of format (with a new version number), write the files again:
// silt_index_test "[.write-golden]".
#include <algorithm>
#include <filesystem>
#include <set>

#include "history.h"
#include "index/bloom_store/bloom_store_engine.h"
#include "index/buffer_hash/buffer_hash_engine.h"
#include "index/flash/flash_index.h"
#include "index/flash/store_files.h"
#include "index/map/map_index.h"
#include "index/silt/silt_index.h"
#include "index/skimpy_stash/skimpy_stash_engine.h"
#include "index/slice_bloom/slice_bloom.h"
#include "index/slice_hash/slice_hash_engine.h"
#include "index/slice_lsh/slice_lsh.h"
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

// Two partitions, and tables of 32 entries, so that there are logs, HashStores and a SortedStore.
Result<std::unique_ptr<ChunkIndex>> OpenSiltWith(Env& env, const std::string& directory,
                                                 bool sorted_runs) {
  return OpenSiltIndex(env, {.directory = directory,
                             .partition_bits = 1,
                             .bucket_bits = 3,
                             .hash_secret = 0x5eed5eed5eed5eed,
                             .max_log_pages = 4,
                             .write_batch_pages = 2,
                             .hash_store_share = 0.5,
                             .sorted_runs = sorted_runs,
                             .background = false,
                             .memory_limit = uint64_t{4} << 20});
}
Result<std::unique_ptr<ChunkIndex>> OpenSilt(Env& env, const std::string& directory) {
  return OpenSiltWith(env, directory, false);
}
Result<std::unique_ptr<ChunkIndex>> OpenSiltRuns(Env& env, const std::string& directory) {
  return OpenSiltWith(env, directory, true);
}

// An engine with page files, so small that 120 names fill buffers and split partitions.
Result<std::unique_ptr<ChunkIndex>> OpenFlash(Env& env, const std::string& directory,
                                              std::unique_ptr<FlashEngine> engine) {
  return OpenFlashIndex(
      env, {.directory = directory, .hash_secret = 0x5eed5eed5eed5eed, .pages_per_checkpoint = 4},
      std::move(engine));
}
Result<std::unique_ptr<ChunkIndex>> OpenBufferHash(Env& env, const std::string& directory) {
  return OpenFlash(env, directory, MakeBufferHashEngine({{"table_bits", 3}, {"incarnations", 3}}));
}
Result<std::unique_ptr<ChunkIndex>> OpenSliceHash(Env& env, const std::string& directory) {
  return OpenFlash(
      env, directory,
      MakeSliceHashEngine({{"table_bits", 1}, {"incarnations", 16}, {"filter_bits", 8}}));
}
Result<std::unique_ptr<ChunkIndex>> OpenBloomStore(Env& env, const std::string& directory) {
  return OpenFlash(env, directory,
                   MakeBloomStoreEngine({{"chain_length", 4},
                                         {"filter_bytes", 64},
                                         {"buffered_filters", 1},
                                         {"prefilter_bits", 4},
                                         {"record_bytes", 64}}));
}
Result<std::unique_ptr<ChunkIndex>> OpenSkimpyStash(Env& env, const std::string& directory) {
  return OpenFlash(
      env, directory,
      MakeSkimpyStashEngine({{"capacity_bits", 6}, {"entries_per_bucket", 2}, {"garbage", 1}}));
}

struct Golden {
  std::string name;  // of the folder
  Result<std::unique_ptr<ChunkIndex>> (*open)(Env&, const std::string&);
  uint64_t names;
};
const Golden kMap{"map-1", OpenMap, 100};
const Golden kSilt{"silt-3", OpenSilt, 300};
const Golden kSiltRuns{"silt-3-runs", OpenSiltRuns, 300};
const Golden kPageFiles[] = {{"buffer_hash-1", OpenBufferHash, 120},
                             {"slice_hash-1", OpenSliceHash, 120},
                             {"bloom_store-1", OpenBloomStore, 120},
                             {"skimpy_stash-1", OpenSkimpyStash, 120}};

Location LocationOf(uint64_t number) {
  return {.segment = static_cast<SegmentId>(1 + number * 7),
          .ordinal = static_cast<uint32_t>(number * 11),
          .block_offset = static_cast<uint32_t>(number * 4099)};
}

// Puts ten names per sequence, from sequence 1 on; some names are put again, some deleted.
void Write(ChunkIndex& index, uint64_t names) {
  for (uint64_t i = 0; i < names; ++i) {
    const IndexEntry entry{NameOf(i), LocationOf(i)};
    REQUIRE_OK(index.Put({&entry, 1}, 1 + i / 10));
    if (i == 55) REQUIRE_OK(index.Flush());
  }
  const IndexEntry again{NameOf(42), LocationOf(1042)};
  REQUIRE_OK(index.Put({&again, 1}, names / 10));
  REQUIRE_OK(index.Delete(NameOf(13)));
  REQUIRE_OK(index.Close());
}

void Check(ChunkIndex& index, uint64_t names) {
  CHECK(index.durable_sequence() == names / 10);
  CHECK(index.stats().damaged_pages == 0);
  for (uint64_t i = 0; i < names; ++i) {
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

void CheckRead(const Golden& golden_index) {
  auto env = NewPosixEnv();
  TemporaryDirectory copy;
  std::filesystem::copy(kGolden + "/" + golden_index.name, copy.path());
  auto opened = golden_index.open(*env, copy.path());
  REQUIRE_OK(opened);
  Check(**opened, golden_index.names);
}

void CheckGolden(const Golden& golden_index) {
  auto env = NewPosixEnv();
  const auto golden = FilesIn(*env, kGolden + "/" + golden_index.name);
  REQUIRE_FALSE(golden.empty());

  TemporaryDirectory written;
  auto index = golden_index.open(*env, written.path());
  REQUIRE_OK(index);
  Write(**index, golden_index.names);
  const auto files = FilesIn(*env, written.path());
  REQUIRE(files.size() == golden.size());
  for (const auto& [file, contents] : golden) {
    INFO(golden_index.name << "/" << file);
    REQUIRE(files.count(file) == 1);
    CHECK((files.at(file) == contents));
  }
  CheckRead(golden_index);
}

void WriteGolden(const Golden& golden_index) {
  const std::string directory = kGolden + "/" + golden_index.name;
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  auto env = NewPosixEnv();
  auto index = golden_index.open(*env, directory);
  REQUIRE_OK(index);
  Write(**index, golden_index.names);
}

// A SliceBloom is no index, so it has functions of its own.
const std::string kSliceBloomName = "slice_bloom-1";

Result<std::unique_ptr<SliceBloom>> OpenSliceBloom(Env& env, const std::string& directory) {
  return SliceBloom::Open(env, {.directory = directory,
                                .shape = {.partition_bits = 1,
                                          .names_per_group = 20,
                                          .bits_per_name = 16,
                                          .probes = 3,
                                          .groups_per_filter = 9},
                                .secret = 0x5eed5eed5eed5eed});
}

std::vector<uint64_t> PrefixesOf(SegmentId segment) {
  std::vector<uint64_t> prefixes;
  for (uint64_t i = 0; i < 10; ++i) prefixes.push_back(NameOf(segment * 10 + i).Prefix64());
  return prefixes;
}

// 12 groups in two slicefilters, and a saved group. One segment is removed, and one moves.
void WriteSliceBloom(Env& env, const std::string& directory) {
  auto bloom = OpenSliceBloom(env, directory);
  REQUIRE_OK(bloom);
  for (SegmentId segment = 1; segment <= 24; ++segment) {
    REQUIRE_OK((*bloom)->Add(segment, PrefixesOf(segment)));
  }
  REQUIRE_OK((*bloom)->Remove(5));
  REQUIRE_OK((*bloom)->Add(8, PrefixesOf(8)));
  REQUIRE_OK((*bloom)->Close());
}

void CheckSliceBloom(Env& env, const std::string& directory) {
  auto bloom = OpenSliceBloom(env, directory);
  REQUIRE_OK(bloom);
  for (SegmentId segment = 1; segment <= 24; ++segment) {
    REQUIRE((*bloom)->Covers(segment) == (segment != 5));
    std::vector<std::vector<SegmentId>> found;
    REQUIRE_OK((*bloom)->Find(PrefixesOf(segment), found));
    for (const auto& segments : found) {
      REQUIRE(std::ranges::count(segments, segment) == (segment == 5 ? 0 : 1));
    }
  }
  const SliceBloomStats stats = (*bloom)->stats();
  CHECK(stats.groups == 12);
  CHECK(stats.filters == 4);
  CHECK(stats.damaged_pages == 0);
}

// A SliceLSH is no index either.
const std::string kSliceLshName = "slice_lsh-1";

Result<std::unique_ptr<SliceLsh>> OpenSliceLsh(Env& env, const std::string& directory) {
  return SliceLsh::Open(env, {.directory = directory,
                              .shape = {.tables = 2, .growth = 2, .most_levels = 3},
                              .secret = 0x5eed5eed5eed5eed,
                              .buffer_bytes = 2048,
                              .renew_if_damaged = false});
}

std::vector<uint64_t> SuperFeaturesOf(uint64_t chunk) {
  return {NameOf(2 * chunk).Prefix64(), NameOf(2 * chunk + 1).Prefix64()};
}

SliceLshPlace PlaceOf(uint64_t chunk) {
  return {.segment = static_cast<SegmentId>(1 + chunk * 7'000'001),
          .ordinal = static_cast<uint32_t>(chunk * 1000)};
}

// Slicetables of one and of several pages, with an edit of the manifest.
void WriteSliceLsh(Env& env, const std::string& directory) {
  auto lsh = OpenSliceLsh(env, directory);
  REQUIRE_OK(lsh);
  for (uint64_t chunk = 0; chunk < 500; ++chunk) {
    REQUIRE_OK((*lsh)->Add(SuperFeaturesOf(chunk), PlaceOf(chunk)));
  }
  REQUIRE_OK((*lsh)->Flush());
}

void CheckSliceLsh(Env& env, const std::string& directory) {
  auto lsh = OpenSliceLsh(env, directory);
  REQUIRE_OK(lsh);
  for (uint64_t chunk = 0; chunk < 500; ++chunk) {
    std::vector<std::vector<SliceLshCandidate>> found;
    REQUIRE_OK((*lsh)->Find(SuperFeaturesOf(chunk), found));
    REQUIRE(found[0] == std::vector<SliceLshCandidate>{{.place = PlaceOf(chunk), .tables = 2}});
  }
  const SliceLshStats stats = (*lsh)->stats();
  CHECK(stats.entries == 1000);
  CHECK(stats.slicetables >= 4);
  CHECK(stats.pages > stats.slicetables);
  CHECK(stats.damaged_pages == 0);
}

}  // namespace

TEST_CASE("the map's snapshot is unchanged since version 1") { CheckGolden(kMap); }

TEST_CASE("SILT's manifest, logs, HashStores, SortedStores and filters are unchanged") {
  CheckGolden(kSilt);
  std::set<StoreKind> kinds;
  auto env = NewPosixEnv();
  auto files = ListStoreFiles(*env, kGolden + "/" + kSilt.name);
  REQUIRE_OK(files);
  for (const StoreFileId& file : *files) kinds.insert(file.kind);
  CHECK(kinds.size() == 4);
}

TEST_CASE("SILT's sorted runs are unchanged") { CheckGolden(kSiltRuns); }

TEST_CASE("the page files and manifests of the other engines are unchanged since version 1") {
  for (const Golden& golden : kPageFiles) CheckGolden(golden);
}

TEST_CASE("the page files and the manifest of a SliceBloom are unchanged since version 1") {
  auto env = NewPosixEnv();
  const std::string golden = kGolden + "/" + kSliceBloomName;
  const auto expected = FilesIn(*env, golden);
  REQUIRE_FALSE(expected.empty());
  TemporaryDirectory written;
  WriteSliceBloom(*env, written.path());
  CHECK((FilesIn(*env, written.path()) == expected));
  TemporaryDirectory copy;
  std::filesystem::copy(golden, copy.path());
  CheckSliceBloom(*env, copy.path());
}

TEST_CASE("the page files and the manifest of a SliceLSH are unchanged since version 1") {
  auto env = NewPosixEnv();
  const std::string golden = kGolden + "/" + kSliceLshName;
  const auto expected = FilesIn(*env, golden);
  REQUIRE_FALSE(expected.empty());
  TemporaryDirectory written;
  WriteSliceLsh(*env, written.path());
  CHECK((FilesIn(*env, written.path()) == expected));
  TemporaryDirectory copy;
  std::filesystem::copy(golden, copy.path());
  CheckSliceLsh(*env, copy.path());
}

TEST_CASE("writes the golden files again", "[.write-golden]") {
  WriteGolden(kMap);
  WriteGolden(kSilt);
  WriteGolden(kSiltRuns);
  for (const Golden& golden : kPageFiles) WriteGolden(golden);
  const std::string slice_bloom = kGolden + "/" + kSliceBloomName;
  std::filesystem::remove_all(slice_bloom);
  std::filesystem::create_directories(slice_bloom);
  WriteSliceBloom(*NewPosixEnv(), slice_bloom);
  const std::string slice_lsh = kGolden + "/" + kSliceLshName;
  std::filesystem::remove_all(slice_lsh);
  std::filesystem::create_directories(slice_lsh);
  WriteSliceLsh(*NewPosixEnv(), slice_lsh);
}

}  // namespace siltfs::testing
