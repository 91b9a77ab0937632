// Random work is interrupted at random places, and any part of the unsynced segments survives. The
// check must never report a finding.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "fs/open/store_layout.h"
#include "fs/records/schema.h"
#include "fs/records/segment_record.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "store/base/random.h"
#include "store/env/posix_env.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/superblock/superblock.h"
#include "tests/fs/check/checked_store.h"
#include "tests/fs/core/directory_tree.h"
#include "tests/support/catch.h"

extern char** environ;

namespace siltfs::testing {
namespace {

class RandomWork {
 public:
  RandomWork(FileSystem& fs, uint64_t seed) : fs_(fs), random_(seed) {}

  void Step() {
    FileSystem& fs = fs_;
    const std::string name = fmt::format("file {}", random_.Below(12));
    const std::string other = fmt::format("file {}", random_.Below(12));
    const auto inode = Resolve(fs, name);
    switch (random_.Below(12)) {
      case 0:
      case 1:
      case 2:
        WriteFile(fs, name, RandomBytes(random_.Below(20), 1 + random_.Below(300'000)));
        break;
      case 3:
        WriteLargeFile(fs, name, RandomBytes(random_.Below(20), 700'000));
        break;
      case 4:
        if (inode.ok()) Overwrite(*inode);
        break;
      case 5:
        if (inode.ok()) Truncate(*inode);
        break;
      case 6:
        fs.Unlink(kRootInode, name).IgnoreError("it need not be there");
        break;
      case 7:
        fs.Rename(kRootInode, name, kRootInode, other, RenameMode::kReplace)
            .IgnoreError("as above");
        break;
      case 8:
        if (inode.ok()) {
          fs.SetXattr(*inode, "user.x", other, XattrMode::kSet).IgnoreError("as above");
        }
        break;
      case 9:
        if (inode.ok() && fs.Link(*inode, kRootInode, other).ok()) fs.Forget(*inode, 1);
        break;
      case 10:
        // The file stays an orphan until the crash, because no Forget follows.
        if (fs.Lookup(kRootInode, name).ok()) fs.Unlink(kRootInode, name).IgnoreError("as above");
        if (auto made = fs.MakeTemporaryFile(kRootInode, 0600, kCaller); made.ok()) {
          fs.Write(made->inode, 0, RandomBytes(inode.ok() ? *inode : 0, 20'000))
              .IgnoreError("as above");
          if (fs.Link(made->inode, kRootInode, other).ok()) fs.Forget(made->inode, 1);
        }
        break;
      default:
        REQUIRE_OK(fs.SyncAll());
    }
  }

 private:
  void Overwrite(InodeNumber inode) {
    REQUIRE_OK(fs_.OpenFile(inode, false));
    REQUIRE_OK(fs_.Write(inode, random_.Below(500'000),
                         RandomBytes(random_.Next(), 1 + random_.Below(50'000))));
    if (random_.Below(2) == 0) fs_.ReleaseFile(inode);  // if not, it is open until the crash
  }
  void Truncate(InodeNumber inode) {
    AttributeChange change;
    change.size = random_.Below(400'000);
    REQUIRE_OK(fs_.SetAttributes(inode, change));
  }

  FileSystem& fs_;
  Random random_;
};

// Does the work in a process of its own, which is killed, or exits after an unmount.
void WorkAndDie(const CheckedStore& store, uint64_t seed, bool unmount) {
  std::vector<std::string> environment = {"SILTFS_TEST_STORE=" + store.path(),
                                          fmt::format("SILTFS_TEST_SEED={}", seed),
                                          fmt::format("SILTFS_TEST_UNMOUNT={}", unmount ? 1 : 0)};
  std::vector<char*> variables;
  for (std::string& variable : environment) variables.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(nullptr);
  std::string program = "/proc/self/exe";
  std::string test = "A process at random work";
  char* arguments[] = {program.data(), test.data(), nullptr};
  posix_spawn_file_actions_t silent;
  REQUIRE(posix_spawn_file_actions_init(&silent) == 0);
  REQUIRE(posix_spawn_file_actions_addopen(&silent, 1, "/dev/null", O_WRONLY, 0) == 0);
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, program.c_str(), &silent, nullptr, arguments, variables.data()) == 0);
  REQUIRE(posix_spawn_file_actions_destroy(&silent) == 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 42);
}

// Loses bytes of segments that were never synced, or replaces them by garbage.
void LoseUnsynced(CheckedStore& store, Random& random) {
  auto kv = OpenRocksDbStore(store.fixture().env(), {.path = MetadataPath(store.path()),
                                                     .mode = KvStoreOptions::Mode::kReadOnly});
  REQUIRE_OK(kv);
  auto listing = ListSegments(store.fixture().env(), store.path());
  REQUIRE_OK(listing);
  const auto state = ReadSuperblock(store.fixture().env(), store.path());
  REQUIRE_OK(state);
  const StoreUuid uuid = state->superblock.uuid;
  const BlockCodec codec;
  for (const SegmentId id : listing->ids) {
    auto value = (*kv)->Get(SegmentKey(id));
    REQUIRE_OK(value);
    uint64_t durable = 0;
    if (*value) {
      auto record = SegmentRecord::Decode(**value);
      REQUIRE_OK(record);
      if (record->sealed) continue;
      durable = record->length;
    }
    const std::string path = SegmentPath(store.path(), id);
    const auto reader = SegmentReader::Open(store.fixture().env(), store.path(), {uuid, id}, codec);
    REQUIRE_OK(reader);
    // If there is a footer, all blocks are durable: they are synced before the footer is written.
    const auto trailer = (*reader)->ReadTrailer();
    if (trailer.ok()) durable = std::max<uint64_t>(durable, trailer->data_end);
    std::string bytes = ReadText(path);
    if (bytes.size() <= durable) continue;
    const uint64_t from = durable + random.Below(bytes.size() - durable);
    switch (random.Below(4)) {
      case 0:
        bytes.resize(from);
        break;
      case 1:
        std::fill(bytes.begin() + static_cast<ptrdiff_t>(from), bytes.end(), '\0');
        break;
      case 2:
        bytes[from] = static_cast<char>(~bytes[from]);
        break;
      default:
        continue;
    }
    WriteText(path, bytes);
  }
}

}  // namespace

// Runs only as the child process that another test kills.
TEST_CASE("A process at random work", "[.child]") {
  const char* path = std::getenv("SILTFS_TEST_STORE");
  const char* seed = std::getenv("SILTFS_TEST_SEED");
  const char* unmount = std::getenv("SILTFS_TEST_UNMOUNT");
  REQUIRE((path != nullptr && seed != nullptr && unmount != nullptr));
  const auto env = NewPosixEnv();
  FileSystemOptions options;
  options.store = path;
  options.commit_interval = std::chrono::hours(1);
  auto fs = FileSystem::Open(*env, options);
  REQUIRE_OK(fs);
  const uint64_t number = std::strtoull(seed, nullptr, 10);
  RandomWork work(**fs, number);
  for (uint64_t steps = Random(number).Below(25); steps > 0; --steps) work.Step();
  if (unmount[0] == '1') REQUIRE_OK((*fs)->Close());
  _exit(42);
}

TEST_CASE("no crash of random work leaves a finding") {
  const uint64_t seed = GENERATE(range(1, 9));
  INFO("seed " << seed);
  CheckedStore store(seed % 3 == 0 ? IndexEngine::kMap : IndexEngine::kSilt);
  Random random(seed);
  for (int round = 0; round < 5; ++round) {
    INFO("round " << round);
    const bool unmount = random.Below(4) == 0;
    WorkAndDie(store, random.Next(), unmount);
    if (!unmount) LoseUnsynced(store, random);
    const CheckOutcome outcome = store.Check(random.Below(2) == 0);
    INFO(outcome.ToString());
    REQUIRE(outcome.findings.empty());
    REQUIRE(outcome.report.clean_shutdown == std::optional(unmount));
  }
}

}  // namespace siltfs::testing
