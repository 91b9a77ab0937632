// Random operations in and around quotas, with crashes, snapshots and rollbacks. The usage must be
// the sum of what the files show at any time, never grow beyond a limit, and be what fsck counts.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "fs/interface/entry_store.h"
#include "fs/interface/snapshots.h"
#include "tests/fs/core/quota_fixture.h"
#include "tests/support/test_scale.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kBytesLimit = 600 << 10;
constexpr uint64_t kFilesLimit = 25;

struct Usage {
  uint64_t bytes = 0;
  uint64_t files = 0;
  bool operator==(const Usage&) const = default;
};

class History : public QuotaFixture {
 public:
  explicit History(uint64_t seed) : random_(seed) {
    for (const char* name : {"a", "b", "free"}) {
      const InodeNumber made = MakeDir(*fs, kRootInode, name);
      MakeDir(*fs, made, "sub");
    }
  }

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      INFO("step " << i);
      Step();
      CheckUsage();
    }
    ReleaseAll();
    Recount(End::kClose);
    CheckUsage();
  }

 private:
  uint64_t Number(uint64_t below) { return random_() % below; }

  // "a", "b/sub" and so on.
  std::string SomeDirectory() {
    const std::string top(std::vector<std::string>{"a", "b", "free"}[Number(3)]);
    return Number(2) == 0 ? top : top + "/sub";
  }
  std::string SomeName() { return fmt::format("n{}", Number(8)); }
  InodeNumber At(const std::string& path) {
    const auto found = Resolve(*fs, path);
    return found.ok() ? *found : 0;
  }
  InodeNumber SomeFile() {
    const InodeNumber found = At(SomeDirectory() + "/" + SomeName());
    if (found == 0) return 0;
    const auto attributes = fs->GetAttributes(found);
    return attributes.ok() && (attributes->mode & 0170000) == 0100000 ? found : 0;
  }

  // An operation may fail for any reason that a program could cause.
  static void Allow(const Status& status) {
    for (const StatusCode code :
         {StatusCode::kOk, StatusCode::kQuotaExceeded, StatusCode::kOtherQuota,
          StatusCode::kAlreadyExists, StatusCode::kNotFound, StatusCode::kNotEmpty,
          StatusCode::kIsADirectory, StatusCode::kNotADirectory, StatusCode::kInvalidArgument,
          StatusCode::kNoAttribute, StatusCode::kStale}) {
      if (status.code() == code) return;
    }
    REQUIRE_OK(status);
  }

  void Step() {
    switch (Number(22)) {
      case 0:
      case 1:
      case 2:
        return Allow(TryMake(At(SomeDirectory()), SomeName()));
      case 3:
      case 4:
      case 5:
      case 6:
        return Write();
      case 7:
        return Truncate();
      case 8:
        return Allow(fs->Unlink(At(SomeDirectory()), SomeName()));
      case 9:
        return Rename();
      case 10:
        return Link();
      case 11:
        return Copy();
      case 12:
        return Clone();
      case 13:
        return Put();
      case 14:
        return Open();
      case 15:
        return ReleaseAll();
      case 16:
        return Punch();
      case 17:
        return SetQuota();
      case 18:
        REQUIRE_OK(fs->SyncAll());
        return;
      case 19:
        if (Number(4) == 0) EndStore();
        return;
      case 20:
        if (Number(4) == 0) Snapshot();
        return;
      default:
        if (Number(6) == 0) RollBack();
    }
  }

  void Write() {
    const InodeNumber file = SomeFile();
    if (file == 0) return;
    const uint64_t offset = Number(4) * 40'000;
    const size_t length = 1 + Number(Number(2) == 0 ? 3000 : 150'000);
    Bytes data = RandomBytes(random_(), length);
    if (Number(5) == 0) std::ranges::fill(data, 0);
    REQUIRE_OK(fs->OpenFile(file, false));
    Allow(fs->Write(file, offset, data));
    fs->ReleaseFile(file);
  }
  void Truncate() {
    const InodeNumber file = SomeFile();
    if (file == 0) return;
    AttributeChange change;
    change.size = Number(200'000);
    REQUIRE_OK(fs->SetAttributes(file, change));
  }
  void Punch() {
    const InodeNumber file = SomeFile();
    if (file == 0) return;
    REQUIRE_OK(fs->Allocate(file, AllocateMode::kZero, Number(100'000), 1 + Number(50'000), true));
  }
  void Rename() {
    const auto mode = Number(3) == 0 ? RenameMode::kExchange : RenameMode::kReplace;
    const std::string name = Number(8) == 0 ? "sub" : SomeName();
    Allow(fs->Rename(At(SomeDirectory()), name, At(SomeDirectory()), SomeName(), mode));
  }
  void Link() {
    const InodeNumber file = SomeFile();
    if (file == 0) return;
    const auto linked = fs->Link(file, At(SomeDirectory()), SomeName());
    Allow(linked.status());
    if (linked.ok()) fs->Forget(file, 1);
  }
  void Copy() {
    const InodeNumber source = SomeFile();
    const InodeNumber target = SomeFile();
    if (source == 0 || target == 0) return;
    Allow(fs->CopyRange(source, Number(50'000), target, Number(100'000), 1 + Number(100'000))
              .status());
  }
  void Clone() {
    const InodeNumber source = At(SomeDirectory());
    const InodeNumber parent = At(SomeDirectory());
    if (source == 0 || parent == 0) return;
    const std::string name = SomeName();
    Allow(fs->entries().Clone({.source = source, .parent = parent, .name = name}).status());
  }
  void Put() {
    const InodeNumber parent = At(SomeDirectory());
    if (parent == 0) return;
    const Bytes data = RandomBytes(random_(), 1 + Number(60'000));
    const std::vector<ExtentImage> extents = {{.offset = Number(1000), .bytes = data}};
    const std::string name = SomeName();
    const EntryImage image{.parent = parent,
                           .name = name,
                           .mode = 0100644,
                           .size = extents[0].offset + data.size(),
                           .extents = extents};
    Allow(fs->entries().Put(std::vector{image})[0].status());
  }
  void Open() {
    const InodeNumber file = SomeFile();
    if (file == 0 || open_.contains(file)) return;
    REQUIRE_OK(fs->OpenFile(file, false));
    open_.insert(file);
  }
  void ReleaseAll() {
    for (const InodeNumber file : open_) fs->ReleaseFile(file);
    open_.clear();
  }
  void SetQuota() {
    const std::string path = Number(2) == 0 ? "a" : "b";
    const InodeNumber directory = At(path);
    if (Number(4) == 0) {
      Allow(quotas().Remove(directory));
    } else {
      Count(directory);
    }
  }
  // Sets the quota, and does other steps while the inodes are counted.
  void Count(InodeNumber directory) {
    const WantedLimits limits{.bytes = kBytesLimit, .files = kFilesLimit};
    if (counting_) {
      const Status set = quotas().Set(directory, limits, {}).status();
      if (!set.Is(StatusCode::kInUse)) Allow(set);
      return;
    }
    counting_ = true;
    const auto set = quotas().Set(directory, limits, [this] {
      for (uint64_t steps = Number(6); steps > 0; --steps) Step();
      return Status::Ok();
    });
    counting_ = false;
    if (set.status().Is(StatusCode::kAborted)) return;  // by a rollback
    Allow(set.status());
    if (!set.ok()) return;
    std::set<InodeNumber> below;
    AddBelow(directory, below);
    for (const InodeNumber inode : below) REQUIRE(HasQuota(inode));
  }
  void EndStore() {
    if (counting_) return;
    const End end = Number(2) == 0 ? End::kClose : End::kCrash;
    if (end == End::kClose) ReleaseAll();
    open_.clear();
    Recount(end);
  }
  void Snapshot() { REQUIRE_OK(fs->snapshots().Create(fmt::format("s{}", snapshots_++))); }
  void RollBack() {
    if (snapshots_ == 0) return;
    ReleaseAll();
    REQUIRE_OK(fs->snapshots().RollBack(fmt::format("s{}", Number(snapshots_)),
                                        fmt::format("s{}", snapshots_), nullptr));
    ++snapshots_;
  }

  // Adds all inodes that have names below the directory.
  void AddBelow(InodeNumber directory, std::set<InodeNumber>& found) {
    for (const std::string& name : ListNames(*fs, directory)) {
      const auto entry = fs->Lookup(directory, name);
      REQUIRE_OK(entry);
      fs->Forget(entry->inode, 1);
      const bool is_new = found.insert(entry->inode).second;
      if (is_new && (entry->mode & 0170000) == 0040000) AddBelow(entry->inode, found);
    }
  }

  // A file may count against a quota and have names only outside of its directory: it had a name
  // below when the quota was set.
  void CheckUsage() {
    const auto list = quotas().List();
    REQUIRE_OK(list);
    for (const QuotaInfo& quota : *list) {
      Usage shown;
      for (const InodeNumber inode : InodesOf(quota)) {
        const auto attributes = fs->GetAttributes(inode);
        REQUIRE_OK(attributes);
        ++shown.files;
        shown.bytes += attributes->allocated_bytes;
      }
      // The thread that folds idle files may have released overwritten bytes meanwhile.
      const QuotaInfo now = Of(quota.directory);
      if (now.bytes != quota.bytes) return CheckUsage();
      INFO("quota of inode " << quota.directory);
      REQUIRE(Usage{quota.bytes, quota.files} == shown);
    }
  }
  std::vector<InodeNumber> InodesOf(const QuotaInfo& quota) {
    std::set<InodeNumber> candidates = open_;
    std::set<InodeNumber> named;
    AddBelow(kRootInode, named);
    candidates.insert(named.begin(), named.end());
    std::vector<InodeNumber> found;
    for (const InodeNumber inode : candidates) {
      if (inode == quota.directory) continue;
      const auto of = quotas().Of(inode);
      REQUIRE_OK(of);
      if (*of && (*of)->directory == quota.directory) found.push_back(inode);
    }
    return found;
  }

  std::mt19937_64 random_;
  std::set<InodeNumber> open_;
  uint64_t snapshots_ = 0;
  bool counting_ = false;  // within the Set of a quota
};

TEST_CASE("the usage of quotas is exact through a history of operations and crashes") {
  for (uint64_t seed = 1; seed <= Share(60); ++seed) {
    INFO("seed " << seed);
    History(seed).Run(400);
  }
}

}  // namespace
}  // namespace siltfs::testing
