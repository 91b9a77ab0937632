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
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint32_t kTypeMask = 0170000;
constexpr uint32_t kDirectoryType = 0040000;

using Changes = std::vector<PathChange>;

struct Fixture {
  StoreFixture store;
  FileSystem* fs = &store.Open();

  InodeNumber At(std::string_view path) { return RequireInode(*fs, path); }
  void Create(std::string_view name) { REQUIRE_OK(fs->snapshots().Create(name)); }
  void Write(std::string_view name, std::string_view text) { WriteFile(*fs, name, AsBytes(text)); }
  void Append(InodeNumber file, std::string_view text) {
    const auto attributes = fs->GetAttributes(file);
    REQUIRE_OK(attributes);
    REQUIRE_OK(fs->OpenFile(file, false));
    REQUIRE_OK(fs->Write(file, attributes->size, AsBytes(text)));
    fs->ReleaseFile(file);
  }
  void SetMode(InodeNumber inode, uint32_t mode) {
    AttributeChange change;
    change.mode = mode;
    REQUIRE_OK(fs->SetAttributes(inode, change));
  }
  void Reopen() {
    store.Reopen();
    fs = &store.fs();
  }
  Changes Diff(std::string_view from, std::optional<std::string_view> to) {
    Changes changes;
    REQUIRE_OK(fs->snapshots().Diff(
        from, to, [] { return Status::Ok(); },
        [&](const PathChange& change) {
          changes.push_back(change);
          return Status::Ok();
        }));
    return changes;
  }
};

// One line for each change, sorted.
std::vector<std::string> Lines(const Changes& changes) {
  std::vector<std::string> lines;
  for (const PathChange& change : changes) {
    std::string line;
    if (change.kind == ChangeKind::kCreated) line = "+ ";
    if (change.kind == ChangeKind::kDeleted) line = "- ";
    if (change.kind == ChangeKind::kRenamed) line = "R " + change.old_path + " ";
    // The mtime of a changed file may be the same, because clocks are coarse.
    if (change.content || change.metadata) line += change.content ? "C " : "M ";
    line += change.path;
    if (change.type == kDirectoryType) line += "/";
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}
using List = std::vector<std::string>;

// Requires that the unmounted store has no findings.
void RequireSound(Fixture& f) {
  CheckOptions options;
  options.store = f.store.path();
  std::vector<std::string> findings;
  options.on_finding = [&findings](const Finding& finding) {
    findings.push_back(finding.code + ": " + finding.message);
  };
  REQUIRE_OK(CheckStore(f.store.env(), options));
  REQUIRE(findings == std::vector<std::string>{});
}

TEST_CASE("a comparison lists created, changed, renamed and deleted paths") {
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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

// --- Random histories

// What a path shows, besides the times that do not count.
struct Shown {
  uint64_t inode = 0;  // in the live file system
  uint32_t mode = 0;
  std::string content;  // and the target, and the extended attributes
  bool SameAs(const Shown& other) const { return mode == other.mode && content == other.content; }
};
using Paths = std::map<std::string, Shown>;

void ReadInto(Fixture& f, InodeNumber directory, const std::string& path, Paths& paths) {
  for (const std::string& name : ListNames(*f.fs, directory)) {
    if (path == "/" && name == kSnapshotDirectoryName) continue;
    const auto found = f.fs->Lookup(directory, name);
    REQUIRE_OK(found);
    f.fs->Forget(found->inode, 1);
    Shown& shown = paths[path + name];
    shown.inode = SplitSnapshotInode(found->inode).inode;
    shown.mode = found->mode;
    if ((found->mode & kTypeMask) == kDirectoryType) {
      ReadInto(f, found->inode, path + name + "/", paths);
    } else {
      shown.content = std::string(AsText(*ReadFile(*f.fs, found->inode)));
    }
    const auto xattrs = f.fs->ListXattrs(found->inode);
    REQUIRE_OK(xattrs);
    for (const std::string& xattr : *xattrs)
      shown.content += "\n" + xattr + "=" + *f.fs->GetXattr(found->inode, xattr);
  }
}

Paths ReadState(Fixture& f, const std::optional<std::string>& snapshot) {
  Paths paths;
  ReadInto(f, snapshot ? f.At(".snapshots/" + *snapshot) : kRootInode, "/", paths);
  return paths;
}

// The path after the renames, of which the innermost one counts.
std::string Renamed(std::string path, const std::map<std::string, std::string>& renames) {
  for (size_t end = path.size(); end > 0; end = path.rfind('/', end - 1)) {
    if (end == std::string::npos) break;
    const auto found = renames.find(path.substr(0, end));
    if (found != renames.end()) return found->second + path.substr(end);
  }
  return path;
}

void RequireSame(const Paths& got, const Paths& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (const auto& [path, shown] : wanted) {
    CAPTURE(path);
    REQUIRE(got.contains(path));
    REQUIRE(got.at(path).SameAs(shown));
    REQUIRE(got.at(path).inode == shown.inode);
  }
}

// Checks that the changes lead from one state to the other, and that each of them is one.
void CheckChanges(const Paths& from, const Paths& to, const Changes& changes) {
  INFO(fmt::format("{}", fmt::join(Lines(changes), "\n")));
  std::set<std::string> deleted;
  std::map<std::string, std::string> renames;
  std::set<std::string> created;
  std::map<std::string, PathChange> changed;
  for (const PathChange& change : changes) {
    if (change.kind == ChangeKind::kDeleted) REQUIRE(deleted.insert(change.path).second);
    if (change.kind == ChangeKind::kCreated) REQUIRE(created.insert(change.path).second);
    if (change.kind == ChangeKind::kRenamed) {
      REQUIRE(renames.emplace(change.old_path, change.path).second);
      REQUIRE(from.at(change.old_path).inode == to.at(change.path).inode);
    }
    if (change.kind == ChangeKind::kChanged || change.kind == ChangeKind::kRenamed)
      REQUIRE(changed.emplace(change.path, change).second);
  }
  Paths made;
  for (const auto& [path, shown] : from) {
    if (deleted.contains(path)) continue;
    const std::string now = Renamed(path, renames);
    CAPTURE(path, now);
    REQUIRE(made.emplace(now, shown).second);
    REQUIRE(to.contains(now));
    REQUIRE((to.at(now).mode & kTypeMask) == (shown.mode & kTypeMask));
    const auto listed = changed.find(now);
    const bool differs =
        listed != changed.end() && (listed->second.content || listed->second.metadata);
    if (!to.at(now).SameAs(shown)) REQUIRE(differs);
  }
  for (const std::string& path : deleted) REQUIRE(from.contains(path));
  for (const auto& [path, change] : changed) REQUIRE(made.contains(path));
  for (const std::string& path : created) {
    CAPTURE(path);
    REQUIRE(to.contains(path));
    REQUIRE(made.emplace(path, to.at(path)).second);
  }
  for (const auto& named : to) {
    CAPTURE(named.first);
    REQUIRE(made.contains(named.first));
  }
}

class History {
 public:
  explicit History(uint64_t seed) : random_(seed) {}

  void Step() {
    const uint64_t way = random_.Below(100);
    const Place place = AnyPlace();
    if (way < 20) {
      if (!place.inode) MakeFile(*f_.fs, place.parent, place.name);
    } else if (way < 32) {
      if (!place.inode) MakeDir(*f_.fs, place.parent, place.name);
    } else if (way < 50) {
      Remove(place.parent, place.name, place.inode);
    } else if (way < 68) {
      Rename(place, AnyPlace());
    } else if (way < 80) {
      ChangeFile(place);
    } else if (way < 84) {
      if (place.inode) f_.SetMode(*place.inode, 0700 + static_cast<uint32_t>(random_.Below(8)));
    } else if (way < 88) {
      if (place.inode) {
        REQUIRE_OK(f_.fs->SetXattr(*place.inode, "user.a", std::to_string(random_.Below(3)),
                                   XattrMode::kSet));
      }
    } else if (way < 92) {
      Link(place, AnyPlace());
    } else if (way < 95) {
      Clone(place, AnyPlace());
    } else if (way < 98) {
      const std::string name = fmt::format("s{}", next_++);
      f_.Create(name);
      states_[name] = ReadState(f_, std::nullopt);
    } else if (way < 99) {
      if (states_.size() > 3) {
        const std::string name = AnySnapshot();
        REQUIRE_OK(f_.fs->snapshots().Remove(name));
        if (random_.OneIn(2)) REQUIRE_OK(f_.fs->snapshots().AwaitRemovals());
        states_.erase(name);
      }
    } else {
      f_.Reopen();
      if (random_.OneIn(2) && !states_.empty()) RollBack(AnySnapshot());
    }
  }

  // Makes the files what they are in the snapshot.
  void RollBack(const std::string& name) {
    CAPTURE(name);
    const std::string kept = fmt::format("s{}", next_++);
    states_[kept] = ReadState(f_, std::nullopt);
    REQUIRE_OK(f_.fs->snapshots().RollBack(name, kept));
    RequireSame(ReadState(f_, std::nullopt), states_.at(name));
    REQUIRE(Lines(f_.Diff(name, std::nullopt)).empty());
  }

  void Finish() {
    for (const auto& [name, state] : states_) {
      CAPTURE(name);
      RequireSame(ReadState(f_, name), state);
    }
    f_.store.Close();
    RequireSound(f_);
  }

  void Compare() {
    if (states_.empty()) return;
    const std::string a = AnySnapshot();
    CAPTURE(a);
    CheckChanges(states_.at(a), ReadState(f_, std::nullopt), f_.Diff(a, std::nullopt));
    const std::string b = AnySnapshot();
    CAPTURE(b);
    CheckChanges(states_.at(a), states_.at(b), f_.Diff(a, b));
  }

 private:
  struct Place {
    InodeNumber parent = 0;
    std::string name = {};
    std::optional<InodeNumber> inode = {};
    bool directory = false;
  };

  std::string AnySnapshot() {
    auto at = states_.begin();
    std::advance(at, random_.Below(states_.size()));
    return at->first;
  }
  // A name, taken or free, in some directory.
  Place AnyPlace() {
    Place place{.parent = kRootInode};
    while (true) {
      place.name = std::string(1, static_cast<char>('a' + random_.Below(5)));
      const auto found = f_.fs->Lookup(place.parent, place.name);
      place.inode.reset();
      if (!found.ok()) return place;
      f_.fs->Forget(found->inode, 1);
      place.inode = found->inode;
      place.directory = (found->mode & kTypeMask) == kDirectoryType;
      if (!place.directory || random_.OneIn(3)) return place;
      place.parent = found->inode;
    }
  }
  void Remove(InodeNumber parent, const std::string& name,
              const std::optional<InodeNumber>& inode) {
    if (!inode) return;
    const auto attributes = f_.fs->GetAttributes(*inode);
    REQUIRE_OK(attributes);
    if ((attributes->mode & kTypeMask) != kDirectoryType) {
      REQUIRE_OK(f_.fs->Unlink(parent, name));
      return;
    }
    for (const std::string& child : ListNames(*f_.fs, *inode)) {
      const auto found = f_.fs->Lookup(*inode, child);
      REQUIRE_OK(found);
      f_.fs->Forget(found->inode, 1);
      Remove(*inode, child, found->inode);
    }
    REQUIRE_OK(f_.fs->RemoveDirectory(parent, name));
  }
  void Rename(const Place& from, const Place& to) {
    if (!from.inode) return;
    const RenameMode mode =
        to.inode && random_.OneIn(3) ? RenameMode::kExchange : RenameMode::kReplace;
    // It may fail, for example because a directory is not empty.
    f_.fs->Rename(from.parent, from.name, to.parent, to.name, mode).IgnoreError("random");
  }
  void ChangeFile(const Place& place) {
    if (!place.inode || place.directory) return;
    REQUIRE_OK(f_.fs->OpenFile(*place.inode, false));
    const uint64_t size = f_.fs->GetAttributes(*place.inode)->size;
    const Bytes data = RandomBytes(random_.Below(1u << 30), 1 + random_.Below(20'000));
    REQUIRE_OK(f_.fs->Write(*place.inode, random_.Below(size + 1), data));
    f_.fs->ReleaseFile(*place.inode);
  }
  void Link(const Place& from, const Place& to) {
    if (!from.inode || from.directory || to.inode) return;
    REQUIRE_OK(f_.fs->Link(*from.inode, to.parent, to.name));
    f_.fs->Forget(*from.inode, 1);
  }
  void Clone(const Place& from, const Place& to) {
    if (!from.inode || to.inode) return;
    const CloneRequest request{.source = *from.inode, .parent = to.parent, .name = to.name};
    f_.fs->entries().Clone(request).status().IgnoreError("the target may be in the source");
  }

  Random random_;
  Fixture f_;
  int next_ = 0;
  std::map<std::string, Paths> states_;
};

TEST_CASE("the changes between any two states of a random history lead from one to the other") {
  const uint64_t seed = GENERATE(range(1, 9));
  CAPTURE(seed);
  History history(seed);
  for (int step = 0; step < 1200; ++step) {
    CAPTURE(step);
    history.Step();
    if (step % 30 == 29) history.Compare();
  }
  history.Finish();
}

// --- Rollbacks

TEST_CASE("a rollback makes all files what they were, and keeps the present state") {
  Fixture f;
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
  Fixture f;
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
  const int passes = GENERATE(range(0, 4));
  CAPTURE(passes);
  Fixture f;
  const InodeNumber dir = MakeDir(*f.fs, kRootInode, "dir");
  for (int i = 0; i < 300; ++i) MakeFile(*f.fs, dir, fmt::format("old{}", i));
  f.Create("before");
  const Paths before = ReadState(f, std::nullopt);
  for (int i = 0; i < 300; ++i) REQUIRE_OK(f.fs->Unlink(dir, fmt::format("old{}", i)));
  for (int i = 0; i < 700; ++i) MakeFile(*f.fs, dir, fmt::format("new{}", i));
  const Paths after = ReadState(f, std::nullopt);
  int left = -1;
  f.store.adjust = [&left](FileSystemOptions& options) {
    options.interrupted = [&left] { return left-- == 0; };
  };
  f.Reopen();
  left = passes;
  REQUIRE_CODE(f.fs->snapshots().RollBack("before", "kept"), kInterrupted);
  f.store.Crash();
  f.store.adjust = {};
  RequireSound(f);
  REQUIRE_CODE(f.store.TryOpen(/*read_only=*/true), kUnsupported);
  f.fs = &f.store.Open();
  RequireSame(ReadState(f, std::nullopt), before);
  RequireSame(ReadState(f, "kept"), after);
  f.store.Close();
  RequireSound(f);
}

}  // namespace
}  // namespace siltfs::testing
