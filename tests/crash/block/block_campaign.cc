#include "tests/crash/block/block_campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/crash/block/fault_plan.h"
#include "tests/crash/block/power_cut.h"
#include "tests/crash/block/store_check.h"
#include "tests/crash/kill/failure.h"
#include "tests/crash/kill/interruption.h"

namespace siltfs::blocktest {
namespace {

using SteadyClock = std::chrono::steady_clock;

double SecondsSince(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

class Campaign {
 public:
  Campaign(const CampaignOptions& options, CampaignResult& result)
      : options_(options),
        result_(result),
        random_(options.seed),
        bench_(options.directory, options.kind, options.siltfs) {
    if (!options.injection.empty()) {
      recording_options_.environment = {"LD_PRELOAD=" + options.shim,
                                        "SILTFS_DROP_SYNCS=" + options.injection};
    }
  }

  void Run() {
    while (!IsDone()) {
      killtest::CheckInterruption();
      const uint64_t seed = random_.Next();
      if (options_.faults > 0) {
        RunWithFaults(seed);
      } else {
        CutOneRecording(seed);
      }
      ++result_.recordings;
    }
  }

 private:
  bool IsDone() const {
    if (options_.stop_at_first && result_.illegal > 0) return true;
    if (options_.most_seconds > 0 &&
        SecondsSince(begin_) > static_cast<double>(options_.most_seconds))
      return true;
    return options_.faults > 0 ? result_.faults >= options_.faults : result_.cuts >= options_.cuts;
  }

  void Count(const Recording& recording, const RecordingDevice& device) {
    result_.records += device.position();
    result_.bytes += device.log_bytes();
    result_.flushes += static_cast<uint64_t>(
        std::count_if(device.log().begin(), device.log().end(),
                      [](auto& record) { return record.kind == DeviceRecord::Kind::kFlush; }));
    result_.transactions += recording.transactions.size();
    for (const Session& session : recording.sessions) {
      result_.syncs += session.syncs.size();
      for (const WriterRecord& writer : session.writers) {
        result_.operations += writer.history.operations.size();
        result_.syncs += writer.history.syncs.size();
      }
    }
  }

  void CutOneRecording(uint64_t seed) {
    const auto begin = SteadyClock::now();
    Random random(seed);
    RecordingDevice device(bench_.disk.size(), random.Next());
    Load load(bench_, device, recording_options_, random.Next());
    load.Prepare();
    for (unsigned i = 0; i < recording_options_.sessions; ++i) {
      load.RunSession(/*may_fail=*/false, [&](const auto& is_over) {
        const auto end =
            SteadyClock::now() + std::chrono::milliseconds(recording_options_.session_milliseconds);
        while (SteadyClock::now() < end && !is_over())
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
      });
      RequireNoFailure(load.recording.sessions.back());
    }
    load.TakeDown();
    Count(load.recording, device);
    result_.recording_seconds += SecondsSince(begin);
    Cut(load.recording, device, seed, random);
  }

  void RequireNoFailure(const Session& session) {
    for (const std::string& failure : session.failures) Report("while recording: " + failure, "");
    if (session.unmount_code == 0 && session.daemon_code == 0) return;
    Report(fmt::format("while recording: siltfs umount ended with {}, the daemon with {}: {}",
                       session.unmount_code, session.daemon_code, session.unmount_message),
           "");
  }

  void Cut(const Recording& recording, const RecordingDevice& device, uint64_t seed,
           Random& random) {
    std::vector<uint64_t> landmarks;
    for (const Session& session : recording.sessions) landmarks.push_back(session.first);
    landmarks.push_back(device.position());
    const uint64_t count = std::min(options_.cuts - result_.cuts, options_.cuts_of_a_recording);
    PowerCuts cuts(device.log(), bench_.disk.size(), TearBytesFor(options_.kind));
    for (const uint64_t position :
         ChooseCuts(device.log(), recording.first, landmarks, count, random)) {
      killtest::CheckInterruption();
      if (IsDone()) return;
      const auto begin = SteadyClock::now();
      const uint64_t cut_seed = random.Next();
      Random kept(cut_seed);
      const auto cut = cuts.Cut(position, kept);
      bench_.disk.Serve(cut.get());
      const StoreVerdict verdict = CheckStore(
          bench_, recording, {.position = position, .everything = false, .data = random.OneIn(4)});
      bench_.disk.Serve(nullptr);
      result_.cut_seconds += SecondsSince(begin);
      ++result_.cuts;
      // Saves the state after the cut, without the writes of the recovery.
      const auto save = [&](const std::string& path) {
        Random again(cut_seed);
        cuts.Cut(position, again)->Save(path);
      };
      Judge(verdict,
            fmt::format("recording {} (seed {:016x}), cut {} of {}", result_.recordings, seed,
                        position, device.position()),
            save);
      TellProgress();
    }
  }

  template <typename Save>
  void Judge(const StoreVerdict& verdict, const std::string& place, Save save) {
    result_.operations_gone += verdict.operations_gone;
    if (!verdict.lower_failure.empty()) {
      ++result_.lower_failures;
      fmt::print(stderr, "siltfs-blocktest: {}: {}\n", place, verdict.lower_failure);
      return;
    }
    if (verdict.problems.empty()) return;
    std::string text = place;
    for (const std::string& problem : verdict.problems) text += "\n    " + problem;
    std::string image;
    if (!options_.save.empty() && saved_ < kMostSaved) {
      image =
          fmt::format("{}/{}-{}-{}", options_.save, NameOf(options_.kind), options_.seed, saved_++);
      save(image + ".img");
      std::ofstream(image + ".txt") << text << "\n";
    }
    Report(text, image);
  }

  void Report(const std::string& text, const std::string& image) {
    ++result_.illegal;
    if (result_.first_illegal == 0) result_.first_illegal = result_.cuts;
    fmt::print(stderr, "siltfs-blocktest: {}{}\n", text,
               image.empty() ? "" : "\n    kept as " + image);
    if (result_.problems.size() < 100) result_.problems.push_back(text);
  }

  void RunWithFaults(uint64_t seed) {
    Random random(seed);
    RecordingDevice device(bench_.disk.size(), random.Next());
    Load load(bench_, device, recording_options_, random.Next());
    load.Prepare();
    FaultPlan plan(random.Next(), bench_, device);
    load.RunSession(/*may_fail=*/true, [&](const auto& is_over) { plan.Run(is_over); });
    device.SetFault({});
    load.TakeDown();
    Count(load.recording, device);
    const Session& session = load.recording.sessions.back();
    result_.failed_calls += device.failed_calls();
    const bool said = session.unmount_code != 0 || session.daemon_code != 0;
    if (said) ++result_.stores_failed;
    // Half of the fault runs also lose their power at the end.
    PowerCuts cuts(device.log(), bench_.disk.size(), TearBytesFor(options_.kind));
    const bool cut = random.OneIn(2);
    const auto image = cut ? cuts.Cut(device.position(), random) : Whole(device);
    bench_.disk.Serve(image.get());
    const StoreVerdict verdict =
        CheckStore(bench_, load.recording,
                   {.position = device.position(), .everything = !said, .data = random.OneIn(2)});
    bench_.disk.Serve(nullptr);
    ++result_.faults;
    Judge(verdict,
          fmt::format("fault run {} (seed {:016x}){}: {}; siltfs umount ended with {} ({}), the "
                      "daemon with {}",
                      result_.recordings, seed, cut ? " and a power cut" : "", plan.Describe(),
                      session.unmount_code, session.unmount_message, session.daemon_code),
          [&](const std::string& path) { Whole(device)->Save(path); });
    TellProgress();
  }

  std::unique_ptr<CutDevice> Whole(const RecordingDevice& device) {
    whole_ = std::make_unique<SparseImage>(bench_.disk.size());
    for (const DeviceRecord& record : device.log()) whole_->Apply(record);
    return std::make_unique<CutDevice>(*whole_);
  }

  // Prints a line every ten seconds.
  void TellProgress() {
    const auto now = SteadyClock::now();
    if (now < next_line_) return;
    next_line_ = now + std::chrono::seconds(10);
    fmt::print(
        stderr, "siltfs-blocktest: {} recordings, {} cuts, {} fault runs, {} illegal, {:.0f} s\n",
        result_.recordings, result_.cuts, result_.faults, result_.illegal, SecondsSince(begin_));
  }

  static constexpr unsigned kMostSaved = 8;

  const CampaignOptions& options_;
  CampaignResult& result_;
  Random random_;
  Bench bench_;
  RecordingOptions recording_options_;
  std::unique_ptr<SparseImage> whole_;
  unsigned saved_ = 0;
  const SteadyClock::time_point begin_ = SteadyClock::now();
  SteadyClock::time_point next_line_ = begin_ + std::chrono::seconds(10);
};

}  // namespace

CampaignResult RunCampaign(const CampaignOptions& options) {
  CampaignResult result;
  Campaign(options, result).Run();
  return result;
}

}  // namespace siltfs::blocktest
