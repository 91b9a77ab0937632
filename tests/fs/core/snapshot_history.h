// Random histories of a store with snapshots, and the states that the snapshots must show.
//
// Not thread-safe. The functions fail the running test.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/interface/entry_store.h"
#include "fs/interface/snapshot_inode.h"
#include "fs/interface/snapshots.h"
#include "store/base/random.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {

inline constexpr uint32_t kTypeMask = 0170000;
inline constexpr uint32_t kDirectoryType = 0040000;

using Changes = std::vector<PathChange>;

struct SnapshotFixture {
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
inline std::vector<std::string> Lines(const Changes& changes) {
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
inline void RequireSound(Env& env, const std::string& path) {
  CheckOptions options;
  options.store = path;
  options.segments = SealedSegments(env);
  std::vector<std::string> findings;
  options.on_finding = [&findings](const Finding& finding) {
    findings.push_back(finding.code + ": " + finding.message);
  };
  REQUIRE_OK(CheckStore(env, options));
  REQUIRE(findings == std::vector<std::string>{});
}
inline void RequireSound(SnapshotFixture& f) { RequireSound(f.store.env(), f.store.path()); }

// What a path shows, besides the times that do not count.
struct Shown {
  uint64_t inode = 0;  // in the live file system
  uint32_t mode = 0;
  std::string content;  // and the target, and the extended attributes
  bool SameAs(const Shown& other) const { return mode == other.mode && content == other.content; }
};
using Paths = std::map<std::string, Shown>;

inline void ReadInto(FileSystem& fs, InodeNumber directory, const std::string& path, Paths& paths) {
  for (const std::string& name : ListNames(fs, directory)) {
    if (path == "/" && name == kSnapshotDirectoryName) continue;
    const auto found = fs.Lookup(directory, name);
    REQUIRE_OK(found);
    fs.Forget(found->inode, 1);
    Shown& shown = paths[path + name];
    shown.inode = SplitSnapshotInode(found->inode).inode;
    shown.mode = found->mode;
    if ((found->mode & kTypeMask) == kDirectoryType) {
      ReadInto(fs, found->inode, path + name + "/", paths);
    } else {
      shown.content = std::string(AsText(*ReadFile(fs, found->inode)));
    }
    const auto xattrs = fs.ListXattrs(found->inode);
    REQUIRE_OK(xattrs);
    for (const std::string& xattr : *xattrs)
      shown.content += "\n" + xattr + "=" + *fs.GetXattr(found->inode, xattr);
  }
}

// The files that the snapshot shows; without one, the live files.
inline Paths ReadState(FileSystem& fs, const std::optional<std::string>& snapshot) {
  Paths paths;
  ReadInto(fs, snapshot ? RequireInode(fs, ".snapshots/" + *snapshot) : kRootInode, "/", paths);
  return paths;
}
inline Paths ReadState(SnapshotFixture& f, const std::optional<std::string>& snapshot) {
  return ReadState(*f.fs, snapshot);
}

// The path after the renames, of which the innermost one counts.
inline std::string Renamed(std::string path, const std::map<std::string, std::string>& renames) {
  for (size_t end = path.size(); end > 0; end = path.rfind('/', end - 1)) {
    if (end == std::string::npos) break;
    const auto found = renames.find(path.substr(0, end));
    if (found != renames.end()) return found->second + path.substr(end);
  }
  return path;
}

inline void RequireSame(const Paths& got, const Paths& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (const auto& [path, shown] : wanted) {
    CAPTURE(path);
    REQUIRE(got.contains(path));
    REQUIRE(got.at(path).SameAs(shown));
    REQUIRE(got.at(path).inode == shown.inode);
  }
}

// A store whose rollback to the snapshot "before" takes several writes, and is interrupted before
// write number `writes`.
struct InterruptedRollback {
  explicit InterruptedRollback(int writes) {
    const InodeNumber dir = MakeDir(*f.fs, kRootInode, "dir");
    for (int i = 0; i < 300; ++i) MakeFile(*f.fs, dir, fmt::format("old{}", i));
    f.Create("before");
    before = ReadState(f, std::nullopt);
    for (int i = 0; i < 300; ++i) REQUIRE_OK(f.fs->Unlink(dir, fmt::format("old{}", i)));
    for (int i = 0; i < 700; ++i) MakeFile(*f.fs, dir, fmt::format("new{}", i));
    after = ReadState(f, std::nullopt);
    f.store.adjust = [this](FileSystemOptions& options) {
      options.interrupted = [this] { return left-- == 0; };
    };
    f.Reopen();
    left = writes;
  }
  // Opens the store, which must not be open, and requires that this completes the rollback.
  void RequireCompleted() {
    f.store.adjust = {};
    f.fs = &f.store.Open();
    RequireSame(ReadState(f, std::nullopt), before);
    RequireSame(ReadState(f, "kept"), after);
    f.store.Close();
    RequireSound(f);
  }

  SnapshotFixture f;
  Paths before;
  Paths after;
  int left = -1;
};

// Checks that the changes lead from one state to the other, and that each of them is one.
inline void CheckChanges(const Paths& from, const Paths& to, const Changes& changes) {
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

class SnapshotHistory {
 public:
  explicit SnapshotHistory(uint64_t seed) : random_(seed) {}

  SnapshotFixture& fixture() { return f_; }
  // What the snapshots show.
  const std::map<std::string, Paths>& states() const { return states_; }

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
  SnapshotFixture f_;
  int next_ = 0;
  std::map<std::string, Paths> states_;
};

}  // namespace siltfs::testing
