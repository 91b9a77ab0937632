// The check finds nothing in undamaged stores, left by an unmount or by a crash.
#include <fmt/format.h>

#include <filesystem>

#include "fs/open/store_layout.h"
#include "store/segment/segment_files.h"
#include "tests/fs/check/checked_store.h"
#include "tests/fs/core/directory_tree.h"
#include "tests/fs/core/recount_store.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

void RequireNoFinding(const CheckOutcome& outcome) {
  INFO(outcome.ToString());
  REQUIRE(outcome.findings.empty());
}

}  // namespace

TEST_CASE("a new store has no findings") {
  CheckedStore store(GENERATE(IndexEngine::kSilt, IndexEngine::kMap));
  const CheckOutcome outcome = store.Check(true);
  RequireNoFinding(outcome);
  REQUIRE(outcome.report.clean_shutdown == std::optional(true));
  REQUIRE(outcome.report.directories == 1);
  REQUIRE(outcome.report.chunks == 0);
}

TEST_CASE("an unmounted store has no findings, and all of it is checked") {
  CheckedStore store(GENERATE(IndexEngine::kSilt, IndexEngine::kMap));
  const bool data = GENERATE(false, true);
  store.Fill();
  const FileSystemStats stats = store.fixture().Stats();
  store.fixture().Close();
  const StoreCount count = RecountStore(store.path());

  const CheckOutcome outcome = store.Check(data);
  RequireNoFinding(outcome);
  const CheckReport& report = outcome.report;
  REQUIRE(report.clean_shutdown == std::optional(true));
  REQUIRE(report.files == count.files);
  REQUIRE(report.directories == count.directories);
  REQUIRE(report.names == count.names);
  REQUIRE(report.xattrs == count.xattrs);
  REQUIRE(report.chunks_referenced == count.chunk_references);
  REQUIRE(report.recipe_nodes > 0);
  REQUIRE(report.segments > 4);
  REQUIRE(report.blocks > 4);
  REQUIRE(report.chunks > stats.chunks_unique);  // chunks and nodes
  REQUIRE(report.index_entries == report.chunks);
  REQUIRE(report.stale_index_entries == 0);
  REQUIRE(report.torn_tails == 0);
  REQUIRE((report.data_bytes > 1'000'000) == data);
}

TEST_CASE("small tables and several threads give the same result") {
  CheckedStore store;
  store.FillAndClose();
  CheckOptions options;
  options.data = true;
  options.threads = 4;
  options.inodes_a_pass = GENERATE(1, 3);
  options.unresolved_references = 1;
  RequireNoFinding(store.Check(options));
}

TEST_CASE("legal results of a crash are not findings") {
  CheckedStore store(GENERATE(IndexEngine::kSilt, IndexEngine::kMap));
  const bool data = GENERATE(false, true);
  const bool used_before = GENERATE(false, true);
  store.Fill();
  if (used_before) store.fixture().Reopen();
  // An unfolded overlay, a file without a name, and uncommitted data.
  auto open = store.fs().CreateFile(kRootInode, "open", 0644, kCaller);
  REQUIRE_OK(open);
  REQUIRE_OK(store.fs().Write(open->inode, 5000, RandomBytes(8, 300'000)));
  auto orphan = store.fs().CreateFile(kRootInode, "orphan", 0644, kCaller);
  REQUIRE_OK(orphan);
  REQUIRE_OK(store.fs().Write(orphan->inode, 0, RandomBytes(9, 10'000)));
  REQUIRE_OK(store.fs().Unlink(kRootInode, "orphan"));
  auto temporary = store.fs().MakeTemporaryFile(kRootInode, 0644, kCaller);
  REQUIRE_OK(temporary);
  REQUIRE_OK(store.fs().Write(temporary->inode, 0, RandomBytes(12, 10'000)));
  auto named = store.fs().MakeTemporaryFile(kRootInode, 0644, kCaller);
  REQUIRE_OK(named);
  REQUIRE_OK(store.fs().Link(named->inode, kRootInode, "named"));
  REQUIRE_OK(store.fs().SyncAll());
  WriteFile(store.fs(), "lost", RandomBytes(10, 700'000));
  store.fixture().Crash();

  CheckOutcome outcome = store.Check(data);
  RequireNoFinding(outcome);
  REQUIRE(outcome.report.clean_shutdown == std::optional(false));
  REQUIRE(outcome.report.orphans == 2);
  REQUIRE(outcome.report.overlay_extents > 0);

  // Nothing is found after recovery either, nor after another crash.
  store.fixture().Open();
  store.fixture().Crash();
  RequireNoFinding(store.Check(data));
  store.fixture().Open();
  store.fixture().Close();
  outcome = store.Check(data);
  RequireNoFinding(outcome);
  REQUIRE(outcome.report.clean_shutdown == std::optional(true));
  REQUIRE(outcome.report.orphans == 0);
}

TEST_CASE("a torn tail and an unfinished replacement are counted after a crash") {
  CheckedStore store;
  store.Fill();
  store.fixture().Crash();
  auto listing = ListSegments(store.fixture().env(), store.path());
  REQUIRE_OK(listing);
  const CheckOutcome before = store.Check();
  // The last segment is unsealed: garbage after its end was never committed.
  const std::string last = SegmentPath(store.path(), listing->ids.back());
  WriteText(last, ReadText(last) + std::string(5000, 'x'));
  WriteText(TemporarySegmentPath(store.path(), listing->ids.back()), "begun");
  const CheckOutcome after = store.Check(true);
  RequireNoFinding(after);
  REQUIRE(after.report.torn_tails == before.report.torn_tails + 1);
  REQUIRE(after.report.leftover_files == 1);
}

TEST_CASE("index entries lost in a crash are added by the next mount and are not findings") {
  CheckedStore store(GENERATE(IndexEngine::kSilt, IndexEngine::kMap));
  store.Fill();
  store.fixture().Crash();
  // Remove all files of the index, as if none of them had reached the disk.
  std::filesystem::remove_all(IndexPath(store.path()));
  std::filesystem::create_directory(IndexPath(store.path()));
  const CheckOutcome outcome = store.Check();
  RequireNoFinding(outcome);
  REQUIRE(outcome.report.index_entries == 0);
}

TEST_CASE("index entries without a chunk are counted, but are not findings") {
  CheckedStore store(IndexEngine::kMap);
  store.Fill();
  store.fixture().Reopen();
  WriteLargeFile(store.fs(), "more", RandomBytes(11, 600'000));
  store.fixture().Close();
  const std::string index = JoinPath(IndexPath(store.path()), "map");
  const std::string newer = ReadText(index);
  CheckedStore other(IndexEngine::kMap);
  other.FillAndClose();
  // Give `other` the index of `store`, which also has entries for chunks in segments that `other`
  // does not have.
  WriteText(JoinPath(IndexPath(other.path()), "map"), newer);
  const CheckOutcome outcome = other.Check();
  REQUIRE(outcome.report.stale_index_entries > 0);
}

TEST_CASE("an interrupted check returns kInterrupted") {
  CheckedStore store;
  store.FillAndClose();
  CheckOptions options;
  options.store = store.path();
  options.interrupted = [] { return true; };
  REQUIRE_CODE(CheckStore(store.fixture().env(), options), kInterrupted);
}

TEST_CASE("a store that is mounted is not checked") {
  CheckedStore store;
  store.Fill();
  CheckOptions options;
  options.store = store.path();
  REQUIRE_CODE(CheckStore(store.fixture().env(), options), kInUse);
}

TEST_CASE("a directory without a store is not checked, and gets no lock") {
  TemporaryDirectory empty;
  StoreFixture fixture;
  CheckOptions options;
  options.store = empty.path();
  REQUIRE_CODE(CheckStore(fixture.env(), options), kNotFound);
  REQUIRE(std::filesystem::is_empty(empty.path()));
  options.store = empty / "nothing";
  REQUIRE_CODE(CheckStore(fixture.env(), options), kNotFound);
}

TEST_CASE("progress is reported for every part") {
  CheckedStore store;
  store.FillAndClose();
  std::set<std::string> phases;
  CheckOptions options;
  options.on_progress = [&phases](const CheckProgress& progress) {
    phases.insert(std::string(progress.phase));
  };
  store.Check(options);
  REQUIRE(phases == std::set<std::string>{"metadata", "segments", "index", "contents"});
}

}  // namespace siltfs::testing
