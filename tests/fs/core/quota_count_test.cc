// The count for a new quota: operations that run meanwhile, its interruption, and its limits.
#include <fmt/format.h>

#include <functional>
#include <set>
#include <string>

#include "fs/interface/entry_store.h"
#include "fs/interface/snapshots.h"
#include "fs/open/store_layout.h"
#include "fs/records/directory_entry.h"
#include "fs/records/schema.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "tests/fs/core/quota_fixture.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kHuge = uint64_t{1} << 62;

// A tree whose count calls `check` many times: "dir/0" to "dir/9" with ten files of 1 KiB and the
// directory "deep" with another one each, and "outside/sub" with one.
struct CountFixture : QuotaFixture {
  InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  InodeNumber outside = MakeDir(*fs, kRootInode, "outside");

  CountFixture() {
    for (int i = 0; i < 10; ++i) {
      const InodeNumber sub = MakeDir(*fs, dir, std::to_string(i));
      for (int j = 0; j < 10; ++j) File(sub, std::to_string(j), kKiB);
      File(MakeDir(*fs, sub, "deep"), "file", kKiB);
    }
    File(MakeDir(*fs, outside, "sub"), "file", kKiB);
  }
  // Sets a quota. `act` gets the number of the call of `check`.
  Status Count(const std::function<Status(int)>& act) {
    int calls = 0;
    return quotas().Set(dir, {.bytes = 0, .files = 1000}, [&] { return act(calls++); }).status();
  }
  InodeNumber Sub(int i) { return RequireInode(*fs, fmt::format("dir/{}", i)); }
  Status Move(const std::string& from, const std::string& to, const std::string& name) {
    return fs->Rename(from.empty() ? dir : RequireInode(*fs, from), name,
                      to.empty() ? dir : RequireInode(*fs, to), name + "-moved",
                      RenameMode::kReplace);
  }
  // The usage is what a walk finds, also for fsck.
  void CheckUsage() {
    std::set<InodeNumber> found;
    uint64_t bytes = 0;
    AddBelow(dir, found, bytes);
    CHECK(Of(dir).files == found.size());
    CHECK(Of(dir).bytes == bytes);
    for (const InodeNumber inode : found) CHECK(HasQuota(inode));
  }
};

TEST_CASE_METHOD(CountFixture, "files that are moved while they are counted are counted once") {
  // Directories are read in an order that the test does not know. So each directory is a source and
  // a target, and each of these moves leads from a counted one to another one in some call.
  const Status counted = Count([&](int call) {
    if (call >= 10) return Status::Ok();
    const std::string here = fmt::format("dir/{}", call);
    const std::string there = fmt::format("dir/{}", 9 - call);
    REQUIRE_OK(fs->Rename(RequireInode(*fs, here), "1", RequireInode(*fs, there),
                          "from-" + here.substr(4), RenameMode::kReplace));
    REQUIRE_OK(fs->Rename(RequireInode(*fs, here), "2", RequireInode(*fs, there), "3",
                          RenameMode::kExchange));
    const auto linked = fs->Link(RequireInode(*fs, here + "/4"), RequireInode(*fs, there),
                                 fmt::format("link{}", call));
    REQUIRE_OK(linked);
    fs->Forget(linked->inode, 1);
    REQUIRE_OK(fs->Unlink(RequireInode(*fs, here), "5"));
    REQUIRE_OK(TryWrite(RequireInode(*fs, here + "/6"), kKiB, RandomBytes(1, 3 * kKiB)));
    REQUIRE_OK(TryMake(RequireInode(*fs, there), fmt::format("new{}", call)));
    REQUIRE_OK(fs->entries().Clone({.source = RequireInode(*fs, here),
                                    .parent = RequireInode(*fs, there),
                                    .name = fmt::format("clone{}", call)}));
    return Status::Ok();
  });
  REQUIRE_OK(counted);
  CheckUsage();
  Recount(GENERATE(End::kClose, End::kCrash));
  CheckUsage();
}

TEST_CASE_METHOD(CountFixture, "directories that are moved while they are counted are counted") {
  const int at = GENERATE(range(0, 20));
  const Status counted = Count([&](int call) {
    if (call != at) return Status::Ok();
    for (int i = 0; i < 10; ++i)
      REQUIRE_OK(Move(fmt::format("dir/{}", i), fmt::format("dir/{}", 9 - i), "deep"));
    for (int i = 0; i < 5; ++i)
      REQUIRE_OK(Move("", fmt::format("dir/{}", 9 - i), std::to_string(i)));
    REQUIRE_OK(Move("dir/9", "", "0-moved"));
    return Status::Ok();
  });
  REQUIRE_OK(counted);
  CHECK(Of(dir).files == 130);
  CheckUsage();
  Recount(End::kCrash);
  CheckUsage();
}

TEST_CASE_METHOD(CountFixture, "while files are counted, names do not cross the border") {
  const int at = GENERATE(0, 1, 5, 11);
  const Status counted = Count([&](int call) {
    if (call != at) return Status::Ok();
    for (int i = 0; i < 10; ++i) {
      const std::string sub = fmt::format("dir/{}", i);
      REQUIRE_CODE(Move(sub, "outside", "1"), kOtherQuota);
      REQUIRE_CODE(Move("outside", sub, "sub"), kOtherQuota);
      REQUIRE_CODE(fs->Rename(dir, std::to_string(i), outside, "sub", RenameMode::kExchange),
                   kOtherQuota);
    }
    REQUIRE_OK(fs->Rename(kRootInode, "dir", outside, "dir", RenameMode::kReplace));
    REQUIRE_OK(fs->Rename(outside, "dir", kRootInode, "dir", RenameMode::kReplace));
    return Status::Ok();
  });
  REQUIRE_OK(counted);
  CheckUsage();
  Recount(End::kClose);
}

TEST_CASE_METHOD(CountFixture, "an interrupted count leaves no quota") {
  const int at = GENERATE(0, 3, 11);
  const Status counted = Count([&](int call) {
    return call == at ? Status(StatusCode::kAborted, "was interrupted") : Status::Ok();
  });
  REQUIRE_CODE(counted, kAborted);
  CHECK(quotas().List()->empty());
  CHECK_FALSE(HasQuota(Sub(1)));
  REQUIRE_OK(fs->Rename(dir, "1", outside, "moved", RenameMode::kReplace));
  REQUIRE_OK(fs->SyncAll());
  if (GENERATE(false, true)) Recount(End::kCrash);
  CHECK(quotas().List()->empty());
  Set(dir, 0, 1000);
  CHECK(Of(dir).files == 117);
  CheckUsage();
  Recount(End::kClose);
}

TEST_CASE_METHOD(QuotaFixture, "empty directories do not delay the interruption of a count") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  for (int i = 0; i < 100; ++i) MakeDir(*fs, dir, std::to_string(i));
  int calls = 0;
  const auto counted = quotas().Set(dir, {.files = 1000}, [&] {
    return ++calls == 50 ? Status(StatusCode::kAborted, "was interrupted") : Status::Ok();
  });
  REQUIRE_CODE(counted.status(), kAborted);
  CHECK(quotas().List()->empty());
}

TEST_CASE_METHOD(CountFixture, "renames that fail do not prolong a count") {
  int calls = 0;
  const Status counted = Count([&](int call) {
    calls = call;
    if (call > 1000) return Status(StatusCode::kAborted, "goes on without end");
    for (int i = 0; i < 10; ++i) {
      REQUIRE_CODE(fs->Rename(Sub(i), "deep", Sub(9 - i), "deep", RenameMode::kReplace), kNotEmpty);
    }
    return Status::Ok();
  });
  REQUIRE_OK(counted);
  CHECK(calls < 50);
  CheckUsage();
}

TEST_CASE_METHOD(CountFixture, "a count ends although damaged directories form a cycle") {
  const InodeNumber deep = RequireInode(*fs, "dir/0/deep");
  const CookieEntry loop{Sub(0), 0040000, "loop"};
  store.Close();
  {
    KvStoreOptions options;
    options.path = MetadataPath(store.path());
    options.ledger_path = LedgerPath(store.path());
    auto kv = OpenRocksDbStore(store.env(), options);
    REQUIRE_OK(kv);
    REQUIRE_OK((*kv)->Write({{DirectoryCookieKey(deep, 1000), loop.Encode()}}));
    REQUIRE_OK((*kv)->CloseCleanly());
  }
  fs = &store.Open();
  const Status counted = Count([&](int call) {
    return call < 1000 ? Status::Ok() : Status(StatusCode::kAborted, "goes on without end");
  });
  REQUIRE_OK(counted);
  CHECK(Of(dir).files == 130);
}

TEST_CASE_METHOD(CountFixture, "a snapshot that is made during a count has no quota") {
  const int at = GENERATE(0, 4, 11);
  const Status counted = Count(
      [&](int call) { return call == at ? fs->snapshots().Create("s").status() : Status::Ok(); });
  REQUIRE_OK(counted);
  CheckUsage();
  REQUIRE_OK(TryMake(dir, "later"));
  REQUIRE_OK(fs->snapshots().RollBack("s", "before", nullptr));
  CHECK(quotas().List()->empty());
  CHECK_FALSE(HasQuota(Sub(1)));
  Recount(GENERATE(End::kClose, End::kCrash));
  CHECK(quotas().List()->empty());
  REQUIRE_OK(fs->snapshots().RollBack("before", "again", nullptr));
  CHECK(quotas().List()->size() == 1);
  CheckUsage();
  Recount(End::kClose);
}

TEST_CASE_METHOD(CountFixture, "a quota that is being counted has no effect") {
  const Status counted = Count([&](int call) {
    if (call != 4) return Status::Ok();
    CHECK(quotas().List()->empty());
    CHECK_FALSE(HasQuota(dir));
    REQUIRE_CODE(quotas().Remove(dir), kNoAttribute);
    REQUIRE_CODE(quotas().Set(dir, {.files = 5}, {}).status(), kInUse);
    REQUIRE_CODE(quotas().Set(outside, {.files = 5}, {}).status(), kInUse);
    for (int i = 0; i < 1000; ++i) REQUIRE_OK(TryMake(dir, fmt::format("file{}", i)));
    return Status::Ok();
  });
  REQUIRE_OK(counted);
  REQUIRE_CODE(TryMake(dir, "one-more"), kQuotaExceeded);
  Set(outside, 0, 5);
  CheckUsage();
  Recount(End::kClose);
}

TEST_CASE_METHOD(CountFixture, "a rollback or the removal of the directory ends the count") {
  REQUIRE_OK(fs->snapshots().Create("s"));
  REQUIRE_CODE(Count([&](int call) {
                 if (call != 5) return Status::Ok();
                 return fs->snapshots().RollBack("s", "before", nullptr).status();
               }),
               kAborted);
  CHECK(quotas().List()->empty());
  const InodeNumber empty = MakeDir(*fs, kRootInode, "empty");
  const auto removed =
      quotas().Set(empty, {.files = 5}, [&] { return fs->RemoveDirectory(kRootInode, "empty"); });
  CHECK_FALSE(removed.ok());
  CHECK(quotas().List()->empty());
  Set(dir, 0, 1000);
  CheckUsage();
  Recount(End::kCrash);
}

// Doubles the file until it has `bytes`.
void Double(FileSystem& fs, InodeNumber file, uint64_t bytes) {
  for (uint64_t size = 64 * kKiB; size < bytes; size *= 2)
    REQUIRE_OK(fs.CopyRange(file, 0, file, size, size));
}

TEST_CASE_METHOD(QuotaFixture, "copies of more than 8 EiB are no negative usage") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  const InodeNumber source = MakeDir(*fs, kRootInode, "source");
  const InodeNumber file = File(source, "file", 64 * kKiB);
  Double(*fs, file, kHuge);
  const InodeNumber other = MakeFile(*fs, source, "other");
  REQUIRE_OK(fs->CopyRange(file, 0, other, 0, kHuge));
  SECTION("of clones") {
    Set(dir, 100 * kKiB, 0);
    REQUIRE_CODE(fs->entries().Clone({.source = source, .parent = dir, .name = "clone"}).status(),
                 kQuotaExceeded);
    CHECK(Of(dir).bytes == 0);
  }
  SECTION("of copied ranges") {
    Set(dir, 0, 100);
    const InodeNumber copy = MakeFile(*fs, dir, "copy");
    REQUIRE_OK(fs->CopyRange(file, 0, copy, 0, kHuge));
    const InodeNumber more = MakeFile(*fs, dir, "more");
    REQUIRE_CODE(fs->CopyRange(file, 0, more, 0, kHuge).status(), kQuotaExceeded);
    CHECK(Of(dir).bytes == kHuge);
  }
  SECTION("of files that exist") {
    REQUIRE_CODE(quotas().Set(source, {.files = 10}, {}).status(), kInvalidArgument);
    CHECK(quotas().List()->empty());
    Set(dir, 0, 100);
  }
}

TEST_CASE_METHOD(QuotaFixture, "zeros that become holes do not let a write exceed the limit") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  const InodeNumber file = MakeFile(*fs, dir, "file");
  Set(dir, 101 * kKiB, 0);
  REQUIRE_OK(fs->OpenFile(file, false));
  REQUIRE_OK(fs->Write(file, 0, Bytes(100 * kKiB)));
  CHECK(Of(dir).bytes == 100 * kKiB);
  // 2 KiB too much. Only the fold that makes room finds out that the old data are zeros.
  REQUIRE_CODE(fs->Write(file, 0, RandomBytes(1, 103 * kKiB)), kQuotaExceeded);
  REQUIRE_OK(fs->Write(file, 0, RandomBytes(1, 101 * kKiB)));
  fs->ReleaseFile(file);
  CHECK(Of(dir).bytes == 101 * kKiB);
  Recount(End::kClose);
}

}  // namespace
}  // namespace siltfs::testing
