// A whole store on another metadata engine than RocksDB, from mkfs to the repair of damage.
#include <optional>
#include <set>
#include <string>

#include "fs/check/check_store.h"
#include "fs/meta/open_kv_store.h"
#include "fs/open/rebuild_index.h"
#include "fs/open/store_layout.h"
#include "fs/repair/repair_store.h"
#include "store/env/files.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/fs/meta/log_kv_store.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

MakeStoreOptions OnLog() {
  RegisterLogEngine();
  MakeStoreOptions options;
  options.index_memory = 4u << 20;
  options.metadata_engine = kLogEngineName;
  return options;
}

void RequireSound(StoreFixture& store) {
  CheckOptions options;
  options.store = store.path();
  options.data = true;
  options.on_finding = [](const Finding& finding) { FAIL_CHECK(finding.code + finding.message); };
  const auto report = CheckStore(store.env(), options);
  REQUIRE_OK(report);
  REQUIRE(report->findings == 0);
}

void RequireContent(FileSystem& fs, std::string_view path, const Bytes& content) {
  const auto inode = Resolve(fs, path);
  REQUIRE_OK(inode);
  const auto read = ReadFile(fs, *inode);
  REQUIRE_OK(read);
  REQUIRE(*read == content);
}

Result<RebuiltIndex> Rebuild(StoreFixture& store) {
  IndexRebuildOptions options;
  options.store = store.path();
  return RebuildIndex(store.env(), options);
}

void Flip(Env& env, const std::string& path, uint64_t offset) {
  const auto file = env.OpenFile(path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  uint8_t byte = 0;
  REQUIRE_OK(ReadExactly(**file, offset, {&byte, 1}));
  byte ^= 0x10;
  REQUIRE_OK((*file)->Write(offset, {&byte, 1}));
}

}  // namespace

TEST_CASE("A store on another metadata engine is written, mounted again, crashed and checked") {
  StoreFixture store(OnLog());
  CHECK(store.env().GetFileInfo(JoinPath(MetadataPath(store.path()), "log")).ok());
  CHECK(store.env()
            .GetFileInfo(JoinPath(MetadataPath(store.path()), "CURRENT"))
            .status()
            .Is(StatusCode::kNotFound));
  const Bytes large = RandomBytes(1, 700'000);
  const Bytes small = RandomBytes(2, 100);
  WriteLargeFile(store.Open(), "large", large);
  store.Close();
  RequireSound(store);
  WriteFile(store.Open(), "small", small);
  REQUIRE_OK(store.fs().SyncAll());
  WriteFile(store.fs(), "not committed", small);
  store.Crash();
  RequireSound(store);
  RequireContent(store.Open(/*read_only=*/true), "small", small);
  store.Close();
  RequireContent(store.Open(), "large", large);
  RequireContent(store.fs(), "small", small);
  store.Close();
  RequireSound(store);
}

TEST_CASE("The index of a store on another metadata engine is rebuilt") {
  StoreFixture store(OnLog());
  const Bytes large = RandomBytes(1, 700'000);
  WriteLargeFile(store.Open(), "large", large);
  store.Close();
  const auto rebuilt = Rebuild(store);
  REQUIRE_OK(rebuilt);
  CHECK(rebuilt->chunks > 10);
  RequireSound(store);
  RequireContent(store.Open(), "large", large);
}

TEST_CASE("Damaged metadata of another engine is salvaged by that engine") {
  StoreFixture store(OnLog());
  const Bytes large = RandomBytes(1, 700'000);
  WriteLargeFile(store.Open(), "large", large);
  REQUIRE_OK(store.fs().SyncAll());
  store.Close();
  const std::string log = JoinPath(MetadataPath(store.path()), "log");
  const auto intact = store.env().GetFileInfo(log);
  REQUIRE_OK(intact);
  WriteFile(store.Open(), "lost", RandomBytes(3, 100));
  REQUIRE_OK(store.fs().SyncAll());
  WriteFile(store.fs(), "kept", RandomBytes(4, 100));
  store.Close();
  Flip(store.env(), log, intact->size + 20);
  REQUIRE_CODE(store.TryOpen(), kCorruption);

  RepairOptions options;
  options.check.store = store.path();
  options.mode = RepairMode::kAll;
  const auto repaired = RepairStore(store.env(), options);
  REQUIRE_OK(repaired);
  CHECK(repaired->left == 0);
  const auto state = ReadSuperblock(store.env(), store.path());
  REQUIRE_OK(state);
  CHECK(state->superblock.metadata_engine == kLogEngineName);
  CHECK(store.env().GetFileInfo(JoinPath(DamagedMetadataPath(store.path()), "log")).ok());
  RequireSound(store);
  RequireContent(store.Open(), "large", large);
}

TEST_CASE(
    "A store on a metadata engine of another version is neither mounted, checked nor repaired") {
  MetadataEngine later = kLogEngine;
  later.name = "later";
  MakeStoreOptions made = OnLog();
  made.metadata_engine = later.name;
  std::optional<MetadataEngineForTest> table(std::in_place, later);
  StoreFixture store(made);
  WriteFile(store.Open(), "file", RandomBytes(1, 100));
  store.Close();
  table.reset();

  const Status opened = store.TryOpen();
  REQUIRE_CODE(opened, kNeedsNewer);
  CHECK(opened.ToString() ==
        MetadataPath(store.path()) +
            ": metadata is kept by engine \"later\", which this version does not know");
  REQUIRE_CODE(store.TryOpen(/*read_only=*/true), kNeedsNewer);
  CheckOptions check;
  check.store = store.path();
  REQUIRE_CODE(CheckStore(store.env(), check), kNeedsNewer);
  RepairOptions repair;
  repair.check = check;
  repair.mode = RepairMode::kAll;
  REQUIRE_CODE(RepairStore(store.env(), repair), kNeedsNewer);
  REQUIRE_CODE(Rebuild(store), kNeedsNewer);
  // mkfs refuses it, too, and makes nothing.
  made.path = store.path() + "2";
  REQUIRE_CODE(MakeStore(store.env(), made), kInvalidArgument);
  CHECK(store.env().GetFileInfo(made.path).status().Is(StatusCode::kNotFound));

  table.emplace(later);
  RequireSound(store);
}

TEST_CASE(
    "Parameters of the index are kept in the superblock, and hold when the index is rebuilt") {
  MakeStoreOptions made;
  made.index_parameters = {{"partition_bits", 1}, {"bucket_bits", 4}};
  StoreFixture store(made);
  const auto partitions = [&store] {
    std::set<uint32_t> seen;
    for (const auto& one : store.Stats().index.stores) seen.insert(one.partition);
    return seen.size();
  };
  WriteLargeFile(store.Open(), "large", RandomBytes(1, 700'000));
  CHECK(partitions() == 2);
  store.Close();
  const auto state = ReadSuperblock(store.env(), store.path());
  REQUIRE_OK(state);
  CHECK(state->superblock.index_parameters == made.index_parameters);
  CHECK((state->superblock.incompat_features & kIncompatEngines) != 0);
  REQUIRE_OK(Rebuild(store));
  store.Open();
  CHECK(partitions() == 2);
  store.Close();
  RequireSound(store);

  Superblock other = state->superblock;
  other.index_parameters[0].name = "height";
  REQUIRE_OK(WriteSuperblock(store.env(), store.path(), other));
  const Status opened = store.TryOpen();
  REQUIRE_CODE(opened, kNeedsNewer);
  CHECK(opened.ToString() ==
        IndexPath(store.path()) +
            ": was made by a version with other index parameters: engine silt has no parameter "
            "\"height\" (there are: partition_bits, bucket_bits, named_slots, tries, sorted_runs)");
}

TEST_CASE("A store with default engines has no feature bit for them") {
  StoreFixture store;
  const auto state = ReadSuperblock(store.env(), store.path());
  REQUIRE_OK(state);
  CHECK(state->superblock.incompat_features == 0);
}

}  // namespace siltfs::testing
