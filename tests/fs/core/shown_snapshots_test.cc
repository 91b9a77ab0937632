// File systems that show one snapshot beside the live files.
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "fs/interface/content_source.h"
#include "fs/interface/snapshots.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct Fixture {
  StoreFixture store;
  FileSystem* fs = &store.Open();

  void Write(std::string_view name, std::string_view text) { WriteFile(*fs, name, AsBytes(text)); }
  std::unique_ptr<FileSystem> Show(std::string_view name) {
    auto shown = fs->snapshots().Show(name);
    REQUIRE_OK(shown);
    return *std::move(shown);
  }
};

std::string Text(FileSystem& fs, std::string_view path) {
  const auto bytes = ReadFile(fs, RequireInode(fs, path));
  REQUIRE_OK(bytes);
  return std::string(AsText(*bytes));
}

TEST_CASE("a shown snapshot has the names and inode numbers of a store that is opened with it") {
  Fixture f;
  const InodeNumber directory = MakeDir(*f.fs, kRootInode, "d");
  f.Write("file", "old");
  const InodeNumber file = RequireInode(*f.fs, "file");
  REQUIRE_OK(f.fs->snapshots().Create("s"));
  f.Write("file", "new");
  f.Write("added", "new");
  {
    const auto shown = f.Show("s");
    CHECK(ListNames(*shown, kRootInode) == std::vector<std::string>{"d", "file"});
    CHECK(RequireInode(*shown, "file") == file);
    CHECK(RequireInode(*shown, "d") == directory);
    CHECK(shown->GetAttributes(kRootInode)->inode == kRootInode);
    CHECK(shown->Lookup(kRootInode, "..")->inode == kRootInode);
    CHECK(Text(*shown, "file") == "old");
    CHECK(Text(*f.fs, "file") == "new");
    REQUIRE_CODE(shown->Lookup(kRootInode, kSnapshotDirectoryName), kNotFound);
    REQUIRE_CODE(shown->Write(file, 0, AsBytes("x")), kReadOnly);
    REQUIRE_CODE(shown->CheckOpenForWriting(file), kReadOnly);
    REQUIRE_CODE(shown->Unlink(kRootInode, "file"), kReadOnly);
    REQUIRE_OK(shown->SyncAll());
    REQUIRE_OK(shown->Close());
  }
  // Neither the end of the shown snapshot nor its Close has closed the store.
  f.Write("later", "text");
  f.store.Close();
}

TEST_CASE("a snapshot cannot be removed while it is shown") {
  Fixture f;
  f.Write("file", "text");
  REQUIRE_OK(f.fs->snapshots().Create("s"));
  REQUIRE_OK(f.fs->snapshots().Create("other"));
  REQUIRE_CODE(f.fs->snapshots().Show("missing"), kNotFound);
  auto first = f.Show("s");
  auto second = f.Show("s");
  const auto remove = [&] { return f.fs->snapshots().Remove("s"); };
  CHECK(f.fs->snapshots().Find("s")->shown);
  CHECK_FALSE(f.fs->snapshots().Find("other")->shown);
  REQUIRE_CODE(remove(), kInUse);
  REQUIRE_OK(f.fs->snapshots().Remove("other"));
  // A refused removal leaves the snapshot usable everywhere.
  CHECK(Text(*first, "file") == "text");
  CHECK(Text(*f.fs, ".snapshots/s/file") == "text");
  first.reset();
  REQUIRE_CODE(remove(), kInUse);
  REQUIRE_OK(f.fs->snapshots().Rename("s", "renamed"));
  CHECK(Text(*second, "file") == "text");
  second.reset();
  REQUIRE_OK(f.fs->snapshots().Remove("renamed"));
  REQUIRE_CODE(f.fs->snapshots().Show("renamed"), kNotFound);
  REQUIRE_OK(f.fs->snapshots().AwaitRemovals());
}

// A mount that loses its connection never forgets its inodes.
TEST_CASE("what a shown snapshot has looked up does not outlive it") {
  Fixture f;
  f.Write("file", "text");
  REQUIRE_OK(f.fs->snapshots().Create("s"));
  {
    const auto shown = f.Show("s");
    const auto found = shown->Lookup(kRootInode, "file");
    REQUIRE_OK(found);
    REQUIRE_OK(shown->OpenFile(found->inode, false));
    // The lookup counts of the two places are separate.
    const auto in_directory = f.fs->Lookup(RequireInode(*f.fs, ".snapshots/s"), "file");
    REQUIRE_OK(in_directory);
    f.fs->Forget(in_directory->inode, 1);
    CHECK(Text(*shown, "file") == "text");
  }
  REQUIRE_OK(f.fs->snapshots().Remove("s"));
  REQUIRE_OK(f.fs->snapshots().AwaitRemovals());
  f.store.Close();
}

TEST_CASE("snapshots are shown and removed by several threads") {
  Fixture f;
  f.Write("file", "text");
  for (int round = 0; round < 50; ++round) {
    REQUIRE_OK(f.fs->snapshots().Create("s"));
    std::thread shower([&] {
      const auto shown = f.fs->snapshots().Show("s");
      if (!shown.ok()) {
        REQUIRE(
            (shown.status().Is(StatusCode::kNotFound) || shown.status().Is(StatusCode::kStale)));
        return;
      }
      REQUIRE(Text(**shown, "file") == "text");
    });
    const Status removed = f.fs->snapshots().Remove("s");
    shower.join();
    if (removed.Is(StatusCode::kInUse)) REQUIRE_OK(f.fs->snapshots().Remove("s"));
  }
  REQUIRE_OK(f.fs->snapshots().AwaitRemovals());
  f.store.Close();
}

}  // namespace
}  // namespace siltfs::testing
