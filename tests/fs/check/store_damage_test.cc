// Damage to the superblock and to the index, and the check's findings.
#include <filesystem>

#include "fs/open/store_layout.h"
#include "fs/rocksdb/sync_ledger.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/superblock/superblock.h"
#include "tests/fs/check/checked_store.h"
#include "tests/fs/core/directory_tree.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// The index's logs that are not empty.
std::vector<std::string> IndexLogs(const CheckedStore& store) {
  std::vector<std::string> logs;
  for (const auto& file : std::filesystem::directory_iterator(IndexPath(store.path()))) {
    if (file.path().extension() == ".log" && file.file_size() > 0)
      logs.push_back(file.path().string());
  }
  return logs;
}

}  // namespace

TEST_CASE("one damaged copy of the superblock is a finding, not a refusal") {
  CheckedStore store;
  store.FillAndClose();
  const std::string path = SuperblockPath(store.path(), GENERATE(0, 1));
  SECTION("damaged") { store.Flip(path, 2000); }
  SECTION("missing") { std::filesystem::remove(path); }
  SECTION("too long") { WriteText(path, ReadText(path) + "x"); }
  const CheckOutcome outcome = store.Check();
  RequireCodes(outcome, {"superblock-copy"});
  REQUIRE(outcome.findings[0].path == path);
  REQUIRE(outcome.report.chunks > 0);
}

TEST_CASE("mkfs may be interrupted before the second copy of the superblock") {
  StoreFixture fixture;
  std::filesystem::remove(SuperblockPath(fixture.path(), 1));
  CheckOptions options;
  options.store = fixture.path();
  auto report = CheckStore(fixture.env(), options);
  REQUIRE_OK(report);
  REQUIRE(report->findings == 0);
}

TEST_CASE("two damaged copies of the superblock are findings and end the check") {
  CheckedStore store;
  store.FillAndClose();
  for (int copy = 0; copy < 2; ++copy) store.Flip(SuperblockPath(store.path(), copy), 100);
  const CheckOutcome outcome = store.Check();
  RequireCodes(outcome, {"superblock"});
  REQUIRE(outcome.findings.size() == 2);
  REQUIRE(outcome.report.chunks == 0);
}

TEST_CASE("two copies of another format version are refused, and each outcome is read") {
  CheckedStore store;
  store.FillAndClose();
  for (int copy = 0; copy < 2; ++copy) {
    const std::string path = SuperblockPath(store.path(), copy);
    std::string bytes = ReadText(path);
    bytes[8] = 2;  // the version
    const std::string_view covered = std::string_view(bytes).substr(0, kSuperblockSize - 8);
    WriteText(path, std::string(covered) + Encoder().U64(Checksum(AsBytes(covered))).Take());
  }
  CheckOptions options;
  options.store = store.path();
  REQUIRE_CODE(CheckStore(store.fixture().env(), options), kNeedsNewer);
}

TEST_CASE("a copy of another store's superblock is found") {
  CheckedStore store;
  store.FillAndClose();
  CheckedStore other;
  WriteText(SuperblockPath(store.path(), 1), ReadText(SuperblockPath(other.path(), 1)));
  const CheckOutcome outcome = store.Check();
  INFO(outcome.ToString());
  REQUIRE(outcome.codes().contains("superblock-mismatch"));
}

TEST_CASE("a store of a later version is not checked") {
  CheckedStore store;
  store.FillAndClose();
  for (int copy = 0; copy < 2; ++copy) {
    const std::string path = SuperblockPath(store.path(), copy);
    auto superblock = DecodeSuperblock(AsBytes(ReadText(path)));
    REQUIRE_OK(superblock);
    superblock->incompat_features = uint64_t{1} << 60;
    WriteText(path, EncodeSuperblock(*superblock));
  }
  CheckOptions options;
  options.store = store.path();
  REQUIRE_CODE(CheckStore(store.fixture().env(), options), kNeedsNewer);
}

TEST_CASE("a store whose sync ledger is of a later version is not checked") {
  CheckedStore store;
  store.FillAndClose();
  std::string slot = EncodeSyncLedgerSlot({});
  slot[8] = 2;  // the version
  slot.resize(slot.size() - 8);
  slot += Encoder().U64(Checksum(AsBytes(slot))).Take();
  WriteText(LedgerPath(store.path()), slot);
  CheckOptions options;
  options.store = store.path();
  REQUIRE_CODE(CheckStore(store.fixture().env(), options), kNeedsNewer);
}

TEST_CASE("superblocks with a later commit show that metadata was lost") {
  CheckedStore store;
  store.FillAndClose();
  auto state = ReadSuperblock(store.fixture().env(), store.path());
  REQUIRE_OK(state);
  ++state->superblock.last_commit;
  REQUIRE_OK(WriteSuperblock(store.fixture().env(), store.path(), state->superblock));
  RequireCodes(store.Check(), {"metadata-lost"});
}

TEST_CASE("damage in the index is found, and loses no data") {
  SECTION("a page of each log") {
    CheckedStore store;
    store.FillAndClose();
    const std::vector<std::string> logs = IndexLogs(store);
    REQUIRE_FALSE(logs.empty());
    // Damage all logs: a single log may hold only unreferenced chunks, whose loss is no finding.
    for (const std::string& log : logs) store.Flip(log, 100);
    // The pages' entries are missing, but their chunks are found in the segments.
    RequireCodes(store.Check(), {"index-page-missing", "not-indexed"});
  }
  SECTION("the manifest") {
    CheckedStore store;
    store.FillAndClose();
    store.Flip(JoinPath(IndexPath(store.path()), "manifest"), 10);
    RequireCodes(store.Check(), {"index-open"});
  }
  SECTION("all of it") {
    CheckedStore store(IndexEngine::kMap);
    store.FillAndClose();
    store.Flip(JoinPath(IndexPath(store.path()), "map"), 100);
    RequireCodes(store.Check(), {"index-open"});
  }
  SECTION("its directory is missing") {
    CheckedStore store;
    store.FillAndClose();
    std::filesystem::remove_all(IndexPath(store.path()));
    RequireCodes(store.Check(), {"index-open"});
  }
  SECTION("it is empty, although the store was unmounted") {
    CheckedStore store;
    store.FillAndClose();
    std::filesystem::remove_all(IndexPath(store.path()));
    std::filesystem::create_directory(IndexPath(store.path()));
    RequireCodes(store.Check(), {"not-indexed"});
  }
}

}  // namespace siltfs::testing
