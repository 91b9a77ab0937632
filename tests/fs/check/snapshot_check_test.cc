// Findings of fsck in the records of snapshots, and in the versions of records that they show.
#include <algorithm>
#include <string>

#include "fs/interface/snapshots.h"
#include "fs/records/schema.h"
#include "store/base/coding.h"
#include "tests/fs/check/snapshot_store.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Requires exactly one finding, of this code, with this part in its message.
void RequireOne(const CheckOutcome& outcome, const std::string& code, const std::string& part) {
  INFO(outcome.ToString());
  REQUIRE(outcome.findings.size() == 1);
  REQUIRE(outcome.findings[0].code == code);
  REQUIRE(outcome.findings[0].message.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("a store with snapshots has no findings") {
  SnapshotStore store;
  RequireCodes(store.Check(true), {});
  store.RequireFiles();
  // All snapshots show the inodes of the live file system, which the counters count.
  FileSystem& fs = store.checked().fixture().Open();
  REQUIRE_OK(fs.snapshots().Remove("monday"));
  REQUIRE_OK(fs.snapshots().AwaitRemovals());
  store.checked().fixture().Close();
  RequireCodes(store.Check(true), {});
}

TEST_CASE("what an interrupted removal of a snapshot leaves is no finding") {
  SnapshotStore store;
  SnapshotRecord record = store.Record(SnapshotStore::kMonday);
  record.removing = true;
  store.PutRecord(SnapshotStore::kMonday, record);
  RequireCodes(store.Check(), {});
  // Without its record, its versions are of no use.
  store.checked().Remove(SnapshotKey(SnapshotStore::kMonday));
  RequireOne(store.Check(), "snapshot-version", "that no snapshot needs");
}

TEST_CASE("a damaged record of a snapshot is found") {
  SnapshotStore store;
  CheckedStore& checked = store.checked();
  SnapshotRecord record = store.Record(SnapshotStore::kTuesday);
  SECTION("a malformed record") {
    checked.Put(SnapshotKey(SnapshotStore::kTuesday), "?");
    RequireOne(store.Check(), "snapshot-record", "snapshot 2 is malformed");
  }
  SECTION("a malformed key") {
    checked.Put("mm", record.Encode());
    RequireOne(store.Check(), "snapshot-record", "key");
  }
  SECTION("two snapshots with one name") {
    record.name = "monday";
    store.PutRecord(SnapshotStore::kTuesday, record);
    RequireOne(store.Check(), "snapshot-record", "two snapshots have the name \"monday\"");
  }
  SECTION("a removed snapshot may have the name of another one") {
    record.name = "monday";
    record.removing = true;
    store.PutRecord(SnapshotStore::kTuesday, record);
    RequireCodes(store.Check(), {});
  }
  SECTION("an impossible name") {
    record.name = "a/b";
    store.PutRecord(SnapshotStore::kTuesday, record);
    RequireOne(store.Check(), "snapshot-record", "impossible name");
  }
  SECTION("a number that was never allocated") {
    record.name = "wednesday";
    store.PutRecord(3, record);
    RequireOne(store.Check(), "snapshot-record", "never allocated");
  }
  SECTION("no next number") {
    checked.Remove(std::string(kNextSnapshotKey));
    RequireCodes(store.Check(), {"snapshot-record", "snapshot-version"});
  }
  SECTION("a malformed next number") {
    checked.Put(std::string(kNextSnapshotKey), "?");
    RequireOne(store.Check(), "snapshot-record", "next snapshot is malformed");
  }
  SECTION("a limit of inodes below that of an older snapshot") {
    record.inode_limit = store.Record(SnapshotStore::kMonday).inode_limit - 1;
    store.PutRecord(SnapshotStore::kTuesday, record);
    RequireOne(store.Check(), "snapshot-record", "limit");
  }
  SECTION("a limit of inodes that no inode number has reached") {
    record.inode_limit = uint64_t{1} << 50;
    store.PutRecord(SnapshotStore::kTuesday, record);
    RequireOne(store.Check(), "snapshot-record", "limit");
  }
}

TEST_CASE("a damaged version of a record is found") {
  SnapshotStore store;
  CheckedStore& checked = store.checked();
  const std::string key = InodeKey(store.changed);
  const std::string version = VersionKey(key, SnapshotStore::kTuesday);
  SECTION("a malformed value") {
    checked.Put(version, "?");
    RequireOne(store.Check(), "snapshot-version", "1 with a malformed value, the first of inode");
  }
  SECTION("a value that is no record") {
    checked.Put(version, EncodeVersion("?"));
    RequireOne(store.Check(), "snapshot-version", "1 with a malformed value");
  }
  SECTION("a malformed key") {
    checked.Put("y?", EncodeVersion(std::nullopt));
    RequireOne(store.Check(), "snapshot-version", "1 with a malformed key");
  }
  SECTION("a version of a table that has none") {
    store.PutVersion(std::string(kIdRangesKey), SnapshotStore::kTuesday, 0, "?");
    RequireOne(store.Check(), "snapshot-version", "1 with a malformed key");
  }
  SECTION("a snapshot without a root directory") {
    store.PutVersion(InodeKey(kRootInode), SnapshotStore::kTuesday, 1, std::nullopt);
    RequireCodes(store.Check(), {"snapshot-record", "snapshot-version"});
  }
  SECTION("a version for a snapshot that was never made") {
    store.PutVersion(key, 3, 2, std::nullopt);
    RequireCodes(store.Check(), {"snapshot-version"});
  }
  SECTION("a version that is not in the list") {
    checked.Remove(VersionListKey(SnapshotStore::kTuesday, SnapshotStore::kMonday, key));
    RequireOne(store.Check(), "snapshot-version", "1 not in the list");
  }
  SECTION("an entry of the list without its version") {
    checked.Remove(version);
    RequireOne(store.Check(), "snapshot-version", "1 in the list that do not exist");
  }
  SECTION("a version that is twice in the list") {
    checked.Put(VersionListKey(SnapshotStore::kTuesday, 0, key), "");
    RequireOne(store.Check(), "snapshot-version", "1 twice in the list");
  }
  SECTION("one version twice in the list, and another one not at all") {
    checked.Remove(VersionListKey(SnapshotStore::kTuesday, SnapshotStore::kMonday, key));
    checked.Put(VersionListKey(SnapshotStore::kMonday, 0, key), "");
    checked.Put(VersionListKey(SnapshotStore::kTuesday, 1, XattrKey(store.changed, "user.none")),
                "");
    RequireCodes(store.Check(), {"snapshot-version"});
  }
  SECTION("a malformed entry of the list") {
    checked.Put("z?", "");
    RequireOne(store.Check(), "snapshot-version", "1 with a malformed entry in the list");
  }
}

TEST_CASE("a lost chunk that only a snapshot needs is found, with the snapshot's name") {
  SnapshotStore store;
  SECTION("one snapshot") {
    store.DamageChunk(store.ChunksOf(store.changed, SnapshotStore::kMonday)[0]);
    const CheckOutcome outcome = store.Check(true);
    RequireCodes(outcome, {"block-payload", "chunk-damaged"});
    for (const Finding& finding : outcome.findings) {
      if (finding.code != "chunk-damaged") continue;
      CHECK(finding.path == "/.snapshots/monday/changed");
      CHECK(finding.inode == store.changed);
      CHECK(finding.message.find("as of the snapshot \"monday\"") != std::string::npos);
    }
  }
  SECTION("a version that two snapshots show") {
    store.checked().EditMetadata([](KvStore& kv) {
      // "large" changed after both snapshots, so its version serves both.
      const auto value = kv.Get(VersionKey(DirectoryEntryKey(kRootInode, "gone"), 2));
      REQUIRE_OK(value);
      REQUIRE(*value);
    });
    const Files monday = store.Read("monday");
    FileSystem& fs = store.checked().fixture().Open(true);
    const auto inode = Resolve(fs, "large");
    REQUIRE_OK(inode);
    store.checked().fixture().Close();
    // The recipe of "large" has nodes, so a node is made to be missing.
    const std::string version = VersionKey(InodeKey(*inode), SnapshotStore::kTuesday);
    store.checked().EditMetadata([&](KvStore& kv) {
      auto value = kv.Get(version);
      REQUIRE_OK(value);
      REQUIRE(*value);
      auto record = InodeRecord::Decode((*value)->substr(1));
      REQUIRE_OK(record);
      REQUIRE(!record->recipe.children.empty());
      record->recipe.children[0].name = ChunkName();
      REQUIRE_OK(kv.Write({{version, EncodeVersion(record->Encode())}}));
    });
    const CheckOutcome outcome = store.Check();
    RequireOne(outcome, "recipe-node", "as of the snapshots \"monday\", \"tuesday\"");
    CHECK(outcome.findings[0].path == "/.snapshots/tuesday/large");
  }
  SECTION("a chunk that the live file and the snapshots need") {
    store.DamageChunk(store.ChunksOf(store.same)[0]);
    const CheckOutcome outcome = store.Check(true);
    RequireCodes(outcome, {"block-payload", "chunk-damaged"});
    // No version of the file exists.
    CHECK(std::ranges::none_of(outcome.findings, [](const Finding& finding) {
      return finding.message.find("as of") != std::string::npos;
    }));
  }
}

}  // namespace siltfs::testing
