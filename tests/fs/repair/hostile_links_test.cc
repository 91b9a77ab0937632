// A crafted store with links that point outside: no operation on the store writes, creates or
// removes anything outside.
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "fs/check/check_store.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_stats.h"
#include "fs/repair/repair_store.h"
#include "store/env/posix_env.h"
#include "store/segment/segment_files.h"
#include "tests/fs/core/recompression_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

namespace stdfs = std::filesystem;

// Paths and contents of files.
std::map<std::string, std::string> FilesBelow(const stdfs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : stdfs::recursive_directory_iterator(directory)) {
    std::stringstream content;
    if (entry.is_regular_file()) content << std::ifstream(entry.path()).rdbuf();
    files[entry.path()] = content.str();
  }
  return files;
}

struct HostileStore {
  HostileStore()
      : env(NewPosixEnv({.links = SymbolicLinks::kRefuse})),
        root(stdfs::canonical(directory.path())),
        store(*env, root / "store") {
    stdfs::create_directory(theirs());
    std::ofstream(theirs() / "precious") << std::string(5000, 'p');
    auto fs = store.Open(*env);
    REQUIRE_OK(fs);
    store.WriteFiles(**fs, 1, 6);
    REQUIRE_OK((*fs)->SyncAll());
    fs->reset();  // as left by a killed process: segments are unsealed, and logs are replayed
  }

  stdfs::path theirs() const { return root / "theirs"; }
  // Replaces an object, if it exists, by a link to an outside file or to the outside directory.
  void Replace(const stdfs::path& path, bool with_file) const {
    stdfs::remove_all(path);
    stdfs::create_symlink(with_file ? theirs() / "precious" : theirs(), path);
  }

  RepairReport Repair() const {
    RepairOptions options;
    options.check.store = store.path;
    options.check.data = true;
    options.mode = RepairMode::kAll;
    auto report = RepairStore(*env, options);
    REQUIRE_OK(report);
    return std::move(report).value();
  }

  // Uses the store like a user. Returns whether it could be mounted.
  bool Use() const {
    auto fs = store.Open(*env);
    if (!fs.ok()) {
      CHECK(fs.status().Is(StatusCode::kCorruption));
      return false;
    }
    WriteLargeFile(**fs, "new", RandomBytes(9, 200'000));
    (*fs)->SyncAll().IgnoreError("it may not be possible");
    (*fs)->maintenance().CollectGarbage(false).status().IgnoreError("it may not be possible");
    (*fs)->Close().IgnoreError("it may not be possible");
    return true;
  }

  TemporaryDirectory directory;
  const std::unique_ptr<Env> env;
  const stdfs::path root;
  RecompressionStore store;
};

// The codes of fsck's findings.
std::set<std::string> CodesOf(const HostileStore& hostile) {
  std::set<std::string> codes;
  CheckOptions options;
  options.store = hostile.store.path;
  options.on_finding = [&codes](const Finding& finding) { codes.insert(finding.code); };
  REQUIRE_OK(CheckStore(*hostile.env, options));
  return codes;
}

TEST_CASE("statistics, fsck and a mount agree about any object in the reserve's place") {
  const bool by_mount = GENERATE(false, true);
  const std::string what = GENERATE(as<std::string>{}, "a link to a directory", "a link to a file",
                                    "a link to nothing", "a file", "a pipe");
  CAPTURE(by_mount, what);
  HostileStore hostile;
  REQUIRE(hostile.Use());
  REQUIRE(CodesOf(hostile).empty());
  const stdfs::path reserve = ReservePath(hostile.store.path);
  stdfs::remove_all(reserve);
  if (what == "a link to a directory") hostile.Replace(reserve, false);
  if (what == "a link to a file") hostile.Replace(reserve, true);
  if (what == "a link to nothing") stdfs::create_symlink("nothing", reserve);
  if (what == "a file") std::ofstream(reserve) << "text";
  if (what == "a pipe") REQUIRE(mkfifo(reserve.c_str(), 0600) == 0);
  const auto theirs = FilesBelow(hostile.theirs());

  const auto stats = ReadStoreStats(*hostile.env, hostile.store.path);
  REQUIRE_OK(stats);
  CHECK(stats->reserve_bytes == 0);
  CHECK(CodesOf(hostile) == std::set<std::string>{"reserve"});
  if (by_mount) {
    CHECK(hostile.Use());
  } else {
    RepairOptions options;
    options.check.store = hostile.store.path;
    const auto report = RepairStore(*hostile.env, options);
    REQUIRE_OK(report);
    CHECK(report->found == 1);
    CHECK(report->left == 0);
  }
  CHECK(CodesOf(hostile).empty());
  CHECK(FilesBelow(hostile.theirs()) == theirs);
}

TEST_CASE("an object that is not a file is not counted as a piece of the reserve") {
  HostileStore hostile;
  REQUIRE(hostile.Use());
  const stdfs::path reserve = ReservePath(hostile.store.path);
  stdfs::create_directories(reserve);
  const auto before = ReadStoreStats(*hostile.env, hostile.store.path);
  REQUIRE_OK(before);
  hostile.Replace(reserve / "70", true);
  hostile.Replace(reserve / "71", false);
  stdfs::create_directory(reserve / "72");
  REQUIRE(mkfifo((reserve / "73").c_str(), 0600) == 0);
  std::ofstream(reserve / "photo") << std::string(100'000, 'p');
  const auto stats = ReadStoreStats(*hostile.env, hostile.store.path);
  REQUIRE_OK(stats);
  CHECK(stats->reserve_bytes == before->reserve_bytes);
  CHECK(CodesOf(hostile).empty());
  CHECK(hostile.Use());
  CHECK(stdfs::file_size(reserve / "photo") == 100'000);
}

TEST_CASE("links in a store are not followed, and a repair fixes what it can") {
  HostileStore hostile;
  const stdfs::path store = hostile.store.path;
  bool mends = true;
  bool loses = false;
  SECTION("the index") { hostile.Replace(IndexPath(store), false); }
  SECTION("a file of the index") {
    for (const auto& entry : stdfs::directory_iterator(IndexPath(store)))
      hostile.Replace(entry.path(), true);
  }
  SECTION("a segment") {
    hostile.Replace(SegmentPath(store, 1), true);
    mends = false;
  }
  SECTION("future segments") {
    stdfs::create_directory(SegmentDirectory(store, 4096));
    for (SegmentId id = 4096; id < 4110; ++id) hostile.Replace(SegmentPath(store, id), true);
    mends = false;
  }
  SECTION("a directory of segments") {
    hostile.Replace(SegmentDirectory(store, 1), false);
    mends = false;
  }
  SECTION("a file in the place of a directory of segments") {
    stdfs::create_directory(SegmentDirectory(store, 4096));
    stdfs::remove_all(SegmentDirectory(store, 1));
    std::ofstream(SegmentDirectory(store, 1)) << "a file";
    loses = true;
  }
  SECTION("all segments") {
    hostile.Replace(SegmentsDirectory(store), false);
    mends = false;
  }
  SECTION("metadata") {
    hostile.Replace(MetadataPath(store), false);
    mends = false;
  }
  SECTION("single files of metadata") {
    const stdfs::path path = MetadataPath(store);
    SECTION("CURRENT") { hostile.Replace(path / "CURRENT", true); }
    SECTION("IDENTITY") { hostile.Replace(path / "IDENTITY", true); }
    SECTION("LOCK") { hostile.Replace(path / "LOCK", true); }
  }
  SECTION("future files of metadata") {
    for (int i = 1; i < 60; ++i) {
      for (const std::string_view form : {"MANIFEST-", "OPTIONS-", ""}) {
        const std::string name = fmt::format("{}{:06}{}", form, i, form.empty() ? ".log" : "");
        const stdfs::path path = stdfs::path(MetadataPath(store)) / name;
        if (!stdfs::exists(path)) hostile.Replace(path, true);
      }
    }
  }
  SECTION("the ledger") { hostile.Replace(LedgerPath(store), true); }
  SECTION("files of a terabyte") {
    const std::string extension = GENERATE(".log", ".sst");
    const bool of_index = GENERATE(true, false);
    const std::string directory = of_index ? IndexPath(store) : MetadataPath(store);
    for (const auto& entry : stdfs::directory_iterator(directory)) {
      if (entry.path().extension() != extension) continue;
      stdfs::resize_file(entry, uint64_t{1} << 40);
      break;
    }
  }
  SECTION("a superblock") { hostile.Replace(store / "superblock.1", true); }
  SECTION("the lock") { hostile.Replace(LockPath(store), true); }
  SECTION("garbage collection's spill directory") { hostile.Replace(SpillPath(store), false); }
  SECTION("the reserve") { hostile.Replace(ReservePath(store), false); }
  SECTION("files that a repair creates") {
    for (const std::string& path : {NewMetadataPath(store), NewLedgerPath(store),
                                    SalvagedMetadataPath(store), DamagedMetadataPath(store)})
      hostile.Replace(path, false);
    stdfs::resize_file(stdfs::path(MetadataPath(store)) / "CURRENT", 1);
  }
  const auto theirs = FilesBelow(hostile.theirs());

  hostile.Use();
  CHECK(FilesBelow(hostile.theirs()) == theirs);
  const RepairReport report = hostile.Repair();
  CHECK(FilesBelow(hostile.theirs()) == theirs);
  CHECK((report.left == 0) == mends);
  CHECK(report.lost.empty() == !loses);
  CHECK(hostile.Use() == mends);
  CHECK(FilesBelow(hostile.theirs()) == theirs);
  if (mends && !loses) {
    auto fs = hostile.store.Open(*hostile.env);
    REQUIRE_OK(fs);
    hostile.store.RequireFiles(**fs);
  }
}

// The missing part may be on a disk that is not mounted.
TEST_CASE("a store without any segments or without metadata is left unchanged") {
  HostileStore hostile;
  const stdfs::path aside = hostile.root / "aside";
  const bool of_segments = GENERATE(true, false);
  const stdfs::path part =
      of_segments ? SegmentsDirectory(hostile.store.path) : MetadataPath(hostile.store.path);
  stdfs::rename(part, aside);
  SECTION("missing") {}
  SECTION("an empty directory") { stdfs::create_directory(part); }
  SECTION("another file system's directory, or one named like a log") {
    stdfs::create_directories(part / (of_segments ? "lost+found" : "000001.log"));
  }
  auto before = FilesBelow(hostile.store.path);
  CHECK_FALSE(hostile.Use());
  // A mount opens metadata before it looks for segments, and opening metadata writes files.
  if (of_segments) before = FilesBelow(hostile.store.path);
  const RepairReport report = hostile.Repair();
  CHECK(FilesBelow(hostile.store.path) == before);
  CHECK(report.left > 0);
  CHECK(report.lost.empty());
  REQUIRE(report.remarks.size() == 1);
  CHECK(report.remarks.front().find("not mounted?") != std::string::npos);
  stdfs::remove_all(part);
  stdfs::rename(aside, part);
  hostile.store.RequireSound(*hostile.env);
  auto fs = hostile.store.Open(*hostile.env);
  REQUIRE_OK(fs);
  hostile.store.RequireFiles(**fs);
}

}  // namespace
}  // namespace siltfs::testing
