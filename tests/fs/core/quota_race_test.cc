// The count for a new quota, while threads change the tree: the usage is what a walk finds.
#include <fmt/format.h>

#include <atomic>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fs/interface/entry_store.h"
#include "tests/fs/core/quota_fixture.h"

namespace siltfs::testing {
namespace {

constexpr int kThreads = 3;
constexpr int kDirectories = 12;
constexpr int kCounts = 8;

// What a step may answer, because another thread was faster or the names do not fit.
bool IsExpected(const Status& status) {
  for (const StatusCode code :
       {StatusCode::kOk, StatusCode::kNotFound, StatusCode::kAlreadyExists, StatusCode::kNotEmpty,
        StatusCode::kIsADirectory, StatusCode::kNotADirectory, StatusCode::kOtherQuota,
        StatusCode::kStale, StatusCode::kInvalidArgument, StatusCode::kNotPermitted}) {
    if (status.Is(code)) return true;
  }
  return false;
}

struct RaceFixture : QuotaFixture {
  InodeNumber dir = MakeDir(*fs, kRootInode, "dir");
  std::vector<InodeNumber> directories{dir};
  std::vector<InodeNumber> outside{MakeDir(*fs, kRootInode, "outside")};

  RaceFixture() {
    for (int i = 0; i < kDirectories; ++i) {
      directories.push_back(
          MakeDir(*fs, directories[static_cast<size_t>(i) / 2], fmt::format("d{}", i)));
      for (int j = 0; j < 4; ++j) File(directories.back(), fmt::format("f{}", j), 1000);
    }
  }

  Status Step(std::mt19937& random) {
    const auto below = [&random](size_t limit) { return random() % limit; };
    const auto some_directory = [&] {
      return below(20) == 0 ? outside[0] : directories[below(directories.size())];
    };
    const auto name = [&] {
      return below(3) == 0 ? fmt::format("d{}", below(kDirectories)) : fmt::format("f{}", below(6));
    };
    const InodeNumber parent = some_directory();
    const std::string at = name();
    switch (below(8)) {
      case 0:
        return TryMake(parent, fmt::format("f{}", below(6)));
      case 1: {
        const auto made = fs->MakeDirectory(parent, at, 0755, kCaller);
        if (made.ok()) fs->Forget(made->inode, 1);
        return made.status();
      }
      case 2:
        return fs->Unlink(parent, at);
      case 3: {
        const auto found = fs->Lookup(parent, at);
        SILTFS_RETURN_IF_ERROR(found.status());
        const auto linked = fs->Link(found->inode, some_directory(), name());
        if (linked.ok()) fs->Forget(found->inode, 1);
        fs->Forget(found->inode, 1);
        return linked.status();
      }
      case 4: {
        const auto found = fs->Lookup(parent, at);
        SILTFS_RETURN_IF_ERROR(found.status());
        Status written = fs->OpenFile(found->inode, below(4) == 0);
        if (written.ok()) {
          written = fs->Write(found->inode, below(5000), RandomBytes(random(), 1 + below(5000)));
          fs->ReleaseFile(found->inode);
        }
        fs->Forget(found->inode, 1);
        return written;
      }
      case 5: {
        const auto found = fs->Lookup(parent, at);
        SILTFS_RETURN_IF_ERROR(found.status());
        const bool file = (found->mode & 0170000) == 0100000;
        const auto cloned =
            file ? fs->entries()
                       .Clone({.source = found->inode, .parent = some_directory(), .name = name()})
                       .status()
                 : Status::Ok();
        fs->Forget(found->inode, 1);
        return cloned;
      }
      default: {
        const RenameMode mode = below(3) == 0 ? RenameMode::kExchange : RenameMode::kReplace;
        return fs->Rename(parent, at, some_directory(), name(), mode);
      }
    }
  }
};

TEST_CASE_METHOD(RaceFixture, "a count is exact while threads change the tree") {
  std::atomic<bool> stop = false;
  std::vector<Status> unexpected(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(static_cast<uint32_t>(i + 1));
      while (!stop && unexpected[i].ok()) {
        Status stepped = Step(random);
        if (!IsExpected(stepped)) unexpected[i] = std::move(stepped);
      }
    });
  }
  Status counted;
  for (int i = 0; i < kCounts && counted.ok(); ++i) {
    if (i > 0) counted = quotas().Remove(dir);
    if (!counted.ok()) break;
    // kInUse: clones run one after the other.
    for (counted = Status(StatusCode::kInUse, ""); counted.Is(StatusCode::kInUse);)
      counted = quotas().Set(dir, {.bytes = 0, .files = 1u << 20}, {}).status();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : unexpected) CHECK(status.ToString() == Status::Ok().ToString());
  REQUIRE_OK(counted);
  std::set<InodeNumber> found;
  uint64_t bytes = 0;
  AddBelow(dir, found, bytes);
  uint64_t lost = 0;
  for (const InodeNumber inode : found) lost += HasQuota(inode) ? 0 : 1;
  CHECK(lost == 0);
  // A file that was linked to the outside before it was counted may have lost its other names.
  CHECK(Of(dir).files >= found.size());
  CHECK(Of(dir).bytes >= bytes);
  Recount(GENERATE(End::kClose, End::kCrash));
}

}  // namespace
}  // namespace siltfs::testing
