// Comparisons of snapshots (Snapshots::Diff): each kind of change, and random histories, whose
// changes must turn the paths of one state into those of the other. Rollbacks (Snapshots::RollBack)
// in the same histories, and after interruptions.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/interface/entry_store.h"
#include "fs/interface/snapshot_inode.h"
#include "fs/interface/snapshots.h"
#include "fs/interface/store_maintenance.h"
#include "store/base/random.h"
#include "tests/fs/core/snapshot_history.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

TEST_CASE("a comparison lists created, changed, renamed and deleted paths") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  const InodeNumber dir = MakeDir(fs, kRootInode, "dir");
  MakeFile(fs, dir, "kept");
  f.Write("same", "1");
  f.Write("longer", "1");
  f.Write("mode", "1");
  f.Write("xattr", "1");
  f.Write("moved", "1");
  f.Write("gone", "1");
  f.Write("replaced", "1");
  f.Create("a");
  f.Append(f.At("longer"), "2");
  f.SetMode(f.At("mode"), 0600);
  REQUIRE_OK(fs.SetXattr(f.At("xattr"), "user.a", "1", XattrMode::kSet));
  REQUIRE_OK(fs.Rename(kRootInode, "moved", dir, "new", RenameMode::kReplace));
  REQUIRE_OK(fs.Unlink(kRootInode, "gone"));
  f.Write("temporary", "22");
  REQUIRE_OK(fs.Rename(kRootInode, "temporary", kRootInode, "replaced", RenameMode::kReplace));
  f.Write("added", "1");
  f.SetMode(dir, 0700);
  const List wanted = {"+ /added", "- /gone", "C /longer", "C /replaced",
                       "M /dir/",  "M /mode", "M /xattr",  "R /moved /dir/new"};
  CHECK(Lines(f.Diff("a", std::nullopt)) == wanted);
  f.Create("b");
  MakeFile(fs, kRootInode, "later");
  CHECK(Lines(f.Diff("a", "b")) == wanted);
  CHECK(Lines(f.Diff("b", std::nullopt)) == List{"+ /later"});
  CHECK(Lines(f.Diff("b", "b")).empty());
  const List backward = {"+ /gone", "- /added", "C /longer", "C /replaced",
                         "M /dir/", "M /mode",  "M /xattr",  "R /dir/new /moved"};
  CHECK(Lines(f.Diff("b", "a")) == backward);
}

TEST_CASE("what was changed back does not differ") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  f.Write("file", "1");
  f.SetMode(f.At("file"), 0644);
  f.Create("a");
  f.SetMode(f.At("file"), 0600);
  f.SetMode(f.At("file"), 0644);
  REQUIRE_OK(fs.Rename(kRootInode, "file", kRootInode, "other", RenameMode::kReplace));
  REQUIRE_OK(fs.Rename(kRootInode, "other", kRootInode, "file", RenameMode::kReplace));
  f.Write("short-lived", "1");
  REQUIRE_OK(fs.Unlink(kRootInode, "short-lived"));
  CHECK(Lines(f.Diff("a", std::nullopt)).empty());
}

TEST_CASE("a comparison names the paths below new and removed directories") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  const InodeNumber old_dir = MakeDir(fs, kRootInode, "old");
  const InodeNumber old_sub = MakeDir(fs, old_dir, "sub");
  MakeFile(fs, old_sub, "f");
  MakeFile(fs, old_sub, "moved");
  f.Create("a");
  const InodeNumber fresh = MakeDir(fs, kRootInode, "fresh");
  const InodeNumber fresh_sub = MakeDir(fs, fresh, "sub");
  REQUIRE_OK(fs.Rename(old_sub, "moved", fresh_sub, "here", RenameMode::kReplace));
  REQUIRE_OK(fs.Unlink(old_sub, "f"));
  REQUIRE_OK(fs.RemoveDirectory(old_dir, "sub"));
  REQUIRE_OK(fs.RemoveDirectory(kRootInode, "old"));
  CHECK(Lines(f.Diff("a", std::nullopt)) == List{"+ /fresh/", "+ /fresh/sub/", "- /old/",
                                                 "- /old/sub/", "- /old/sub/f",
                                                 "R /old/sub/moved /fresh/sub/here"});
}

TEST_CASE("paths below a renamed directory are listed only if they have changed") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  const InodeNumber dir = MakeDir(fs, kRootInode, "dir");
  MakeFile(fs, dir, "kept");
  const InodeNumber changed = MakeFile(fs, dir, "changed");
  MakeFile(fs, dir, "gone");
  f.Create("a");
  const InodeNumber above = MakeDir(fs, kRootInode, "above");
  REQUIRE_OK(fs.Rename(kRootInode, "dir", above, "moved", RenameMode::kReplace));
  f.Append(changed, "2");
  REQUIRE_OK(fs.Unlink(dir, "gone"));
  CHECK(Lines(f.Diff("a", std::nullopt)) ==
        List{"+ /above/", "- /dir/gone", "C /above/moved/changed", "R /dir /above/moved/"});
}

TEST_CASE("a change of a file with several names is listed under all of them") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  const InodeNumber dir = MakeDir(fs, kRootInode, "dir");
  const InodeNumber file = MakeFile(fs, kRootInode, "one");
  REQUIRE_OK(fs.Link(file, dir, "two"));
  fs.Forget(file, 1);
  f.Create("a");
  f.Append(file, "2");
  CHECK(Lines(f.Diff("a", std::nullopt)) == List{"C /dir/two", "C /one"});
  // The newest name is gone, so the record of the file names a directory where it is not.
  f.Create("b");
  REQUIRE_OK(fs.Unlink(dir, "two"));
  f.Create("c");
  f.Append(file, "3");
  CHECK(Lines(f.Diff("b", "c")) == List{"- /dir/two"});
  CHECK(Lines(f.Diff("c", std::nullopt)) == List{"C /one"});
}

TEST_CASE("a clone that was running while a snapshot was made is new") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  const InodeNumber dir = MakeDir(fs, kRootInode, "dir");
  const InodeNumber sub = MakeDir(fs, dir, "sub");
  MakeFile(fs, sub, "f");
  bool made = false;
  CloneRequest request{.source = dir, .parent = kRootInode, .name = "clone"};
  request.on_progress = [&](const CloneTotals&) -> Status {
    // The copies are written, but not published.
    return made ? Status::Ok() : (made = true, fs.snapshots().Create("a").status());
  };
  REQUIRE_OK(fs.entries().Clone(request));
  REQUIRE(made);
  f.Append(f.At("clone/sub/f"), "2");
  CHECK(Lines(f.Diff("a", std::nullopt)) == List{"+ /clone/", "+ /clone/sub/", "+ /clone/sub/f"});
  // The rollback removes all inodes of the clone.
  REQUIRE_OK(fs.snapshots().RollBack("a", "kept"));
  CHECK(ListNames(fs, kRootInode) == std::vector<std::string>{"dir"});
  f.store.Close();
  RequireSound(f);
}

TEST_CASE("a comparison of missing snapshots fails, and can be interrupted") {
  SnapshotFixture f;
  f.Create("a");
  f.Write("file", "1");
  const auto never = [](const PathChange&) { return Status::Ok(); };
  const auto go_on = [] { return Status::Ok(); };
  REQUIRE_CODE(f.fs->snapshots().Diff("b", std::nullopt, go_on, never), kNotFound);
  REQUIRE_CODE(f.fs->snapshots().Diff("a", "b", go_on, never), kNotFound);
  const auto stop = [](const PathChange&) { return Status(StatusCode::kAborted, "enough"); };
  REQUIRE_CODE(f.fs->snapshots().Diff("a", std::nullopt, go_on, stop), kAborted);
  REQUIRE_OK(f.fs->snapshots().Remove("a"));
}

TEST_CASE("the changes between any two states of a random history lead from one to the other") {
  const uint64_t seed = GENERATE(range(1, 9));
  CAPTURE(seed);
  SnapshotHistory history(seed);
  for (int step = 0; step < 1200; ++step) {
    CAPTURE(step);
    history.Step();
    if (step % 30 == 29) history.Compare();
  }
  history.Finish();
}

// --- Rollbacks

TEST_CASE("a rollback makes all files what they were, and keeps the present state") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  const InodeNumber dir = MakeDir(fs, kRootInode, "dir");
  f.Write("changed", "old");
  f.Write("removed", "1");
  f.Write("moved", "1");
  REQUIRE_OK(fs.Link(f.At("moved"), dir, "link"));
  fs.Forget(f.At("moved"), 1);
  // A file without a name, which a program has open.
  const auto temporary = fs.MakeTemporaryFile(kRootInode, 0600, kCaller);
  REQUIRE_OK(temporary);
  REQUIRE_OK(fs.Write(temporary->inode, 0, RandomBytes(1, 100'000)));
  f.Create("before");
  const Paths before = ReadState(f, std::nullopt);
  fs.ReleaseFile(temporary->inode);
  fs.Forget(temporary->inode, 1);
  f.Append(f.At("changed"), "new");
  REQUIRE_OK(fs.Unlink(kRootInode, "removed"));
  REQUIRE_OK(fs.Rename(kRootInode, "moved", dir, "moved", RenameMode::kReplace));
  MakeFile(fs, MakeDir(fs, dir, "new"), "file");
  const Paths after = ReadState(f, std::nullopt);
  REQUIRE_OK(fs.snapshots().RollBack("before", "kept"));
  RequireSame(ReadState(f, std::nullopt), before);
  RequireSame(ReadState(f, "kept"), after);
  RequireSame(ReadState(f, "before"), before);
  f.Write("removed", "after the rollback");
  REQUIRE_OK(fs.maintenance().CollectGarbage(false));
  RequireSame(ReadState(f, "kept"), after);
  f.store.Close();
  RequireSound(f);
}

TEST_CASE("a rollback is refused while a file is open, and for a missing snapshot") {
  SnapshotFixture f;
  f.Write("file", "1");
  f.Create("before");
  f.Append(f.At("file"), "2");
  REQUIRE_CODE(f.fs->snapshots().RollBack("none", "kept"), kNotFound);
  REQUIRE_CODE(f.fs->snapshots().RollBack("before", "before"), kAlreadyExists);
  REQUIRE_OK(f.fs->OpenFile(f.At("file"), false));
  REQUIRE_CODE(f.fs->snapshots().RollBack("before", "kept"), kInUse);
  f.fs->ReleaseFile(f.At("file"));
  CHECK(f.fs->GetAttributes(f.At("file"))->size == 2);
  CHECK(f.fs->snapshots().List().size() == 1);
}

TEST_CASE("an interrupted rollback is completed by the next opening for writing") {
  const int writes = GENERATE(range(0, 4));
  CAPTURE(writes);
  InterruptedRollback rollback(writes);
  SnapshotFixture& f = rollback.f;
  REQUIRE_CODE(f.fs->snapshots().RollBack("before", "kept"), kInterrupted);
  f.store.Crash();
  f.store.adjust = {};
  RequireSound(f);
  REQUIRE_CODE(f.store.TryOpen(/*read_only=*/true), kUnsupported);
  rollback.RequireCompleted();
}

}  // namespace
}  // namespace siltfs::testing
