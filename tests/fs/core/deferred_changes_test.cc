// Content that is deferred until its commit. Crashes show that the content belongs to this commit
// and no other.
#include <fmt/format.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

Bytes Text(std::string_view text) { return {AsBytes(text).begin(), AsBytes(text).end()}; }

// A file that stays open, like one being written.
InodeNumber OpenNew(FileSystem& fs, std::string_view name) {
  auto created = fs.CreateFile(kRootInode, name, 0644, kCaller);
  REQUIRE_OK(created);
  return created->inode;
}

void WriteText(FileSystem& fs, InodeNumber inode, uint64_t offset, std::string_view text) {
  REQUIRE_OK(fs.Write(inode, offset, AsBytes(text)));
}

AttributeChange NewTime(int64_t time) {
  AttributeChange change;
  change.mtime = time;
  return change;
}

Bytes ContentOf(FileSystem& fs, std::string_view name) {
  auto inode = Resolve(fs, name);
  REQUIRE_OK(inode);
  auto content = ReadFile(fs, *inode);
  REQUIRE_OK(content);
  return *content;
}

}  // namespace

TEST_CASE("written data is in the next commit, whichever call requests this commit") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = OpenNew(fs, "file");
  WriteText(fs, file, 0, "accepted");
  const InodeNumber other = MakeFile(fs, kRootInode, "other");
  REQUIRE_OK(fs.Fsync(other));
  store.Crash();
  REQUIRE(ContentOf(store.Open(), "file") == Text("accepted"));
}

TEST_CASE("data written after a commit is not in it") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = OpenNew(fs, "file");
  WriteText(fs, file, 0, "before");
  REQUIRE_OK(fs.SyncAll());
  WriteText(fs, file, 0, "AFTER!");
  REQUIRE(ContentOf(fs, "file") == Text("AFTER!"));
  store.Crash();
  REQUIRE(ContentOf(store.Open(), "file") == Text("before"));
}

TEST_CASE("fsync makes deferred changes durable, attributes too") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = OpenNew(fs, "file");
  WriteText(fs, file, 0, "content");
  AttributeChange change;
  change.mode = 0600;
  change.mtime = 12'345;
  REQUIRE_OK(fs.SetAttributes(file, change));
  REQUIRE_OK(fs.Fsync(file));
  store.Crash();
  FileSystem& again = store.Open();
  REQUIRE(ContentOf(again, "file") == Text("content"));
  const auto attributes = again.GetAttributes(*Resolve(again, "file"));
  REQUIRE((attributes->mode & 07777) == 0600);
  REQUIRE(attributes->mtime == 12'345);
}

TEST_CASE("a rename after a write never survives without the write") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = OpenNew(fs, "new");
  WriteText(fs, file, 0, "whole");
  REQUIRE_OK(fs.Rename(kRootInode, "new", kRootInode, "name", RenameMode::kReplace));
  REQUIRE_OK(fs.SyncAll());
  store.Crash();
  REQUIRE(ContentOf(store.Open(), "name") == Text("whole"));
}

TEST_CASE("if two files are written in turns, a crash never leaves the second one newer") {
  // A thread commits all the time. So in each round the last commit before the crash comes after a
  // different write.
  for (int round = 0; round < 30; ++round) {
    StoreFixture store;
    FileSystem& fs = store.Open();
    const InodeNumber first = OpenNew(fs, "first");
    const InodeNumber second = OpenNew(fs, "second");
    REQUIRE_OK(fs.SyncAll());
    std::atomic<bool> stop = false;
    std::thread syncer([&] {
      while (!stop) fs.SyncAll().IgnoreError("the rounds show what was synced");
    });
    for (int i = 0; i < 40 + round; ++i) {
      const std::string number = fmt::format("{:08}", i);
      WriteText(fs, first, 0, number);
      if (i % 7 == 3) REQUIRE_OK(fs.SetAttributes(first, NewTime(i)));
      WriteText(fs, second, 0, number);
    }
    stop = true;
    syncer.join();
    WriteText(fs, first, 0, "99999999");
    store.Crash();
    FileSystem& again = store.Open();
    const Bytes a = ContentOf(again, "first");
    const Bytes b = ContentOf(again, "second");
    INFO("round " << round << ": " << AsText(a) << ", " << AsText(b));
    REQUIRE(AsText(a) >= AsText(b));
    REQUIRE(AsText(a) != "99999999");
  }
}

TEST_CASE("statistics include deferred changes") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = OpenNew(fs, "file");
  WriteText(fs, file, 0, "12345678");
  REQUIRE(store.Stats().logical_bytes == 8);
}

TEST_CASE("large overwrites are folded before they fill commits with raw bytes") {
  constexpr uint64_t kMiB = 1U << 20;
  constexpr uint64_t kWritten = 16;  // MiB: five groups of raw bytes
  const uint64_t piece = GENERATE(uint64_t{4096}, uint64_t{1U << 20});
  StoreFixture store;
  FileSystem& fs = store.Open();
  Bytes content = RandomBytes(1, 64 * kMiB);
  const InodeNumber file = WriteLargeFile(fs, "file", content);
  REQUIRE_OK(fs.OpenFile(file, false));
  REQUIRE_OK(fs.SyncAll());
  const uint64_t before = store.Stats().last_commit;
  const Bytes other = RandomBytes(2, kWritten * kMiB);
  for (uint64_t at = 0; at < other.size(); at += piece) {
    const uint64_t offset = at * 4 + piece / 2;  // not next to another write
    REQUIRE_OK(fs.Write(file, offset, ByteView(other).subspan(at, piece)));
    std::copy_n(other.begin() + static_cast<ptrdiff_t>(at), piece,
                content.begin() + static_cast<ptrdiff_t>(offset));
  }
  REQUIRE_OK(fs.SyncAll());
  CHECK(store.Stats().last_commit - before <= 3);
  store.Crash();
  // The comparison is outside CHECK, so that a failure does not print the bytes.
  const bool same = ContentOf(store.Open(), "file") == content;
  CHECK(same);
}

TEST_CASE("raw bytes of an earlier commit wait for more writes before they are folded") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = WriteLargeFile(fs, "file", RandomBytes(1, 16U << 20));
  REQUIRE_OK(fs.OpenFile(file, false));
  REQUIRE_OK(fs.SyncAll());
  const uint64_t chunks = store.Stats().chunks_unique;
  const Bytes page = RandomBytes(2, 4096);
  for (uint64_t i = 0; i < 512; ++i) {  // 2 MiB
    REQUIRE_OK(fs.Write(file, i * 32768, page));
    if (i % 64 == 63) REQUIRE_OK(fs.SyncAll());
  }
  CHECK(store.Stats().chunks_unique == chunks);
}

TEST_CASE("dirty files are not forgotten, however many there are") {
  constexpr int kFiles = 5000;  // more files than are kept loaded
  StoreFixture store;
  FileSystem& fs = store.Open();
  for (int i = 0; i < kFiles; ++i) {
    const InodeNumber file = MakeFile(fs, kRootInode, fmt::format("{}", i));
    WriteText(fs, file, 0, fmt::format("content {}", i));
  }
  for (int i = 0; i < kFiles; i += 37) {
    REQUIRE(ContentOf(fs, fmt::format("{}", i)) == Text(fmt::format("content {}", i)));
  }
  store.Reopen();
  for (int i = 0; i < kFiles; i += 37) {
    REQUIRE(ContentOf(store.fs(), fmt::format("{}", i)) == Text(fmt::format("content {}", i)));
  }
}

TEST_CASE("a file with deferred changes can still be opened after the store has failed") {
  for (int round = 0; round < 20; ++round) {
    StoreFixture store;
    FileSystem& fs = store.Open();
    const InodeNumber file = MakeFile(fs, kRootInode, "file");
    REQUIRE_OK(fs.OpenFile(file, false));
    REQUIRE_OK(fs.SyncAll());
    store.env().Fail(FaultEnv::Call::kSync, "/meta/", StatusCode::kIoError);
    std::atomic<uint64_t> accepted = 0;
    std::thread writer([&] {
      while (fs.Write(file, accepted, AsBytes("x")).ok()) ++accepted;
    });
    while (accepted < 100) std::this_thread::yield();
    while (fs.SyncAll().ok()) std::this_thread::yield();
    writer.join();
    INFO("round " << round);
    REQUIRE(fs.GetAttributes(file).ok());
    REQUIRE_OK(fs.OpenFile(file, false));
  }
}

TEST_CASE("readers of a file do not prevent syncs") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const Bytes data = RandomBytes(1, 4U << 20);
  const InodeNumber file = WriteLargeFile(fs, "file", data);
  const InodeNumber other = MakeFile(fs, kRootInode, "other");
  REQUIRE_OK(fs.SyncAll());
  std::atomic<bool> stop = false;
  std::vector<std::thread> readers;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      Bytes out(1U << 20);
      while (!stop) fs.Read(file, 0, out).status().IgnoreError("only to hold the lock");
    });
  }
  // This loop would not end if readers had priority.
  for (int i = 0; i < 20; ++i) {
    WriteText(fs, file, 0, "deferred");
    REQUIRE_OK(fs.Fsync(other));
    REQUIRE_OK(fs.SyncAll());
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

TEST_CASE("dirty overlays are saved before they are dropped from memory") {
  constexpr int kFiles = 10;
  // In a new file only a stream from offset 0 is cut while it is written. Other bytes wait as raw
  // bytes.
  constexpr uint64_t kOffset = 4096;
  StoreFixture store;
  FileSystem& fs = store.Open();
  for (int i = 0; i < kFiles; ++i) {
    const InodeNumber file = OpenNew(fs, fmt::format("{}", i));
    REQUIRE_OK(fs.Write(file, kOffset, RandomBytes(static_cast<uint64_t>(i), 3'000'000)));
  }
  for (int i = 0; i < 2 * kFiles; ++i) {
    if (i == kFiles) store.Reopen();
    const Bytes content = ContentOf(store.fs(), fmt::format("{}", i % kFiles));
    REQUIRE((Bytes(content.begin() + kOffset, content.end()) ==
             RandomBytes(static_cast<uint64_t>(i % kFiles), 3'000'000)));
  }
}

TEST_CASE("a failed change loses no change that was accepted before") {
  StoreFixture store;
  FileSystem& fs = store.Open();
  const InodeNumber file = OpenNew(fs, "file");
  const InodeNumber directory = MakeDir(fs, kRootInode, "directory");
  REQUIRE(directory != file);
  WriteText(fs, file, 0, "accepted");
  REQUIRE_CODE(fs.Rename(kRootInode, "file", kRootInode, "directory", RenameMode::kReplace),
               kIsADirectory);
  REQUIRE_CODE(fs.Write(file, UINT64_MAX - 3, AsBytes("12345678")), kFileTooLarge);
  AttributeChange too_large;
  too_large.size = UINT64_MAX;
  REQUIRE_CODE(fs.SetAttributes(file, too_large), kFileTooLarge);
  REQUIRE(ContentOf(fs, "file") == Text("accepted"));
  store.Reopen();
  REQUIRE(ContentOf(store.fs(), "file") == Text("accepted"));
}

}  // namespace siltfs::testing
