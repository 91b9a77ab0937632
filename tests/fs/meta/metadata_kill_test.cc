// The crash model of metadata on RocksDB: a process that works on a store is killed at a commit's
// worst moments. It leaves a prefix of its operations, no older than the last acknowledged commit.
// (The page cache outlives the process, so this tests recovery, not the syncs;
// rocksdb_store_test.cc tests the syncs.)
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "fs/rocksdb/rocksdb_store.h"
#include "store/env/posix_env.h"
#include "tests/fs/meta/metadata_test_support.h"
#include "tests/fs/meta/numbered_operations.h"
#include "tests/support/temporary_directory.h"

extern char** environ;

namespace siltfs {
namespace {

using testing::NumberedOperations;
using testing::Operation;

// Large enough for write buffers to be flushed while the process works.
const NumberedOperations kOperations(5, 200, 20000);

enum class Moment { kPreparing, kWritten, kBetween };
constexpr int kMoments = 3;

// Kills the process when commit `number` reaches `moment`.
class Killer final : public CommitParticipant {
 public:
  Killer(uint64_t number, Moment moment) : number_(number), moment_(moment) {}
  Status PrepareCommit(uint64_t number, std::vector<Mutation>& /*extra*/) override {
    if (number == number_ && moment_ == Moment::kPreparing) _exit(0);
    return Status::Ok();
  }
  void CommitDone(uint64_t number) override {
    if (number == number_ && moment_ == Moment::kWritten) _exit(0);
  }

 private:
  const uint64_t number_;
  const Moment moment_;
};

// Continues after the store's last operation, reports each commit on `pipe`, and is killed about 20
// commits later.
[[noreturn]] void Work(const std::string& path, Moment moment, int pipe) {
  KvStoreOptions options;
  options.path = path;
  const auto env = NewPosixEnv();
  auto kv = OpenRocksDbStore(*env, options);
  if (!kv.ok()) _exit(1);
  MetadataOptions metadata;
  metadata.group_bytes = 1u << 20;
  metadata.commit_interval = std::chrono::hours(1);
  const Result<std::optional<std::string>> last = (*kv)->Get(kCommitNumberKey);
  if (!last.ok()) _exit(2);
  uint64_t commit = 0;
  if (*last) commit = static_cast<uint8_t>((**last)[0]);  // there are fewer than 256
  Killer killer(commit + 20, moment);
  auto store = MetadataStore::Open(std::move(kv).value(), metadata);
  if (!store.ok()) _exit(3);
  (*store)->SetParticipant(&killer);
  for (uint64_t number = NumberedOperations::LastIn(**store) + 1;; ++number) {
    if (!(*store)->WaitForRoom().ok()) _exit(4);
    Operation operation = kOperations.Make(number);
    const auto joined = (*store)->Apply(std::move(operation.mutations), operation.differences);
    if (!joined.ok()) _exit(5);
    if (number % 9 == 0) {
      if (!(*store)->Commit(*joined).ok()) _exit(6);
      if (write(pipe, &number, sizeof number) != sizeof number) _exit(7);
    }
    if (moment == Moment::kBetween && *joined == commit + 20 && number % 9 == 5) _exit(0);
  }
}

// Runs only as the child process that another test kills.
TEST_CASE("A process at work", "[.child]") {
  const char* path = std::getenv("SILTFS_TEST_STORE");
  const char* moment = std::getenv("SILTFS_TEST_MOMENT");
  const char* pipe = std::getenv("SILTFS_TEST_PIPE");
  REQUIRE(path != nullptr);
  REQUIRE(moment != nullptr);
  REQUIRE(pipe != nullptr);
  Work(path, static_cast<Moment>(std::atoi(moment)), std::atoi(pipe));
}

// Returns the last operation acknowledged to the process.
uint64_t RunUntilItDies(const std::string& path, Moment moment) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0);
  REQUIRE(setenv("SILTFS_TEST_STORE", path.c_str(), 1) == 0);
  REQUIRE(setenv("SILTFS_TEST_MOMENT", std::to_string(static_cast<int>(moment)).c_str(), 1) == 0);
  REQUIRE(setenv("SILTFS_TEST_PIPE", std::to_string(ends[1]).c_str(), 1) == 0);
  std::string program = "/proc/self/exe";
  std::string test = "[.child]";
  char* arguments[] = {program.data(), test.data(), nullptr};
  pid_t process = 0;
  REQUIRE(posix_spawn(&process, program.c_str(), nullptr, nullptr, arguments, environ) == 0);
  close(ends[1]);
  uint64_t promised = 0;
  uint64_t number = 0;
  while (read(ends[0], &number, sizeof number) == sizeof number) promised = number;
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(process, &status, 0) == process);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  return promised;
}

TEST_CASE("A store killed again and again holds a prefix each time, and continues from there") {
  testing::TemporaryDirectory directory;
  KvStoreOptions options;
  options.path = directory / "kv";
  options.mode = KvStoreOptions::Mode::kCreate;
  const auto env = NewPosixEnv();
  REQUIRE_OK(OpenRocksDbStore(*env, options));
  uint64_t survived = 0;
  for (int round = 0; round < 2 * kMoments; ++round) {
    CAPTURE(round);
    const uint64_t promised = RunUntilItDies(options.path, static_cast<Moment>(round % kMoments));
    REQUIRE(promised > survived);
    for (const auto mode : {KvStoreOptions::Mode::kReadOnly, KvStoreOptions::Mode::kOpen}) {
      options.mode = mode;
      auto kv = OpenRocksDbStore(*env, options);
      REQUIRE_OK(kv);
      MetadataOptions metadata;
      metadata.group_bytes = 1u << 20;
      metadata.read_only = true;
      const auto store = MetadataStore::Open(std::move(kv).value(), metadata);
      REQUIRE_OK(store);
      survived = kOperations.CheckPrefix(**store);
      REQUIRE(survived >= promised);
      REQUIRE((*store)->last_commit() >= static_cast<uint64_t>(round + 1) * 19);
    }
  }
}

}  // namespace
}  // namespace siltfs
