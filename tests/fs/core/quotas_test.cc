// Quotas: what counts, what is refused, and what happens to them in a crash, a rollback and a
// clone.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "fs/interface/entry_store.h"
#include "fs/interface/snapshots.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/quota_fixture.h"
#include "tests/fs/core/snapshot_streams.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kKiB = 1024;

TEST_CASE_METHOD(QuotaFixture, "a quota counts logical bytes and inodes of all types") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  const InodeNumber outside = MakeDir(*fs, kRootInode, "outside");
  Set(dir, 1000 * kKiB, 100);
  CHECK(Of(dir).files == 0);
  CHECK(Of(dir).path == "/dir/");
  const InodeNumber sub = MakeDir(*fs, dir, "sub");
  const InodeNumber file = File(sub, "file", 10 * kKiB);
  REQUIRE_OK(fs->MakeSymlink(sub, "symlink", "target", kCaller));
  REQUIRE_OK(fs->MakeNode(sub, "fifo", 0010644, 0, kCaller));
  REQUIRE_OK(fs->Link(file, dir, "link"));
  File(outside, "file", 20 * kKiB);
  CHECK(Of(file).bytes == 10 * kKiB);
  CHECK(Of(file).files == 4);
  CHECK_FALSE(HasQuota(outside));
  // Holes do not count: neither those that truncation makes nor those of zeros.
  AttributeChange longer;
  longer.size = 500 * kKiB;
  REQUIRE_OK(fs->SetAttributes(file, longer));
  CHECK(Of(file).bytes == 10 * kKiB);
  AttributeChange shorter;
  shorter.size = 3 * kKiB;
  REQUIRE_OK(fs->SetAttributes(file, shorter));
  CHECK(Of(file).bytes == 3 * kKiB);
  REQUIRE_OK(fs->Allocate(file, AllocateMode::kZero, 0, kKiB, /*keep_size=*/true));
  REQUIRE_OK(fs->OpenFile(file, false));
  fs->ReleaseFile(file);  // folds
  CHECK(Of(file).bytes == 2 * kKiB);
  Recount(End::kClose);
  CHECK(Of(file).bytes == 2 * kKiB);
  CHECK(Of(file).files == 4);
}

TEST_CASE_METHOD(QuotaFixture, "a deleted file counts until it is closed") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  Set(dir, 1000 * kKiB, 0);
  const InodeNumber file = File(dir, "file", 10 * kKiB);
  REQUIRE_OK(fs->OpenFile(file, false));
  REQUIRE_OK(fs->Unlink(dir, "file"));
  CHECK(Of(dir).bytes == 10 * kKiB);
  CHECK(Of(dir).files == 1);
  REQUIRE_OK(fs->Write(file, 10 * kKiB, RandomBytes(1, kKiB)));
  CHECK(Of(dir).bytes == 11 * kKiB);
  REQUIRE_OK(fs->SyncAll());
  SECTION("by the program") {
    fs->ReleaseFile(file);
    CHECK(Of(dir).bytes == 0);
    CHECK(Of(dir).files == 0);
  }
  Recount(End::kCrash);
  CHECK(Of(dir).bytes == 0);
  CHECK(Of(dir).files == 0);
  // The mount has removed the file.
  Recount(End::kClose);
}

TEST_CASE_METHOD(QuotaFixture, "a write fails exactly if it exceeds the limit") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  Set(dir, 100 * kKiB, 0);
  const InodeNumber file = File(dir, "file", 90 * kKiB);
  REQUIRE_CODE(TryWrite(file, 90 * kKiB, RandomBytes(1, 10 * kKiB + 1)), kQuotaExceeded);
  CHECK(Of(dir).bytes == 90 * kKiB);
  REQUIRE_OK(TryWrite(file, 90 * kKiB, RandomBytes(2, 10 * kKiB)));
  CHECK(Of(dir).bytes == 100 * kKiB);
  REQUIRE_CODE(TryWrite(file, 100 * kKiB, RandomBytes(3, 1)), kQuotaExceeded);
  // The file does not grow.
  REQUIRE_OK(TryWrite(file, 0, RandomBytes(4, 100 * kKiB)));
  REQUIRE_OK(TryWrite(file, 50 * kKiB, RandomBytes(5, 20 * kKiB)));
  CHECK(Of(dir).bytes == 100 * kKiB);
  // A hole that is filled counts.
  REQUIRE_OK(fs->Allocate(file, AllocateMode::kZero, 20 * kKiB, 10 * kKiB, true));
  REQUIRE_OK(fs->OpenFile(file, false));
  fs->ReleaseFile(file);
  CHECK(Of(dir).bytes == 90 * kKiB);
  REQUIRE_OK(TryWrite(file, 15 * kKiB, RandomBytes(6, 20 * kKiB)));
  CHECK(Of(dir).bytes == 100 * kKiB);
  REQUIRE_OK(fs->Unlink(dir, "file"));
  CHECK(Of(dir).bytes == 0);
  File(dir, "other", 100 * kKiB);
  Recount(End::kClose);
}

TEST_CASE_METHOD(QuotaFixture, "writes that metadata does not have yet count") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  Set(dir, 100 * kKiB, 0);
  const InodeNumber a = MakeFile(*fs, dir, "a");
  const InodeNumber b = MakeFile(*fs, dir, "b");
  for (const InodeNumber file : {a, b}) REQUIRE_OK(fs->OpenFile(file, false));
  REQUIRE_OK(fs->Write(a, 0, RandomBytes(1, 60 * kKiB)));
  CHECK(Of(dir).bytes == 60 * kKiB);
  REQUIRE_CODE(fs->Write(b, 0, RandomBytes(2, 50 * kKiB)), kQuotaExceeded);
  REQUIRE_OK(fs->Write(b, 0, RandomBytes(2, 40 * kKiB)));
  REQUIRE_OK(fs->SyncAll());
  CHECK(Of(dir).bytes == 100 * kKiB);
  SECTION("also after a crash") { Recount(End::kCrash); }
  SECTION("also after they were truncated and written again") {
    AttributeChange empty;
    empty.size = 0;
    REQUIRE_OK(fs->SetAttributes(a, empty));
    REQUIRE_OK(fs->Write(a, 0, RandomBytes(3, 30 * kKiB)));
    REQUIRE_OK(fs->Write(a, 0, RandomBytes(4, 60 * kKiB)));
    REQUIRE_CODE(fs->Write(a, 60 * kKiB, RandomBytes(3, 1)), kQuotaExceeded);
    for (const InodeNumber file : {a, b}) fs->ReleaseFile(file);
    Recount(End::kClose);
  }
  CHECK(Of(dir).bytes == 100 * kKiB);
}

TEST_CASE_METHOD(QuotaFixture, "inodes beyond the limit of files are refused") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  Set(dir, 0, 3);
  File(dir, "a", 10 * kKiB);
  MakeDir(*fs, dir, "b");
  REQUIRE_OK(TryMake(dir, "c"));
  REQUIRE_CODE(TryMake(dir, "d"), kQuotaExceeded);
  REQUIRE_CODE(fs->MakeDirectory(dir, "d", 0755, kCaller), kQuotaExceeded);
  REQUIRE_CODE(fs->MakeSymlink(dir, "d", "x", kCaller), kQuotaExceeded);
  REQUIRE_CODE(fs->MakeTemporaryFile(dir, 0600, kCaller), kQuotaExceeded);
  REQUIRE_CODE(TryMake(RequireInode(*fs, "dir/b"), "d"), kQuotaExceeded);
  REQUIRE_OK(fs->Link(RequireInode(*fs, "dir/a"), dir, "second name"));
  REQUIRE_OK(fs->Unlink(dir, "c"));
  REQUIRE_OK(TryMake(dir, "d"));
  Set(dir, 0, 1);  // below the usage
  REQUIRE_CODE(TryMake(dir, "e"), kQuotaExceeded);
  Set(dir, 0, 4);
  REQUIRE_OK(TryMake(dir, "e"));
  REQUIRE_OK(TryMake(kRootInode, "outside"));
  Recount(End::kClose);
  REQUIRE_CODE(TryMake(dir, "f"), kQuotaExceeded);
}

TEST_CASE_METHOD(QuotaFixture, "no name moves from one quota to another") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  const InodeNumber other = MakeDir(*fs, kRootInode, "other");
  const InodeNumber sub = MakeDir(*fs, dir, "sub");
  Set(dir, 0, 10);
  Set(other, 0, 10);
  const InodeNumber file = File(dir, "file", kKiB);
  File(kRootInode, "free", kKiB);
  const auto rename = [&](InodeNumber from, std::string_view name, InodeNumber to,
                          RenameMode mode = RenameMode::kReplace) {
    return fs->Rename(from, name, to, mode == RenameMode::kExchange ? "free" : "new", mode);
  };
  REQUIRE_CODE(rename(dir, "file", kRootInode), kOtherQuota);
  REQUIRE_CODE(rename(kRootInode, "free", dir), kOtherQuota);
  REQUIRE_CODE(rename(dir, "file", other), kOtherQuota);
  REQUIRE_CODE(rename(dir, "sub", other), kOtherQuota);
  REQUIRE_CODE(rename(dir, "file", kRootInode, RenameMode::kExchange), kOtherQuota);
  REQUIRE_CODE(fs->Link(file, kRootInode, "new"), kOtherQuota);
  REQUIRE_CODE(fs->Link(file, other, "new"), kOtherQuota);
  REQUIRE_CODE(fs->Link(RequireInode(*fs, "free"), dir, "new"), kOtherQuota);
  REQUIRE_CODE(rename(kRootInode, "other", sub), kOtherQuota);
  // Within the quota, and the directory itself.
  REQUIRE_OK(rename(dir, "file", sub));
  REQUIRE_OK(fs->Link(file, dir, "file"));
  const InodeNumber place = MakeDir(*fs, kRootInode, "place");
  REQUIRE_OK(rename(kRootInode, "dir", place));
  REQUIRE_OK(fs->SyncAll());
  CHECK(Of(dir).path == "/place/new/");
  CHECK(Of(file).files == 2);
  Recount(End::kClose);
}

TEST_CASE_METHOD(QuotaFixture, "a quota of a full directory begins with what it holds") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  const InodeNumber sub = MakeDir(*fs, dir, "sub");
  const InodeNumber file = File(sub, "file", 100 * kKiB);
  REQUIRE_OK(fs->Link(file, dir, "link"));
  REQUIRE_OK(fs->Link(file, kRootInode, "outside"));
  for (int i = 0; i < 300; ++i) File(sub, fmt::format("{}", i), i % 3 == 0 ? kKiB : 0);
  const InodeNumber open = MakeFile(*fs, dir, "open");
  REQUIRE_OK(fs->OpenFile(open, false));
  REQUIRE_OK(fs->Write(open, 0, RandomBytes(1, 7 * kKiB)));
  uint64_t checks = 0;
  REQUIRE_CODE(
      quotas().Set(dir, {.bytes = 1}, [&] { return Status(StatusCode::kInterrupted, ""); }),
      kInterrupted);
  CHECK_FALSE(HasQuota(dir));
  REQUIRE_OK(fs->Unlink(sub, "1"));
  REQUIRE_OK(quotas().Set(dir, {.bytes = 10 * kKiB}, [&] {
    ++checks;
    return Status::Ok();
  }));
  CHECK(checks > 0);
  CHECK(Of(file).bytes == 207 * kKiB);
  CHECK(Of(file).files == 302);
  REQUIRE_CODE(fs->Write(open, 7 * kKiB, RandomBytes(1, 1)), kQuotaExceeded);
  REQUIRE_OK(fs->Write(open, 0, RandomBytes(2, 7 * kKiB)));
  fs->ReleaseFile(open);
  CHECK(Of(file).bytes == 207 * kKiB);
  Recount(GENERATE(End::kClose, End::kCrash));
  CHECK(Of(file).files == 302);
}

TEST_CASE_METHOD(QuotaFixture, "quotas are not nested") {
  const InodeNumber a = MakeDir(*fs, kRootInode, "a");
  const InodeNumber b = MakeDir(*fs, a, "b");
  const InodeNumber c = MakeDir(*fs, b, "c");
  Set(b, 0, 5);
  for (const InodeNumber inode : {a, c, kRootInode}) {
    const auto set = quotas().Set(inode, {.files = 5}, {});
    REQUIRE_CODE(set, kInvalidArgument);
    CHECK(set.status().cause().find("\"/a/b/\" has a quota") != std::string_view::npos);
  }
  REQUIRE_CODE(quotas().Set(File(a, "file", 0), {.files = 5}, {}), kNotADirectory);
  REQUIRE_OK(quotas().Remove(b));
  REQUIRE_CODE(quotas().Remove(b), kNoAttribute);
  Set(kRootInode, 0, 5);
  CHECK(Of(c).files == 4);
  REQUIRE_OK(TryMake(c, "file"));
  REQUIRE_CODE(TryMake(c, "more"), kQuotaExceeded);
  REQUIRE_OK(fs->Rename(a, "file", c, "renamed", RenameMode::kReplace));
  Recount(End::kClose);
}

TEST_CASE_METHOD(QuotaFixture, "a removed quota limits nothing, and another one counts again") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  Set(dir, 0, 1);
  const InodeNumber file = File(dir, "file", kKiB);
  REQUIRE_OK(quotas().Remove(dir));
  CHECK_FALSE(HasQuota(file));
  REQUIRE_OK(TryMake(dir, "more"));
  REQUIRE_OK(fs->Link(file, kRootInode, "outside"));
  REQUIRE_OK(TryWrite(file, kKiB, RandomBytes(1, kKiB)));
  REQUIRE_OK(fs->SyncAll());
  Recount(End::kCrash);
  Set(dir, 0, 2);
  CHECK(Of(dir).bytes == 2 * kKiB);
  CHECK(Of(dir).files == 2);
  Recount(End::kClose);
  CHECK(quotas().List()->size() == 1);
}

TEST_CASE_METHOD(QuotaFixture, "a quota ends with its directory") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  Set(dir, 10 * kKiB, 10);
  const InodeNumber file = File(dir, "file", kKiB);
  REQUIRE_OK(fs->OpenFile(file, false));
  REQUIRE_OK(fs->Unlink(dir, "file"));
  SECTION("removed") { REQUIRE_OK(fs->RemoveDirectory(kRootInode, "dir")); }
  SECTION("replaced") {
    MakeDir(*fs, kRootInode, "new");
    REQUIRE_OK(fs->Rename(kRootInode, "new", kRootInode, "dir", RenameMode::kReplace));
  }
  CHECK(quotas().List()->empty());
  REQUIRE_OK(fs->Write(file, 0, RandomBytes(1, 100 * kKiB)));
  REQUIRE_OK(fs->SyncAll());
  Recount(End::kCrash);
  CHECK(quotas().List()->empty());
}

TEST_CASE_METHOD(QuotaFixture, "the space below a quota is what the quota leaves") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  Set(dir, 1000 * kKiB, 10);
  const InodeNumber file = File(dir, "file", 100 * kKiB);
  const auto space = fs->GetSpaceOf(file);
  REQUIRE_OK(space);
  CHECK(space->total_bytes == 1000 * kKiB);
  CHECK(space->free_bytes == 900 * kKiB);
  CHECK(space->available_bytes == 900 * kKiB);
  CHECK(space->inodes == 1);
  CHECK(space->inodes_left == 9);
  const auto outside = fs->GetSpaceOf(kRootInode);
  REQUIRE_OK(outside);
  CHECK(outside->total_bytes == fs->GetSpace()->total_bytes);
  CHECK_FALSE(outside->inodes_left);
  Set(dir, 10 * kKiB, 0);
  CHECK(fs->GetSpaceOf(dir)->free_bytes == 0);
  CHECK_FALSE(fs->GetSpaceOf(dir)->inodes_left);
}

TEST_CASE_METHOD(QuotaFixture, "programs bypass the kernel's cache when little is left") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  Set(dir, 0, 10);
  CHECK_FALSE(fs->NearlyFullFor(dir));
  Set(dir, uint64_t{4} << 30, 0);
  CHECK_FALSE(fs->NearlyFullFor(dir));
  Set(dir, uint64_t{64} << 20, 0);
  CHECK_FALSE(fs->NearlyFullFor(dir));
  File(dir, "file", 1);
  CHECK(fs->NearlyFullFor(dir));
  CHECK_FALSE(fs->NearlyFullFor(kRootInode));
}

TEST_CASE_METHOD(QuotaFixture, "copied and allocated ranges count") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  const InodeNumber source = File(kRootInode, "source", 400 * kKiB);
  REQUIRE_OK(fs->Allocate(source, AllocateMode::kZero, 100 * kKiB, 200 * kKiB, true));
  REQUIRE_OK(fs->OpenFile(source, false));
  fs->ReleaseFile(source);
  Set(dir, 250 * kKiB, 0);
  const InodeNumber target = MakeFile(*fs, dir, "target");
  REQUIRE_OK(fs->CopyRange(source, 0, target, 0, 400 * kKiB));
  CHECK(Of(dir).bytes == 200 * kKiB);
  REQUIRE_CODE(fs->CopyRange(source, 0, target, 400 * kKiB, 51 * kKiB), kQuotaExceeded);
  REQUIRE_OK(fs->CopyRange(source, 50 * kKiB, target, 0, 50 * kKiB));
  REQUIRE_OK(fs->CopyRange(source, 0, target, 400 * kKiB, 50 * kKiB));
  CHECK(Of(dir).bytes == 250 * kKiB);
  REQUIRE_CODE(fs->Allocate(target, AllocateMode::kReserve, 0, 500 * kKiB, false), kQuotaExceeded);
  REQUIRE_OK(fs->Allocate(target, AllocateMode::kReserve, 0, 400 * kKiB, false));
  REQUIRE_OK(fs->Unlink(kRootInode, "source"));
  Recount(GENERATE(End::kClose, End::kCrash));
}

EntryImage ImageOf(InodeNumber parent, std::string_view name, std::span<const ExtentImage> extents,
                   uint64_t size) {
  return {.parent = parent,
          .name = name,
          .mode = 0100644,
          .size = size,
          .extents = extents,
          .source = SourceFacts{.inode = 5, .ctime = 6, .size = size, .mtime = 0}};
}

TEST_CASE_METHOD(QuotaFixture, "imported entries count") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  Set(dir, 100 * kKiB, 3);
  const Bytes data = RandomBytes(1, 60 * kKiB);
  const std::vector<ExtentImage> extents = {{.offset = 0, .bytes = data}};
  const auto put = [&](InodeNumber parent, std::string_view name) {
    return fs->entries().Put(std::vector{ImageOf(parent, name, extents, data.size())})[0].status();
  };
  REQUIRE_OK(put(dir, "a"));
  CHECK(Of(dir).bytes == 60 * kKiB);
  CHECK(Of(dir).files == 1);
  REQUIRE_CODE(put(dir, "b"), kQuotaExceeded);
  REQUIRE_OK(put(kRootInode, "b"));
  const auto offer = [&](InodeNumber parent, std::string_view name, InodeNumber reference) {
    return fs->entries()
        .Offer(ImageOf(parent, name, {}, data.size()), reference, /*probably_new=*/true)
        .status();
  };
  REQUIRE_CODE(offer(dir, "b", kRootInode), kQuotaExceeded);
  Set(dir, 200 * kKiB, 3);
  REQUIRE_OK(offer(dir, "b", kRootInode));
  CHECK(Of(dir).bytes == 120 * kKiB);
  // A temporary file that was made elsewhere.
  const auto temporary = fs->MakeTemporaryFile(kRootInode, 0600, kCaller);
  REQUIRE_OK(temporary);
  REQUIRE_OK(fs->Write(temporary->inode, 0, data));
  REQUIRE_OK(fs->entries().Place(temporary->inode, ImageOf(dir, "c", {}, data.size())));
  fs->ReleaseFile(temporary->inode);
  CHECK(Of(dir).bytes == 180 * kKiB);
  CHECK(Of(dir).files == 3);
  REQUIRE_CODE(put(dir, "d"), kQuotaExceeded);
  REQUIRE_CODE(fs->entries().Link(RequireInode(*fs, "b"), dir, "link"), kOtherQuota);
  REQUIRE_OK(fs->entries().Link(RequireInode(*fs, "dir/b"), dir, "link"));
  Recount(GENERATE(End::kClose, End::kCrash));
}

TEST_CASE_METHOD(QuotaFixture, "a clone counts where it is made") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  const InodeNumber sub = MakeDir(*fs, dir, "sub");
  File(sub, "file", 50 * kKiB);
  const InodeNumber other = MakeDir(*fs, kRootInode, "other");
  Set(dir, 120 * kKiB, 0);
  Set(other, 0, 1);
  const auto clone = [&](InodeNumber source, InodeNumber parent, std::string_view name) {
    return fs->entries().Clone({.source = source, .parent = parent, .name = name}).status();
  };
  REQUIRE_OK(clone(sub, dir, "within"));
  CHECK(Of(dir).bytes == 100 * kKiB);
  CHECK(Of(dir).files == 4);
  REQUIRE_CODE(clone(sub, dir, "too much"), kQuotaExceeded);
  REQUIRE_CODE(clone(sub, other, "too many"), kQuotaExceeded);
  REQUIRE_OK(clone(dir, kRootInode, "free"));
  CHECK_FALSE(HasQuota(RequireInode(*fs, "free")));
  CHECK_FALSE(HasQuota(RequireInode(*fs, "free/sub/file")));
  REQUIRE_OK(TryWrite(RequireInode(*fs, "free/sub/file"), 0, RandomBytes(1, 300 * kKiB)));
  REQUIRE_OK(fs->SyncAll());
  Recount(GENERATE(End::kClose, End::kCrash));
  CHECK(Of(dir).bytes == 100 * kKiB);
  CHECK(Of(other).files == 0);
}

TEST_CASE_METHOD(QuotaFixture, "a rollback brings quotas, limits and usage back") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  const InodeNumber late = MakeDir(*fs, kRootInode, "late");
  Set(dir, 100 * kKiB, 10);
  const InodeNumber file = File(dir, "file", 40 * kKiB);
  REQUIRE_OK(fs->snapshots().Create("s"));
  File(dir, "new", 30 * kKiB);
  REQUIRE_OK(TryWrite(file, 0, RandomBytes(1, 45 * kKiB)));
  Set(dir, 200 * kKiB, 20);
  Set(late, 0, 1);
  REQUIRE_OK(TryMake(late, "file"));
  SECTION("of a quota that was removed") { REQUIRE_OK(quotas().Remove(dir)); }
  SECTION("of a quota that has other limits") {}
  if (GENERATE(false, true)) Recount(End::kClose);
  REQUIRE_OK(fs->snapshots().RollBack("s", "before", nullptr));
  CHECK(quotas().List()->size() == 1);
  CHECK(Of(dir).bytes_limit == 100 * kKiB);
  CHECK(Of(dir).bytes == 40 * kKiB);
  CHECK(Of(dir).files == 1);
  CHECK_FALSE(HasQuota(late));
  REQUIRE_CODE(TryWrite(RequireInode(*fs, "dir/file"), 40 * kKiB, RandomBytes(1, 61 * kKiB)),
               kQuotaExceeded);
  REQUIRE_OK(TryMake(late, "file"));
  REQUIRE_OK(TryMake(late, "more"));
  Recount(GENERATE(End::kClose, End::kCrash));
  CHECK(Of(dir).bytes == 40 * kKiB);
  REQUIRE_OK(fs->snapshots().RollBack("before", "after", nullptr));
  CHECK(quotas().List()->size() >= 1);
  CHECK(Of(late).files == 1);
  Recount(End::kClose);
}

TEST_CASE_METHOD(QuotaFixture, "a snapshot is sent without quotas") {
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  Set(dir, 100 * kKiB, 10);
  const InodeNumber file = File(dir, "file", 10 * kKiB);
  REQUIRE_OK(fs->snapshots().Create("one"));
  REQUIRE_OK(TryWrite(file, 0, RandomBytes(1, 20 * kKiB)));
  REQUIRE_OK(fs->snapshots().Create("two"));
  StoreFixture target;
  FileSystem& to = target.Open();
  REQUIRE_OK(Receive(to, Send(*fs, {.snapshot = "one"}), "one"));
  REQUIRE_OK(Receive(to, Send(*fs, {.snapshot = "two", .base = "one"}), "two"));
  CHECK(to.quotas()->List()->empty());
  const auto root = to.Lookup(kSnapshotDirectory, "two");
  REQUIRE_OK(root);
  const InodeNumber clone_parent = MakeDir(to, kRootInode, "clones");
  REQUIRE_OK(to.entries().Clone({.source = root->inode, .parent = clone_parent, .name = "two"}));
  target.Close();
  CheckOptions options;
  options.store = target.path();
  const auto checked = CheckStore(target.env(), options);
  REQUIRE_OK(checked);
  CHECK(checked->findings == 0);
  const auto superblock = ReadSuperblock(target.env(), target.path(), StoreAccess::kReadOnly);
  REQUIRE_OK(superblock);
  CHECK((superblock->superblock.incompat_features & kIncompatQuotas) == 0);
  Recount(End::kClose);
}

TEST_CASE_METHOD(QuotaFixture, "only a store with quotas needs a version that knows them") {
  const auto has_feature = [&] {
    const auto superblock = ReadSuperblock(store.env(), store.path(), StoreAccess::kReadOnly);
    REQUIRE_OK(superblock);
    return (superblock->superblock.incompat_features & kIncompatQuotas) != 0;
  };
  const InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  File(dir, "file", kKiB);
  Recount(End::kClose);
  CHECK_FALSE(has_feature());
  REQUIRE_CODE(quotas().Set(RequireInode(*fs, "dir/file"), {.files = 1}, {}), kNotADirectory);
  CHECK_FALSE(has_feature());
  Set(dir, 0, 5);
  CHECK(has_feature());
  Recount(End::kClose);
  CHECK(has_feature());
  store.Close();
  FileSystem& read_only = store.Open(/*read_only=*/true);
  CHECK(read_only.quotas()->List()->size() == 1);
  REQUIRE_CODE(read_only.quotas()->Remove(dir), kReadOnly);
  REQUIRE_CODE(read_only.quotas()->Set(dir, {.files = 5}, {}), kReadOnly);
}

}  // namespace
}  // namespace siltfs::testing
