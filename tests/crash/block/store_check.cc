#include "tests/crash/block/store_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "tests/crash/kill/failure.h"
#include "tests/crash/kill/observed_tree.h"

namespace siltfs::blocktest {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

// Returns whether the writer's last call failed. Such a call may or may not have had its effect.
bool EndsWithFailure(const killtest::History& history) {
  return !history.operations.empty() && history.operations.back().end == killtest::kNever;
}

class Check {
 public:
  Check(Bench& bench, const Recording& recording, const StoreDemand& demand)
      : bench_(bench), recording_(recording), demand_(demand) {}

  StoreVerdict Run() {
    try {
      const LoopDevice loop(bench_.disk.path());
      LowerMount lower(bench_.kind, loop.path(), bench_.lower);
      bench_.product.ClearLog();
      try {
        Look();
      } catch (const std::exception& error) {
        Report(error.what());
      }
      const int code = bench_.product.Finish(kPatience);
      if (code != 0) Report(fmt::format("the daemon ended with code {}", code));
      if (verdict_.problems.empty()) CheckOnDisk("afterwards", demand_.data);
      lower.Unmount();
    } catch (const LowerFailure& failure) {
      verdict_.lower_failure = failure.what();
    }
    return std::move(verdict_);
  }

 private:
  void Report(std::string problem) { verdict_.problems.push_back(std::move(problem)); }

  void CheckOnDisk(const char* when, bool data) {
    const CheckReport report = bench_.product.Check(data);
    if (!report.clean()) Report(fmt::format("{}: {}", when, report.text));
  }

  void Look() {
    CheckOnDisk("before the mount", demand_.data);
    const killtest::Ended mounted = bench_.product.Mount();
    if (mounted.code != 0) {
      Report(fmt::format("siltfs mount: exit code {}: {}", mounted.code, mounted.errors));
      return;
    }
    try {
      Compare();
      CompareDatabase();
      Write();
    } catch (const std::exception& error) {
      Report(error.what());
    }
    const killtest::Ended unmounted = bench_.product.Unmount();
    if (unmounted.code != 0)
      Report(fmt::format("siltfs umount: exit code {}: {}", unmounted.code, unmounted.errors));
    if (!verdict_.problems.empty()) Report("the daemon's log: " + bench_.product.LogTail());
  }

  const Session& SessionOf() const {
    const Session* session = &recording_.sessions.front();
    for (const Session& later : recording_.sessions) {
      if (later.first <= demand_.position) session = &later;
    }
    return *session;
  }

  void Compare() {
    const Session& session = SessionOf();
    std::vector<killtest::ObservedTree> observed;
    std::vector<killtest::History> histories;
    for (const WriterRecord& writer : session.writers) {
      observed.push_back(
          killtest::ReadTree(bench_.product.options().mountpoint + "/" + writer.name));
      histories.push_back(HistoryAt(session, writer, demand_.position));
    }
    killtest::Verdict verdict = Judge(session, histories, observed);
    // If a writer's last call failed, its operation may or may not have survived. Try all
    // combinations.
    const size_t count = histories.size();
    for (uint64_t without = 1;
         demand_.everything && !verdict.losses.empty() && without < (uint64_t{1} << count);
         ++without) {
      std::vector<killtest::History> shorter = histories;
      bool possible = true;
      for (size_t i = 0; i < count; ++i) {
        if ((without >> i & 1) == 0) continue;
        possible = possible && EndsWithFailure(shorter[i]);
        if (possible) shorter[i].operations.pop_back();
      }
      if (!possible) continue;
      killtest::Verdict other = Judge(session, shorter, observed);
      if (other.losses.empty()) verdict = std::move(other);
    }
    if (!verdict.losses.empty()) {
      for (const WriterRecord& writer : session.writers)
        Report(DescribePromises(session, writer, demand_.position));
    }
    for (std::string& loss : verdict.losses) Report(std::move(loss));
    verdict_.operations_gone += verdict.operations_gone;
    verdict_.kept_unasked += verdict.kept_unasked;
  }

  killtest::Verdict Judge(const Session& session, const std::vector<killtest::History>& histories,
                          const std::vector<killtest::ObservedTree>& observed) const {
    std::vector<killtest::Testimony> testimonies;
    for (size_t i = 0; i < histories.size(); ++i) {
      testimonies.push_back(
          {session.writers[i].name, &session.writers[i].base, &histories[i], &observed[i]});
    }
    return killtest::Judge(testimonies, demand_.everything);
  }

  void CompareDatabase() {
    if (!HaveSqlite()) return;
    const auto& transactions = recording_.transactions;
    const auto count = [&](auto is) {
      return static_cast<uint64_t>(std::count_if(transactions.begin(), transactions.end(), is));
    };
    const uint64_t committed = count([&](auto& t) { return t.committed <= demand_.position; });
    const uint64_t begun = count([&](auto& t) { return t.begin <= demand_.position; });
    const std::string problem = CheckDatabase(
        bench_.product.options().mountpoint + "/sqlite/database", committed, begun, bench_.scratch);
    if (!problem.empty()) Report(problem);
  }

  // Checks that the store accepts writes again.
  void Write() {
    const std::string path = bench_.product.options().mountpoint + "/after";
    const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    Bytes bytes(100'000);
    siltfs::Random(demand_.position).Fill(bytes);
    if (!file.valid() || write(file.get(), bytes.data(), bytes.size()) < 0 ||
        fsync(file.get()) != 0)
      throw killtest::SystemFailure("write " + path);
  }

  Bench& bench_;
  const Recording& recording_;
  const StoreDemand demand_;
  StoreVerdict verdict_;
};

}  // namespace

StoreVerdict CheckStore(Bench& bench, const Recording& recording, const StoreDemand& demand) {
  return Check(bench, recording, demand).Run();
}

}  // namespace siltfs::blocktest
