// The core behaves like a file system made of plain maps, under seeded random operations, across
// remounts and crashes.
#include <fmt/format.h>

#include <array>

#include "fs/interface/posix_acl.h"
#include "store/base/random.h"
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/acl_text.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

constexpr size_t kDirectories = 4;
constexpr size_t kNames = 12;
constexpr uint64_t kSetAcl = 1000;  // a kind of operation besides the numbered ones

// One random operation. It is drawn before it runs, so that both file systems get the same
// operation.
struct Operation {
  uint64_t kind;
  std::string directory, name, other_directory, other_name;
  uint64_t offset = 0;
  Bytes data;
  uint64_t number = 0;
  uint64_t length = 0;
};

std::string DirectoryName(uint64_t i) { return i == 0 ? "" : fmt::format("d{}", i); }

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), pool_(RandomBytes(seed + 1, 1u << 20)) {}

  Operation Next() {
    Operation op;
    op.kind = random_.OneIn(25) ? kSetAcl : random_.Below(110);
    op.directory = DirectoryName(random_.Below(kDirectories));
    op.other_directory = DirectoryName(random_.Below(kDirectories));
    op.name = fmt::format("n{}", random_.Below(kNames));
    op.other_name = fmt::format("n{}", random_.Below(kNames));
    op.offset = random_.Below(4) == 0 ? random_.Below(2'000'000) : random_.Below(200'000);
    op.number = random_.Next();
    if (op.kind < 50) op.data = Data();
    op.length = 1 + random_.Below(random_.OneIn(2) ? 10'000 : 1'000'000);
    return op;
  }

 private:
  // Returns data of any kind: small or large; new, repeated, or zero.
  Bytes Data() {
    static constexpr size_t kSizes[] = {1, 100, 4096, 5000, 70'000, 300'000, 1u << 20};
    const size_t size = 1 + random_.Below(kSizes[random_.Below(7)]);
    switch (random_.Below(4)) {
      case 0:
        return Bytes(size, 0);
      case 1: {
        const size_t at = random_.Below(pool_.size() - size + 1);
        return Bytes(pool_.begin() + static_cast<ptrdiff_t>(at),
                     pool_.begin() + static_cast<ptrdiff_t>(at + size));
      }
      default:
        return RandomBytes(random_.Next(), size);
    }
  }

  Random random_;
  Bytes pool_;
};

std::string NameOf(const Status& status) { return std::string(StatusCodeName(status.code())); }

// Allocates or zeroes a range of `file`, or copies from `file` to op.other_name in the directory
// `other`. Opens the file that it changes, and usually closes it again. If `file` is 0, does
// nothing.
std::string RunOnRange(FileSystem& fs, const Operation& op, InodeNumber file, InodeNumber other) {
  if (file == 0) return "none";
  if (op.kind < 104) {
    const auto mode = op.kind < 102 ? AllocateMode::kZero : AllocateMode::kReserve;
    REQUIRE_OK(fs.OpenFile(file, false));
    Status allocated = fs.Allocate(file, mode, op.offset, op.length, op.number % 2 == 0);
    fs.ReleaseFile(file);
    return NameOf(allocated);
  }
  auto target = fs.Lookup(other, op.other_name);
  if (!target.ok()) return "no target";
  fs.Forget(target->inode, 1);
  if ((target->mode & 0170000) != 0100000) return "no file";
  const uint64_t begin = op.number % 3 == 0 ? 0 : op.offset / 2;
  const uint64_t to = op.number % 5 < 2 ? begin : op.offset;
  const uint64_t length = op.number % 3 == 0 ? uint64_t{3} << 20 : op.length;
  REQUIRE_OK(fs.OpenFile(target->inode, false));
  auto copied = fs.CopyRange(file, begin, target->inode, to, length);
  if (op.number % 7 > 0) fs.ReleaseFile(target->inode);  // else it stays open
  return copied.ok() ? std::to_string(*copied) : NameOf(copied.status());
}

// Applies the operation; returns its result in words.
std::string Run(FileSystem& fs, const Operation& op) {
  auto name_of = [](const Status& status) { return std::string(StatusCodeName(status.code())); };
  auto directory = Resolve(fs, op.directory);
  auto other = Resolve(fs, op.other_directory);
  if (!directory.ok() || !other.ok()) {
    return "no directory " + name_of(directory.status()) + name_of(other.status());
  }
  auto made = [&](const Result<Attributes>& result) {
    if (result.ok()) fs.Forget(result->inode, 1);
    return name_of(result.status());
  };
  auto target = fs.Lookup(*directory, op.name);
  if (target.ok()) fs.Forget(target->inode, 1);
  const bool is_file = target.ok() && (target->mode & 0170000) == 0100000;
  if (op.kind == kSetAcl) {
    if (!target.ok()) return "none";
    const InodeNumber inode = op.number % 3 == 0 ? *directory : target->inode;
    static constexpr std::array kLists = {
        "u::rwx,g::r-x,o::---", "u::rwx,u:1:rw-,g::r--,m::rw-,o::r--",
        "u::rwx,u:1:rw-,g::rwx,m::r--,o::rw-", "u::rwx,u:1:rwx,g::---,o::---"};
    const std::string_view name = op.number % 2 == 0 ? kAccessAclName : kDefaultAclName;
    if (op.number % 10 < 2) return name_of(fs.RemoveXattr(inode, name));
    return name_of(fs.SetXattr(
        inode, name, AclFromText(kLists.at((op.number >> 8) % kLists.size())), XattrMode::kSet));
  }
  if (op.kind < 15) {  // create and write, or write to an existing file
    InodeNumber inode = is_file ? target->inode : 0;
    if (is_file) {
      REQUIRE_OK(fs.OpenFile(inode, false));
    } else {
      auto created = fs.CreateFile(*directory, op.name, 0640, kCaller);
      if (!created.ok()) return name_of(created.status());
      inode = created->inode;
      fs.Forget(inode, 1);
    }
    Status written = fs.Write(inode, 0, op.data);
    if (op.number % 3 != 0) fs.ReleaseFile(inode);  // else it stays open
    return name_of(written);
  }
  if (op.kind < 50) {
    if (!is_file) return "none";
    const uint64_t offset = op.kind < 30 ? target->size : op.offset;
    const auto privileges = static_cast<Privileges>(op.number % 3);
    Status written = fs.Write(target->inode, offset, op.data, privileges);
    if (op.number % 2 == 0) {
      REQUIRE_OK(fs.OpenFile(target->inode, false));
      fs.ReleaseFile(target->inode);  // folds
    }
    return name_of(written);
  }
  if (op.kind < 58) {
    if (!is_file) return "none";
    AttributeChange change;
    change.size = op.number % 3 == 0 ? op.offset * 3 : op.offset / 2;
    auto changed = fs.SetAttributes(target->inode, change);
    return name_of(changed.status());
  }
  if (op.kind < 62) {
    if (!target.ok()) return "none";
    AttributeChange change;
    change.mode = static_cast<uint32_t>(op.number & 07777);
    change.uid = static_cast<uint32_t>(op.number >> 20);
    change.mtime = static_cast<int64_t>(op.number >> 8);
    change.kill_privileges = op.number % 5 == 0;
    auto changed = fs.SetAttributes(target->inode, change);
    return name_of(changed.status());
  }
  if (op.kind < 70)
    return name_of(fs.Rename(*directory, op.name, *other, op.other_name, RenameMode::kReplace));
  if (op.kind < 72)
    return name_of(fs.Rename(*directory, op.name, *other, op.other_name, RenameMode::kExchange));
  if (op.kind < 74)
    return name_of(fs.Rename(*directory, op.name, *other, op.other_name, RenameMode::kNoReplace));
  if (op.kind < 75) {  // write a file first, and then give it a name
    auto temporary = fs.MakeTemporaryFile(*directory, 0600, kCaller);
    REQUIRE_OK(temporary);
    REQUIRE_OK(fs.Write(temporary->inode, 0, RandomBytes(op.number, op.number % 100'000)));
    const std::string linked = made(fs.Link(temporary->inode, *other, op.other_name));
    if (op.number % 3 != 0) fs.ReleaseFile(temporary->inode);
    fs.Forget(temporary->inode, 1);
    return linked;
  }
  if (op.kind < 79)
    return target.ok() ? made(fs.Link(target->inode, *other, op.other_name)) : "none";
  if (op.kind < 85) return name_of(fs.Unlink(*directory, op.name));
  if (op.kind < 88) return made(fs.MakeSymlink(*directory, op.name, op.other_name, kCaller));
  if (op.kind < 91) return made(fs.MakeDirectory(*directory, op.name, 0750, kCaller));
  if (op.kind < 94) return name_of(fs.RemoveDirectory(*directory, op.name));
  if (op.kind < 97) {
    if (!target.ok()) return "none";
    const std::string value(op.number % 300, 'v');
    const std::string name = op.number % 4 == 0 ? "security.capability" : "user." + op.other_name;
    return name_of(fs.SetXattr(target->inode, name, value, XattrMode::kSet));
  }
  if (op.kind < 99)
    return target.ok() ? name_of(fs.RemoveXattr(target->inode, "user." + op.other_name)) : "none";
  if (op.kind < 100) return made(fs.MakeNode(*directory, op.name, 0010644, 0, kCaller));
  return RunOnRange(fs, op, is_file ? target->inode : 0, *other);
}

std::string Describe(FileSystem& fs, InodeNumber inode, const std::string& path) {
  auto attributes = fs.GetAttributes(inode);
  REQUIRE_OK(attributes);
  const bool directory = (attributes->mode & 0170000) == 0040000;
  std::string text =
      fmt::format("{} mode {:o} links {} uid {} size {}", path, attributes->mode, attributes->links,
                  attributes->uid, directory ? 0 : attributes->size);
  auto names = fs.ListXattrs(inode);
  REQUIRE_OK(names);
  std::sort(names->begin(), names->end());
  for (const std::string& name : *names) {
    auto value = fs.GetXattr(inode, name);
    REQUIRE_OK(value);
    text += fmt::format(" {}={}", name, IsAclName(name) ? AclToText(*value) : *value);
  }
  if ((attributes->mode & 0170000) == 0120000) text += " -> " + *fs.ReadLink(inode);
  return text;
}

// Requires that the trees below two directories are the same.
void RequireSame(FileSystem& fs, InodeNumber inode, FileSystem& model, InodeNumber model_inode,
                 const std::string& path) {
  REQUIRE(Describe(fs, inode, path) == Describe(model, model_inode, path));
  const uint32_t type = fs.GetAttributes(inode)->mode & 0170000;
  if (type == 0100000) {
    auto bytes = ReadFile(fs, inode);
    INFO(path);
    REQUIRE_OK(bytes);
    REQUIRE((*bytes == *ReadFile(model, model_inode)));
  }
  if (type != 0040000) return;
  std::vector<std::string> names = ListNames(fs, inode);
  std::vector<std::string> model_names = ListNames(model, model_inode);
  std::sort(names.begin(), names.end());
  std::sort(model_names.begin(), model_names.end());
  REQUIRE(names == model_names);
  for (const std::string& name : names) {
    auto child = fs.Lookup(inode, name);
    auto model_child = model.Lookup(model_inode, name);
    REQUIRE_OK(child);
    REQUIRE_OK(model_child);
    RequireSame(fs, child->inode, model, model_child->inode, path + "/" + name);
    fs.Forget(child->inode, 1);
    model.Forget(model_child->inode, 1);
  }
}

void MakeDirectories(FileSystem& fs) {
  for (size_t i = 1; i < kDirectories; ++i) {
    auto made = fs.MakeDirectory(kRootInode, DirectoryName(i), 0755, kCaller);
    REQUIRE_OK(made);
    fs.Forget(made->inode, 1);
  }
}

}  // namespace

TEST_CASE("random operations have the same result as in the model, across remounts") {
  const uint64_t seed = GENERATE(range(1, 9));
  INFO("seed " << seed);
  MemoryFileSystem model;
  MakeStoreOptions options;
  // The index memory changes the speed, but no result.
  options.index_memory = seed % 2 == 0 ? 4u << 20 : 0;
  StoreFixture store(options);
  store.Open();
  Generator generator(seed);
  MakeDirectories(model);
  MakeDirectories(store.fs());
  for (int round = 0; round < 4; ++round) {
    for (int step = 0; step < 120; ++step) {
      const Operation op = generator.Next();
      INFO("round " << round << " step " << step << " kind " << op.kind);
      const std::string expected = Run(model, op);
      REQUIRE(Run(store.fs(), op) == expected);
    }
    RequireSame(store.fs(), kRootInode, model, kRootInode, "");
    if (round % 2 == 0) {
      store.Reopen();
    } else {
      REQUIRE_OK(store.fs().SyncAll());
      store.Crash();
      store.Open();
    }
    RequireSame(store.fs(), kRootInode, model, kRootInode, "");
  }
  REQUIRE(store.findings().empty());
  store.Close();
  RecountStore(store.path());
  // Files that were open without a name are gone after a remount, with all their data.
  store.Open();
  store.Close();
  const StoreCount count = RecountStore(store.path());
  REQUIRE(count.orphans == 0);
  REQUIRE(count.overlay_extents == 0);
}

TEST_CASE("after a crash the store has all of the last commit, and nothing later") {
  const uint64_t seed = GENERATE(range(100, 104));
  INFO("seed " << seed);
  MemoryFileSystem model;
  StoreFixture store;
  store.Open();
  Generator generator(seed);
  MakeDirectories(model);
  MakeDirectories(store.fs());
  for (int round = 0; round < 3; ++round) {
    for (int step = 0; step < 40; ++step) {
      const Operation op = generator.Next();
      const std::string expected = Run(model, op);
      REQUIRE(Run(store.fs(), op) == expected);
    }
    REQUIRE_OK(store.fs().SyncAll());
    // None of these changes is committed: they are names only, so no group fills up.
    for (int i = 0; i < 50; ++i) {
      auto made = store.fs().CreateFile(kRootInode, fmt::format("lost{}", i), 0600, kCaller);
      REQUIRE_OK(made);
      store.fs().ReleaseFile(made->inode);
    }
    store.Crash();
    RecountStore(store.path());
    store.Open();
    RequireSame(store.fs(), kRootInode, model, kRootInode, "");
  }
}

}  // namespace siltfs::testing
