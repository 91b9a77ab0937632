#include "tests/crash/bucket_sequence.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "tests/crash/bucket_machine.h"

namespace siltfs::testing {
namespace {

constexpr unsigned kPatience = 4;  // attempts while the network has faults

BucketMachineOptions DrawOptions(Random& random) {
  BucketMachineOptions options;
  options.threads = random.OneIn(8);
  options.segment_bytes = (16u << 10) << random.Below(4);
  options.cache_bytes = random.OneIn(2) ? uint64_t{640} << 10 : uint64_t{2} << 20;
  options.checkpoint_bytes = random.OneIn(2) ? 5000 : 40000;
  options.queue_bytes = random.OneIn(3) ? 3000 : uint64_t{1} << 20;
  return options;
}

NetworkFaults DrawFaults(Random& random, bool threads) {
  NetworkFaults faults;
  if (random.OneIn(4)) return faults;
  // Threads repeat a failed call only after a pause.
  const uint64_t most = threads ? 4 : 60;
  faults.lost_requests = random.Below(most);
  faults.lost_answers = random.Below(most);
  faults.delayed = random.Below(most);
  faults.doubled = random.Below(most);
  faults.wrong_bodies = random.Below(most / 2);
  faults.attempts = 1 + static_cast<unsigned>(random.Below(3));
  return faults;
}

CrashPolicy DrawPolicy(Random& random) {
  return {static_cast<CrashPolicy::Unsynced>(random.Below(5)), random.Next(), random.OneIn(2)};
}

class Sequence {
 public:
  Sequence(uint64_t seed, uint64_t limit, const std::function<void(const BucketPoint&)>& verdict)
      : limit_(limit), verdict_(verdict), random_(seed), network_(seed + 1) {
    options_ = DrawOptions(random_);
    faults_ = DrawFaults(random_, options_.threads);
  }

  void Run() {
    const Status ended = Begin();
    if (!ended.ok()) return Report("the beginning", ended.ToString(), false);
    const uint64_t steps = 20 + random_.Below(120);
    for (uint64_t i = 0; i < steps && !done(); ++i) {
      place_ = fmt::format("action {}", i);
      if (stale_ != nullptr && random_.OneIn(3)) ActAsStale();
      if (!done()) Act();
      const std::string violations = network_.violations();
      if (!violations.empty()) Report("the log", violations, false);
    }
    if (!done()) Finish();
  }

 private:
  bool done() const { return failed_ || points_ >= limit_; }

  void Report(const std::string& what, std::string problem, bool disk_lost) {
    ++points_;
    failed_ = failed_ || !problem.empty();
    verdict_({fmt::format("{}: {}", place_, what), std::move(problem), disk_lost});
  }
  void Fail(const std::string& what, const Status& status) {
    Report(what, status.ToString(), false);
  }

  std::unique_ptr<BucketMachine> NewMachine() {
    BucketMachineOptions options = options_;
    options.wait_for_bucket = random_.OneIn(2);
    return std::make_unique<BucketMachine>(network_, ++machines_, options);
  }

  Status Begin() {
    now_ = NewMachine();
    SILTFS_RETURN_IF_ERROR(now_->Make());
    SILTFS_RETURN_IF_ERROR(now_->Open());
    // Before its first checkpoint, the bucket has no store.
    if (options_.threads) {
      SILTFS_RETURN_IF_ERROR(now_->AwaitBucket());
    } else {
      SILTFS_RETURN_IF_ERROR(now_->Ship());
    }
    network_.SetFaults(faults_);
    return Status::Ok();
  }

  // Repeats an action that needs the bucket, at last without faults and delayed requests.
  template <typename Action>
  Status Insist(const Action& action) {
    Status status;
    for (unsigned i = 0; i <= kPatience; ++i) {
      if (i == kPatience) {
        network_.SetFaults({});
        network_.Settle();
      }
      status = action();
      if (status.ok() || status.Is(StatusCode::kStale)) break;
    }
    network_.SetFaults(faults_);
    return status;
  }

  // Reads all files without faults.
  Result<BucketFiles> Look(BucketMachine& machine) {
    network_.SetFaults({});
    auto files = machine.ReadAll();
    // After a failure, the store asks the bucket only once a second (store/bucket/outage.h).
    for (int i = 0; i < 300 && files.status().Is(StatusCode::kIoError); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      files = machine.ReadAll();
    }
    network_.SetFaults(faults_);
    return files;
  }

  void Act() {
    const uint64_t choice = random_.Below(100);
    if (choice < 42) return After("a step", StepAndSync(*now_));
    if (choice < 52) return After("maintenance", now_->Maintain(random_.Below(2)), true);
    if (choice < 66) return After("shipping", now_->Ship(), true);
    if (choice < 74) return now_->RunBackground();
    if (choice < 79) return RestartAfterKill("a kill");
    if (choice < 84) return CutPower();
    if (choice < 88) return now_->env().CutAtCall(1 + random_.Below(80));
    if (choice < 90) return CloseAndOpen();
    if (choice < 95) return LoseDisk();
    if (choice < 99) return TakeOver();
    network_.Settle();
  }

  Status StepAndSync(BucketMachine& machine) {
    SILTFS_RETURN_IF_ERROR(machine.Step(random_));
    return random_.OneIn(2) ? machine.Sync() : Status::Ok();
  }

  // Whatever failed, the process is started again. Shipping and maintenance may fail without harm.
  void After(const std::string& what, const Status& status, bool harmless = false) {
    now_->reported_in_bucket();
    if (!now_->env().PowerIsOn()) {
      now_->Crash();
      now_->env().Reboot(DrawPolicy(random_));
      return Reopen(what + " in which the power was cut");
    }
    if (status.ok() || (harmless && !now_->fenced())) return;
    if (now_->fenced())
      return Report(what, "the only writer was fenced: " + status.ToString(), false);
    RestartAfterKill(what + " that failed");
  }

  void RestartAfterKill(const std::string& what) {
    now_->reported_in_bucket();
    now_->Crash();
    Reopen(what);
  }

  void CutPower() {
    now_->reported_in_bucket();
    now_->Crash();
    now_->env().PowerCut(DrawPolicy(random_));
    Reopen("a power cut");
  }

  // The machine has crashed; its disk is there.
  void Reopen(const std::string& what) {
    now_->env().Reboot({CrashPolicy::Unsynced::kKeep, 0, false});  // disarms a cut
    const Status opened = Insist([this] { return now_->Open(); });
    if (!opened.ok()) return Fail("the open after " + what, opened);
    const auto files = Look(*now_);
    if (!files.ok()) return Fail("reading after " + what, files.status());
    const auto found = now_->Find(*files, now_->synced());
    if (!found) return Report(what, Missing(*now_, *files, now_->synced()), false);
    now_->Survived(*found);
    Report(what, "", false);
  }

  void CloseAndOpen() {
    now_->reported_in_bucket();
    const Status closed = now_->Close();
    now_->Crash();
    if (!now_->env().PowerIsOn()) now_->env().Reboot(DrawPolicy(random_));
    if (closed.ok() && random_.OneIn(3) && !CheckClean(*now_, "a clean close")) return;
    Reopen("a clean close");
  }

  bool CheckClean(BucketMachine& machine, const std::string& what) {
    network_.SetFaults({});
    const auto findings = machine.Check();
    network_.SetFaults(faults_);
    if (findings.ok() && findings->empty()) return true;
    Report("fsck after " + what, findings.ok() ? *findings : findings.status().ToString(), false);
    return false;
  }

  static std::string Missing(const BucketMachine& machine, const BucketFiles& files, size_t least) {
    const auto any = machine.Find(files, 0);
    return any ? fmt::format("the files are those after step {}, but {} must be there", *any, least)
               : fmt::format("the {} files are in a state that never was", files.size());
  }

  void LoseDisk() {
    const size_t required = std::max(now_->reported_in_bucket(), now_->acknowledged_in_bucket());
    now_->Crash();
    auto other = NewMachine();
    const Status opened = Insist([&] {
      SILTFS_RETURN_IF_ERROR(other->Restore());
      return other->Open();
    });
    if (!opened.ok()) return Fail("a restore", opened);
    Adopt(std::move(other), required, "a lost disk");
    if (!failed_) last_lost_ = nullptr;
  }

  // The other machine is open. It has the state of one of the steps of the machine until now.
  std::optional<size_t> Adopt(std::unique_ptr<BucketMachine> other, size_t required,
                              const std::string& what) {
    const auto files = Look(*other);
    if (!files.ok()) {
      Fail("reading after " + what, files.status());
      return std::nullopt;
    }
    const auto found = now_->Find(*files, required);
    if (!found) {
      Report(what, Missing(*now_, *files, required), true);
      return std::nullopt;
    }
    other->BeginHistory(*files);
    last_lost_ = std::exchange(now_, std::move(other));
    Report(what, "", true);
    if (random_.OneIn(3) && !done()) CloseAndCheck(what);
    return found;
  }

  void CloseAndCheck(const std::string& what) {
    const Status closed = now_->Close();
    if (!closed.ok()) return RestartAfterKill("a close that failed");
    if (CheckClean(*now_, what)) Reopen("fsck");
  }

  void TakeOver() {
    if (stale_ != nullptr) EndStale();
    if (done()) return;
    auto other = NewMachine();
    unsigned attempts = 0;
    const Status opened = Insist([&] {
      ++attempts;
      SILTFS_RETURN_IF_ERROR(other->Restore(random_.OneIn(2)));
      // The first machine may go on meanwhile. Then the restored store may be too old.
      if (attempts < kPatience && random_.OneIn(2)) {
        const Status stepped = StepAndSync(*now_);
        if (stepped.ok()) now_->Ship().IgnoreError("the other machine may be ahead");
      }
      const Status status = other->Open();
      return status.Is(StatusCode::kStale) ? Status(StatusCode::kIoError, "too old") : status;
    });
    if (!opened.ok()) return Fail("a takeover", opened);
    const size_t required = std::max(now_->reported_in_bucket(), now_->acknowledged_in_bucket());
    const auto found = Adopt(std::move(other), required, "a takeover");
    if (!found) return;
    stale_ = std::move(last_lost_);
    stale_has_ = *found;
  }

  // The machine that was taken over does not know it yet.
  void ActAsStale() {
    const uint64_t choice = random_.Below(10);
    Status status;
    if (!stale_->env().PowerIsOn()) return EndStale();
    if (choice < 5) {
      status = StepAndSync(*stale_);
    } else if (choice < 6) {
      stale_->Maintain(random_.Below(2)).IgnoreError("it may wait for the bucket");
    } else if (choice < 8) {
      status = stale_->Ship();
    } else {
      stale_->RunBackground();
    }
    if (stale_->fenced() || !status.ok()) EndStale();
  }

  void EndStale() {
    const std::unique_ptr<BucketMachine> stale = std::move(stale_);
    const size_t claimed = std::max(stale->acknowledged_in_bucket(), stale->reported_in_bucket());
    if (claimed > stale_has_) {
      return Report(
          "fencing",
          fmt::format("{} said that the bucket has step {}, but the machine that has taken "
                      "over has only {}",
                      stale->host(), claimed, stale_has_),
          true);
    }
    stale->Crash();
    stale->env().Reboot(DrawPolicy(random_));
    network_.SetFaults({});
    const Status opened = stale->Open();
    network_.SetFaults(faults_);
    if (opened.ok()) Report("fencing", "the fenced machine can open its store again", true);
    opened.IgnoreError("it must be refused");
  }

  // Everything is shipped. A machine that is lost then loses nothing.
  void Finish() {
    place_ = "the end";
    if (stale_ != nullptr) EndStale();
    network_.Settle();
    faults_ = {};
    network_.SetFaults({});
    if (!done()) RestartAfterKill("a kill");
    if (done()) return;
    const Status synced = now_->Sync();
    if (!synced.ok()) return Fail("the last sync", synced);
    const Status shipped = options_.threads ? now_->Close() : now_->Ship();
    if (!shipped.ok()) return Fail("the last shipping", shipped);
    const size_t required = options_.threads ? now_->reported_in_bucket() : now_->last();
    now_->Crash();
    auto other = NewMachine();
    const Status restored = other->Restore();
    if (!restored.ok()) return Fail("the last restore", restored);
    const Status opened = other->Open();
    if (!opened.ok()) return Fail("the last open", opened);
    Adopt(std::move(other), required, "the last lost disk");
  }

  const uint64_t limit_;
  const std::function<void(const BucketPoint&)>& verdict_;
  Random random_;
  BucketNetwork network_;
  BucketMachineOptions options_;
  NetworkFaults faults_;
  unsigned machines_ = 0;
  std::unique_ptr<BucketMachine> now_;
  std::unique_ptr<BucketMachine> last_lost_;  // whose place `now_` has taken
  std::unique_ptr<BucketMachine> stale_;      // was taken over, and still lives
  size_t stale_has_ = 0;                      // the last of its steps that the other machine has
  std::string place_ = "the beginning";
  uint64_t points_ = 0;
  bool failed_ = false;
};

}  // namespace

void RunBucketSequence(uint64_t seed, uint64_t limit,
                       const std::function<void(const BucketPoint&)>& verdict) {
  Sequence(seed, limit, verdict).Run();
}

}  // namespace siltfs::testing
