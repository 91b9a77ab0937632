// Rename as in POSIX: which entries replace which, which renames are refused, and their results.
// Each test ends with a recount of the whole store.
#include <fmt/format.h>

#include <map>

#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// A store that is recounted at the end of the test.
class Tree : public StoreFixture {
 public:
  Tree() { Open(); }
  void Finish() {
    Close();
    const StoreCount count = RecountStore(path());
    REQUIRE(count.orphans == 0);
  }
  InodeNumber Dir(std::string_view path) { return Make(path, true); }
  InodeNumber File(std::string_view path) { return Make(path, false); }
  Status Move(std::string_view from, std::string_view to, RenameMode mode = RenameMode::kReplace) {
    auto [parent, name] = Split(from);
    auto [new_parent, new_name] = Split(to);
    return fs().Rename(parent, name, new_parent, new_name, mode);
  }
  InodeNumber At(std::string_view path) { return RequireInode(fs(), path); }
  bool Has(std::string_view path) { return Resolve(fs(), path).ok(); }
  Attributes Stat(InodeNumber inode) {
    auto attributes = fs().GetAttributes(inode);
    REQUIRE_OK(attributes);
    return *attributes;
  }
  // The inode of ".." in a directory.
  InodeNumber ParentOf(InodeNumber directory) {
    InodeNumber parent = 0;
    REQUIRE_OK(fs().ReadDirectory(directory, 0, [&parent](const DirectoryRecord& record) {
      if (record.name == "..") parent = record.inode;
      return true;
    }));
    return parent;
  }
  std::map<std::string, uint64_t> Cookies(InodeNumber directory) {
    std::map<std::string, uint64_t> cookies;
    REQUIRE_OK(fs().ReadDirectory(directory, 0, [&cookies](const DirectoryRecord& record) {
      cookies[std::string(record.name)] = record.cookie;
      return true;
    }));
    return cookies;
  }

 private:
  std::pair<InodeNumber, std::string_view> Split(std::string_view path) {
    const size_t slash = path.rfind('/');
    if (slash == path.npos) return {kRootInode, path};
    return {At(path.substr(0, slash)), path.substr(slash + 1)};
  }
  InodeNumber Make(std::string_view path, bool directory) {
    auto [parent, name] = Split(path);
    return directory ? MakeDir(fs(), parent, name) : MakeFile(fs(), parent, name);
  }
};

}  // namespace

TEST_CASE("a file moves to a free name") {
  Tree tree;
  const InodeNumber file = tree.File("a");
  const InodeNumber dir = tree.Dir("d");
  REQUIRE_OK(tree.Move("a", "b"));
  REQUIRE_FALSE(tree.Has("a"));
  REQUIRE(tree.At("b") == file);
  REQUIRE_OK(tree.Move("b", "d/c"));
  REQUIRE(tree.At("d/c") == file);
  REQUIRE(tree.Stat(dir).links == 2);
  REQUIRE_CODE(tree.Move("b", "x"), kNotFound);
  tree.Finish();
}

TEST_CASE("a file replaces a file, never a directory") {
  Tree tree;
  const InodeNumber file = tree.File("file");
  const InodeNumber old = tree.File("old");
  tree.Dir("empty");
  tree.Dir("full");
  tree.File("full/x");
  REQUIRE_CODE(tree.Move("file", "empty"), kIsADirectory);
  REQUIRE_CODE(tree.Move("file", "full"), kIsADirectory);
  REQUIRE_CODE(tree.Move("full/x", "full"), kIsADirectory);
  REQUIRE_OK(tree.Move("file", "old"));
  REQUIRE(tree.At("old") == file);
  REQUIRE_CODE(tree.fs().GetAttributes(old), kStale);
  tree.Finish();
}

TEST_CASE("a directory replaces an empty directory, nothing else") {
  Tree tree;
  const InodeNumber dir = tree.Dir("dir");
  tree.File("dir/x");
  tree.File("file");
  const InodeNumber empty = tree.Dir("empty");
  tree.Dir("full");
  tree.File("full/x");
  REQUIRE_CODE(tree.Move("dir", "file"), kNotADirectory);
  REQUIRE_CODE(tree.Move("dir", "full"), kNotEmpty);
  REQUIRE(tree.Stat(kRootInode).links == 5);
  REQUIRE_OK(tree.Move("dir", "empty"));
  REQUIRE(tree.At("empty") == dir);
  REQUIRE(tree.Has("empty/x"));
  REQUIRE_CODE(tree.fs().GetAttributes(empty), kStale);
  REQUIRE(tree.Stat(kRootInode).links == 4);
  tree.Finish();
}

TEST_CASE("a directory moves with all its entries, and its parent changes") {
  Tree tree;
  const InodeNumber a = tree.Dir("a");
  const InodeNumber b = tree.Dir("b");
  const InodeNumber c = tree.Dir("a/c");
  tree.Dir("a/c/deep");
  tree.File("a/c/deep/file");
  REQUIRE_OK(tree.Move("a/c", "b/moved"));
  REQUIRE(tree.Has("b/moved/deep/file"));
  REQUIRE(tree.ParentOf(c) == b);
  REQUIRE(tree.Stat(a).links == 2);
  REQUIRE(tree.Stat(b).links == 3);
  // The rename replaces an empty directory in the new parent, so the parent's count stays.
  tree.Dir("a/empty");
  REQUIRE_OK(tree.Move("b/moved", "a/empty"));
  REQUIRE(tree.Stat(a).links == 3);
  REQUIRE(tree.Stat(b).links == 2);
  REQUIRE(tree.ParentOf(c) == a);
  tree.Finish();
}

TEST_CASE("a directory does not move into itself or below") {
  Tree tree;
  tree.Dir("a");
  tree.Dir("a/b");
  tree.Dir("a/b/c");
  tree.Dir("other");
  REQUIRE_CODE(tree.Move("a", "a/x"), kInvalidArgument);
  REQUIRE_CODE(tree.Move("a", "a/b/x"), kInvalidArgument);
  REQUIRE_CODE(tree.Move("a", "a/b/c"), kInvalidArgument);  // "a/b/c" is empty
  REQUIRE_CODE(tree.Move("a/b/c", "a"), kNotEmpty);
  REQUIRE_CODE(tree.Move("a", "a/b/c", RenameMode::kExchange), kInvalidArgument);
  REQUIRE_CODE(tree.Move("a/b/c", "a", RenameMode::kExchange), kInvalidArgument);
  REQUIRE_OK(tree.Move("a/b/c", "other/c"));
  REQUIRE_OK(tree.Move("a", "other/c/a"));
  REQUIRE(tree.Has("other/c/a/b"));
  tree.Finish();
}

TEST_CASE("a rename to itself, or between two names of one file, does nothing") {
  Tree tree;
  const InodeNumber file = tree.File("a");
  const InodeNumber dir = tree.Dir("d");
  REQUIRE_OK(tree.fs().Link(file, dir, "b"));
  tree.fs().Forget(file, 1);
  REQUIRE_OK(tree.Move("a", "a"));
  REQUIRE_OK(tree.Move("d", "d"));
  REQUIRE_OK(tree.Move("a", "d/b"));
  REQUIRE_OK(tree.Move("a", "d/b", RenameMode::kExchange));
  REQUIRE_CODE(tree.Move("a", "d/b", RenameMode::kNoReplace), kAlreadyExists);
  REQUIRE_CODE(tree.Move("a", "a", RenameMode::kNoReplace), kAlreadyExists);
  REQUIRE(tree.Has("a"));
  REQUIRE(tree.Has("d/b"));
  REQUIRE(tree.Stat(file).links == 2);
  tree.Finish();
}

TEST_CASE("a replaced name removes one link of a file with several names") {
  Tree tree;
  const InodeNumber file = tree.File("a");
  REQUIRE_OK(tree.fs().Link(file, kRootInode, "b"));
  tree.fs().Forget(file, 1);
  tree.File("new");
  REQUIRE_OK(tree.Move("new", "a"));
  REQUIRE(tree.Stat(file).links == 1);
  REQUIRE(tree.At("b") == file);
  tree.Finish();
}

TEST_CASE("a rename without replacement refuses a name in use, and takes a free name") {
  Tree tree;
  tree.File("a");
  tree.File("b");
  tree.Dir("d");
  REQUIRE_CODE(tree.Move("a", "b", RenameMode::kNoReplace), kAlreadyExists);
  REQUIRE_CODE(tree.Move("a", "d", RenameMode::kNoReplace), kAlreadyExists);
  REQUIRE_OK(tree.Move("a", "c", RenameMode::kNoReplace));
  REQUIRE(tree.Has("c"));
  tree.Finish();
}

TEST_CASE("an exchange swaps the inodes of two names") {
  Tree tree;
  const InodeNumber left = tree.Dir("left");
  const InodeNumber right = tree.Dir("right");
  const InodeNumber file = tree.File("left/file");
  const InodeNumber dir = tree.Dir("right/dir");
  tree.File("right/dir/inside");

  REQUIRE_CODE(tree.Move("left/file", "right/none", RenameMode::kExchange), kNotFound);
  SECTION("a file and a directory that is not empty, across directories") {
    REQUIRE_OK(tree.Move("left/file", "right/dir", RenameMode::kExchange));
    REQUIRE(tree.At("left/file") == dir);
    REQUIRE(tree.At("right/dir") == file);
    REQUIRE(tree.Has("left/file/inside"));
    REQUIRE(tree.Stat(left).links == 3);
    REQUIRE(tree.Stat(right).links == 2);
    REQUIRE(tree.ParentOf(dir) == left);
  }
  SECTION("two directories") {
    const InodeNumber other = tree.Dir("left/other");
    REQUIRE_OK(tree.Move("left/other", "right/dir", RenameMode::kExchange));
    REQUIRE(tree.At("left/other") == dir);
    REQUIRE(tree.At("right/dir") == other);
    REQUIRE(tree.ParentOf(dir) == left);
    REQUIRE(tree.ParentOf(other) == right);
    REQUIRE(tree.Stat(left).links == 3);
    REQUIRE(tree.Stat(right).links == 3);
  }
  SECTION("within one directory") {
    const InodeNumber other = tree.File("left/other");
    REQUIRE_OK(tree.Move("left/other", "left/file", RenameMode::kExchange));
    REQUIRE(tree.At("left/other") == file);
    REQUIRE(tree.At("left/file") == other);
  }
  tree.Finish();
}

TEST_CASE("names keep their cookies when their inodes are replaced or exchanged") {
  Tree tree;
  tree.File("a");
  tree.File("b");
  tree.File("c");
  const auto before = tree.Cookies(kRootInode);
  REQUIRE_OK(tree.Move("a", "b", RenameMode::kExchange));
  REQUIRE(tree.Cookies(kRootInode) == before);
  REQUIRE_OK(tree.Move("a", "b"));
  const auto after = tree.Cookies(kRootInode);
  REQUIRE(after.at("b") == before.at("b"));
  REQUIRE(after.at("c") == before.at("c"));
  REQUIRE_OK(tree.Move("c", "a"));
  REQUIRE(tree.Cookies(kRootInode).at("a") == before.at("c"));
  // A new entry comes after all others, and no cookie is used twice.
  tree.File("d");
  REQUIRE(tree.Cookies(kRootInode).at("d") > before.at("c"));
  tree.Finish();
}

TEST_CASE("an open file that is replaced stays until it is closed") {
  Tree tree;
  const InodeNumber old = tree.File("old");
  tree.File("new");
  REQUIRE_OK(tree.fs().OpenFile(old, false));
  REQUIRE_OK(tree.Move("new", "old"));
  REQUIRE(tree.Stat(old).links == 0);
  const Bytes data = RandomBytes(1, 1000);
  REQUIRE_OK(tree.fs().Write(old, 0, data));
  REQUIRE((*ReadFile(tree.fs(), old) == data));
  tree.fs().ReleaseFile(old);
  REQUIRE_CODE(tree.fs().GetAttributes(old), kStale);
  tree.Finish();
}

TEST_CASE("a rename to an invalid name is refused") {
  Tree tree;
  tree.File("a");
  tree.Dir("d");
  const std::string too_long(256, 'x');
  const std::string longest(255, 'x');
  FileSystem& fs = tree.fs();
  auto move = [&fs](std::string_view name) {
    return fs.Rename(kRootInode, "a", kRootInode, name, RenameMode::kReplace);
  };
  REQUIRE_CODE(move(too_long), kNameTooLong);
  for (std::string_view name : {"", ".", "..", "d/x", "/"}) {
    INFO("name \"" << name << "\"");
    REQUIRE_CODE(move(name), kInvalidArgument);
  }
  REQUIRE_CODE(move(std::string_view("x\0y", 3)), kInvalidArgument);
  REQUIRE(tree.Has("a"));
  REQUIRE_OK(move(longest));
  REQUIRE(tree.Has(longest));
  tree.Finish();
}

TEST_CASE("nothing moves into or out of a non-directory or a removed directory") {
  Tree tree;
  const InodeNumber file = tree.File("file");
  tree.File("a");
  FileSystem& fs = tree.fs();
  REQUIRE_CODE(fs.Rename(kRootInode, "a", file, "x", RenameMode::kReplace), kNotADirectory);
  REQUIRE_CODE(fs.Rename(file, "x", kRootInode, "a", RenameMode::kReplace), kNotADirectory);
  auto removed = fs.MakeDirectory(kRootInode, "removed", 0755, kCaller);
  REQUIRE_OK(removed);
  REQUIRE_OK(fs.RemoveDirectory(kRootInode, "removed"));
  REQUIRE_CODE(fs.Rename(kRootInode, "a", removed->inode, "x", RenameMode::kReplace), kNotFound);
  fs.Forget(removed->inode, 1);
  REQUIRE(tree.Has("a"));
  tree.Finish();
}

TEST_CASE("a rename changes the times of the directories and of the moved inode") {
  Tree tree;
  const InodeNumber from = tree.Dir("from");
  const InodeNumber to = tree.Dir("to");
  tree.env().SetClock(1000);
  const InodeNumber file = tree.File("from/file");
  tree.env().SetClock(2000);
  REQUIRE_OK(tree.Move("from/file", "to/file"));
  REQUIRE(tree.Stat(from).mtime == 2000);
  REQUIRE(tree.Stat(to).mtime == 2000);
  REQUIRE(tree.Stat(to).ctime == 2000);
  REQUIRE(tree.Stat(file).mtime == 1000);
  REQUIRE(tree.Stat(file).ctime == 2000);
  tree.Finish();
}

TEST_CASE("a name that changes within its directory keeps its place, so that a listing ends") {
  Tree tree;
  const InodeNumber dir = tree.Dir("d");
  for (int i = 0; i < 5; ++i) tree.File(fmt::format("d/{}", i));
  const auto before = tree.Cookies(dir);
  REQUIRE_OK(tree.Move("d/1", "d/another"));
  const auto after = tree.Cookies(dir);
  CHECK(after.size() == before.size());
  CHECK(after.at("another") == before.at("1"));
  // Renames each listed entry, like a program that lists and renames in one loop.
  uint64_t cookie = 0;
  int met = 0;
  while (met < 100) {
    std::string name;
    REQUIRE_OK(tree.fs().ReadDirectory(dir, cookie, [&](const DirectoryRecord& record) {
      cookie = record.cookie;
      if (record.name == "." || record.name == "..") return true;
      name = record.name;
      return false;
    }));
    if (name.empty()) break;
    REQUIRE_OK(tree.Move("d/" + name, fmt::format("d/renamed {}", met++)));
  }
  CHECK(met == 5);
  tree.Finish();
}

}  // namespace siltfs::testing
