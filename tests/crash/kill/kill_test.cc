#include "tests/crash/kill/kill_test.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "tests/crash/kill/failure.h"
#include "tests/crash/kill/fill.h"
#include "tests/crash/kill/interruption.h"
#include "tests/crash/kill/judge.h"
#include "tests/crash/kill/mounted_store.h"
#include "tests/crash/kill/writers.h"

namespace siltfs::killtest {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr uint64_t kKillsPerCheck = 20;
constexpr auto kShortestLoad = microseconds(milliseconds(50));
constexpr auto kLongestLoad = microseconds(milliseconds(500));
constexpr auto kLongestRecovery = microseconds(milliseconds(60));

enum class Ending : uint8_t { kKill, kKillTwice, kUnmount };

// Returns how a round ends. Six rounds in a row contain every kind of ending.
Ending EndingOf(uint64_t round) {
  if (round % 6 == 2) return Ending::kUnmount;
  return round % 6 == 4 ? Ending::kKillTwice : Ending::kKill;
}

microseconds Between(Random& random, microseconds least, microseconds most) {
  return least + microseconds(random.Below(static_cast<uint64_t>((most - least).count())));
}

// A writer that runs on its own thread.
class RunningWriter {
 public:
  RunningWriter(unsigned number, std::string directory, RoundState& round, Tree tree, Random random,
                ByteView pool)
      : recorder_(std::move(directory), round, std::move(tree)),
        thread_([this, number, random, pool] { Work(number, random, pool); }) {}
  ~RunningWriter() { Join(); }
  RunningWriter(const RunningWriter&) = delete;
  RunningWriter& operator=(const RunningWriter&) = delete;

  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  // Call these functions after Join.
  const History& history() const { return recorder_.history(); }
  const std::optional<std::string>& failure() const { return failure_; }

 private:
  void Work(unsigned number, const Random& random, ByteView pool) {
    try {
      RunWriter(number, recorder_, random, pool);
    } catch (const MountGone&) {  // expected
    } catch (const std::exception& error) {
      failure_ = error.what();
    }
  }

  Recorder recorder_;
  std::optional<std::string> failure_;
  std::thread thread_;  // declared last, because it uses the other members
};

class KillTest {
 public:
  KillTest(const KillTestOptions& options, KillTestResult& result)
      : options_(options),
        result_(result),
        random_(options.seed),
        pool_(MakePool(random_.Next())),
        store_(options.siltfs, options.directory),
        fill_(store_.mountpoint() + "/fill", options.fill_bytes, random_.Next()),
        bases_(options.writers) {}

  void Run() {
    Prepare();
    for (uint64_t round = 0; round < options_.rounds; ++round) {
      CheckInterruption();
      RunRound(round);
      if (!result_.losses.empty()) return;
      ++result_.rounds;
      TellProgress();
    }
    for (uint64_t file = 0; file < fill_.files(); ++file) VerifyFill(file);
    store_.Unmount();
    Check();
  }

 private:
  std::string NameOf(unsigned writer) const { return fmt::format("w{}", writer); }
  std::string DirectoryOf(unsigned writer) const {
    return store_.mountpoint() + "/" + NameOf(writer);
  }

  void Prepare() {
    store_.Mount();
    for (unsigned writer = 0; writer < options_.writers; ++writer) {
      const std::string directory = DirectoryOf(writer);
      if (mkdir(directory.c_str(), 0755) != 0) throw SystemFailure("mkdir " + directory);
      const Descriptor made(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!made.valid() || fsync(made.get()) != 0) throw SystemFailure("fsync " + directory);
    }
    if (fill_.files() > 0) fill_.Write();
  }

  // Prints a line every ten seconds.
  void TellProgress() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_line_) return;
    next_line_ = now + std::chrono::seconds(10);
    fmt::print(stderr, "siltfs-killtest: {} of {} rounds, {} kills, nothing lost\n", result_.rounds,
               options_.rounds, result_.kills);
  }

  void RunRound(uint64_t round) {
    const Ending ending = EndingOf(round);
    RoundState state;
    std::vector<std::unique_ptr<RunningWriter>> writers = StartWriters(state);
    Wait(Between(random_, kShortestLoad, kLongestLoad));
    if (ending == Ending::kUnmount) {
      state.stop = true;
      for (auto& writer : writers) writer->Join();
      RequireNoFailure(writers, round);
      store_.Unmount();
      ++result_.clean_unmounts;
    } else {
      state.killing = state.stop = true;
      store_.Kill();
      ++result_.kills;
      for (auto& writer : writers) writer->Join();
      RequireNoFailure(writers, round);
      store_.Detach();
      if (result_.kills % kKillsPerCheck == 0) Check();
    }
    if (ending == Ending::kKillTwice) {
      store_.MountAndKill(Between(random_, microseconds(0), kLongestRecovery));
      ++result_.recovery_kills;
    }
    const double seconds = store_.Mount();
    if (ending != Ending::kUnmount) result_.mount_seconds.push_back(seconds);
    Verify(writers, round, ending);
    if (fill_.files() > 0) VerifyFill(random_.Below(fill_.files()));
  }

  std::vector<std::unique_ptr<RunningWriter>> StartWriters(RoundState& state) {
    const InterruptionBlocked blocked;  // inherited by the threads
    std::vector<std::unique_ptr<RunningWriter>> writers;
    for (unsigned writer = 0; writer < options_.writers; ++writer) {
      writers.push_back(std::make_unique<RunningWriter>(writer, DirectoryOf(writer), state,
                                                        bases_[writer].Copy(),
                                                        Random(random_.Next()), *pool_));
    }
    return writers;
  }

  static void Wait(microseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end && !IsInterrupted())
      std::this_thread::sleep_for(microseconds(200));
  }

  static void RequireNoFailure(const std::vector<std::unique_ptr<RunningWriter>>& writers,
                               uint64_t round) {
    for (const auto& writer : writers) {
      if (writer->failure()) throw Failure(fmt::format("round {}: {}", round, *writer->failure()));
    }
  }

  void Verify(const std::vector<std::unique_ptr<RunningWriter>>& writers, uint64_t round,
              Ending ending) {
    std::vector<ObservedTree> observed;
    std::vector<Testimony> testimonies;
    for (unsigned i = 0; i < options_.writers; ++i) observed.push_back(ReadTree(DirectoryOf(i)));
    for (unsigned i = 0; i < options_.writers; ++i) {
      const History& history = writers[i]->history();
      testimonies.push_back({NameOf(i), &bases_[i], &history, &observed[i]});
      result_.operations += history.operations.size();
      for (const auto& entry : observed[i]) {
        ++result_.files_verified;
        result_.bytes_verified += entry.second->content.size();
      }
    }
    Verdict verdict = Judge(testimonies, ending == Ending::kUnmount);
    result_.operations_kept_unasked += verdict.kept_unasked;
    result_.operations_gone += verdict.operations_gone;
    result_.torn_tails += verdict.torn_tails;
    for (const std::string& loss : verdict.losses)
      result_.losses.push_back(fmt::format("round {}: {}", round, loss));
    if (verdict.losses.empty()) bases_ = std::move(verdict.states);
  }

  void VerifyFill(uint64_t file) {
    CheckInterruption();
    result_.bytes_verified += fill_.Verify(file);
    ++result_.files_verified;
  }

  void Check() {
    store_.Check();
    ++result_.checks;
  }

  const KillTestOptions& options_;
  KillTestResult& result_;
  Random random_;
  const std::shared_ptr<const Bytes> pool_;
  MountedStore store_;
  const Fill fill_;
  std::chrono::steady_clock::time_point next_line_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::vector<Tree> bases_;  // by writer: the durable tree
};

}  // namespace

KillTestResult RunKillTest(const KillTestOptions& options) {
  KillTestResult result;
  try {
    KillTest(options, result).Run();
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    CheckInterruption();  // an interruption may have made a command fail
    result.losses.push_back(error.what());
  }
  return result;
}

}  // namespace siltfs::killtest
