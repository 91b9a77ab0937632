#include "tests/crash/sequence_cuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tests/crash/rot.h"
#include "tests/crash/sequence.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kPoliciesPerPlace = 2;
constexpr uint64_t kOneKillIn = 3;          // at one of this many places the process is also killed
constexpr uint64_t kOneRecoveryCutIn = 12;  // after one of this many cuts, the recovery is cut, too
constexpr uint64_t kOneFailingOpenIn = 8;
constexpr size_t kPlacesInRecovery = 8;
constexpr size_t kPlacesWhileMaking = 4;
constexpr size_t kKillsPerSequence = 8;
constexpr int kFlipsPerKill = 12;
// A power cut may leave a duplicate copy, which causes an error only after more collections and
// writes.
constexpr unsigned kStepsWithCopies = 30;

// Returns the places of cuts: one before each change of the device, after all marks before that
// change.
std::vector<size_t> PlacesIn(const SimTrace& trace, size_t first, size_t last) {
  std::vector<size_t> places;
  for (size_t i = first; i <= last; ++i) {
    if (i == trace.size() || trace[i].kind != SimRecord::Kind::kMark) places.push_back(i);
  }
  return places;
}

// A device that replays a trace.
class Player {
 public:
  Player(const SimEnv& start, const SimTrace& trace) : device_(start.Fork()), trace_(trace) {}

  Status MoveTo(size_t place) {
    for (; next_ < place; ++next_) SILTFS_RETURN_IF_ERROR(device_->Replay(trace_[next_]));
    return Status::Ok();
  }
  std::unique_ptr<SimEnv> Cut(const CutChain::Link& link) const {
    return DeviceAfter(*device_, link);
  }

 private:
  const std::unique_ptr<SimEnv> device_;
  const SimTrace& trace_;
  size_t next_ = 0;
};

class SequenceCuts {
 public:
  SequenceCuts(uint64_t seed, Workload workload, uint64_t limit, Injection injection,
               const CutVerdict& verdict)
      : seed_(seed),
        workload_(workload),
        left_(limit),
        injection_(injection),
        verdict_(verdict),
        random_(seed + 2) {}

  void Run() {
    const Status status = RunAll();
    if (!status.ok()) Report(status.ToString(), fmt::format("sequence {}", seed_));
  }

 private:
  Status RunAll() {
    const SequencePlan plan = PlanSequence(seed_, workload_);
    mix_ = plan.mix;
    SILTFS_ASSIGN_OR_RETURN(SimTrace trace, RunSequence(plan));
    SILTFS_ASSIGN_OR_RETURN(const History plain, History::Read(trace, StepsByThread(plan.threads)));
    trace = Inject(std::move(trace), injection_, plain.first_cut());
    SILTFS_ASSIGN_OR_RETURN(const History history,
                            History::Read(trace, StepsByThread(plan.threads)));
    chain_.links.push_back({std::move(trace), 0, {}});
    CutChain::Link& link = chain_.links.front();
    Player player(SimEnv(), link.trace);
    for (size_t place : PlacesOf(plan, history)) {
      SILTFS_RETURN_IF_ERROR(player.MoveTo(place));
      link.cut = place;
      for (uint64_t nth = 0; nth < kPoliciesPerPlace && left_ > 0; ++nth) {
        link.policy = PolicyFor(nth, random_);
        const auto device = player.Cut(link);
        if (place > history.first_cut()) {
          CutOnce(*device, history);
        } else {
          --left_;
          Report(CheckCutWhileMaking(*device).problem, Place());
        }
      }
      if (left_ > 0 && place > history.first_cut() && random_.OneIn(kOneKillIn)) {
        link.killed = true;
        CutOnce(*player.Cut(link), history);
        link.killed = false;
      }
      if (left_ == 0) break;
    }
    return Status::Ok();
  }

  // Returns the places for cuts of the sequence. The making of the store is always the same, so it
  // gets only a few places.
  std::vector<size_t> PlacesOf(const SequencePlan& plan, const History& history) {
    const SimTrace& trace = chain_.links.front().trace;
    std::vector<size_t> places = Some(PlacesIn(trace, 0, history.made()), kPlacesWhileMaking);
    const std::vector<size_t> all = PlacesIn(trace, history.first_cut() + 1, trace.size());
    std::vector<size_t> drawn;
    if (mix_ == OperationGenerator::Mix::kVersions) {
      drawn = all;
      std::erase_if(drawn, [&](size_t place) { return !history.InMaintenance(place); });
      drawn = Some(std::move(drawn), plan.most_places / 2);
    }
    if (mix_ >= OperationGenerator::Mix::kSnapshots && plan.most_places != SIZE_MAX) {
      // These steps make several durable writes.
      const auto is_long = [](Operation::Kind kind) {
        return kind >= Operation::Kind::kRenameSnapshot;
      };
      drawn = all;
      std::erase_if(drawn, [&](size_t place) { return !history.In(place, is_long); });
      drawn = Some(std::move(drawn), plan.most_places / 2);
    }
    const size_t rest = plan.most_places - drawn.size();
    for (size_t place : Some(all, rest)) drawn.push_back(place);
    std::sort(drawn.begin(), drawn.end());
    places.insert(places.end(), drawn.begin(), drawn.end());
    return places;
  }

  // Returns at most `most` of the places, in order.
  std::vector<size_t> Some(std::vector<size_t> places, size_t most) {
    while (places.size() > most) {
      places.erase(places.begin() + static_cast<ptrdiff_t>(random_.Below(places.size())));
    }
    return places;
  }

  CutOptions Options(bool killed) {
    CutOptions options;
    options.seed = random_.Next();
    if (random_.OneIn(kOneFailingOpenIn)) options.failing_open = random_.Next();
    options.cut_again = random_.OneIn(killed ? 2 : 4);
    options.close = !options.cut_again && (killed || random_.OneIn(4));
    const bool needs_steps =
        mix_ == OperationGenerator::Mix::kCopies || mix_ == OperationGenerator::Mix::kVersions;
    if (needs_steps && (options.cut_again || options.close)) {
      options.mix = mix_;
      options.more_steps = kStepsWithCopies;
    }
    const bool has_own_check = mix_ >= OperationGenerator::Mix::kEntries;
    if (has_own_check) options.mix = mix_;
    return options;
  }

  void CutOnce(SimEnv& device, const History& history) {
    CutOnce(device, history, chain_.links.back().cut);
  }
  // Makes the chain's last cut. Judges the result as the result of cut `cut` of `history`.
  void CutOnce(SimEnv& device, const History& history, size_t cut) {
    CutChain::Link& link = chain_.links.back();
    link.options = Options(link.killed);
    const bool first = chain_.links.size() == 1;
    const bool cuts_recovery = first && injection_ == Injection::kNone &&
                               link.options.failing_open == 0 && random_.OneIn(kOneRecoveryCutIn);
    const auto start = cuts_recovery ? device.Fork() : nullptr;
    CutOutcome outcome = CheckCut(device, history, cut, link.options);
    --left_;
    Report(outcome.problem, Place(), !first, outcome.deltas);
    if (!outcome.problem.empty() || !cuts_recovery) return;
    const Status status = CutRecovery(*start, std::move(outcome.trace), history, outcome.steps);
    if (!status.ok()) Report(status.ToString(), Place(), true);
  }

  Status CutRecovery(const SimEnv& start, SimTrace trace, const History& before,
                     const std::vector<size_t>& steps) {
    SILTFS_ASSIGN_OR_RETURN(const History history, History::Read(trace, before.Surviving(steps)));
    const CutChain::Link& broken = chain_.links.back();
    const std::vector<size_t> places = Some(PlacesIn(trace, 0, trace.size()), kPlacesInRecovery);
    chain_.links.push_back({std::move(trace), 0, {}});
    Player player(start, chain_.links.back().trace);
    for (size_t place : places) {
      if (left_ == 0) break;
      SILTFS_RETURN_IF_ERROR(player.MoveTo(place));
      chain_.links.back().cut = place;
      chain_.links.back().policy = PolicyFor(random_.Below(2), random_);
      // The writes of a killed process are not durable, and a cut may lose them until the next
      // process has opened the store. So a cut before that moment is judged by the history of the
      // killed process.
      const bool undecided = broken.killed && place <= history.first_cut();
      CutOnce(*player.Cut(chain_.links.back()), undecided ? before : history,
              undecided ? broken.cut : place);
    }
    chain_.links.pop_back();
    return Status::Ok();
  }

  void Report(const std::string& problem, const std::string& place, bool in_recovery = false,
              bool deltas = false) {
    CutReport report;
    report.problem = problem;
    report.place = place;
    report.in_recovery = in_recovery;
    report.deltas = deltas;
    verdict_(report, chain_);
  }

  std::string Place() const {
    std::string text = fmt::format("sequence {}", seed_);
    for (const CutChain::Link& link : chain_.links) {
      text += fmt::format(", cut before {} of {} ({}), {}", link.cut, link.trace.size(),
                          link.cut < link.trace.size() ? Describe(link.trace[link.cut]) : "its end",
                          Describe(link));
    }
    return text;
  }

  const uint64_t seed_;
  const Workload workload_;
  uint64_t left_;
  const Injection injection_;
  const CutVerdict& verdict_;
  Random random_;
  OperationGenerator::Mix mix_ = OperationGenerator::Mix::kAll;  // of the sequence
  CutChain chain_;
};

}  // namespace

void RotSequence(uint64_t seed, Workload workload, uint64_t limit, const CutVerdict& verdict) {
  const SequencePlan plan = PlanSequence(seed, workload);
  const std::string sequence = fmt::format("sequence {}, killed ", seed);
  const auto fail = [&](const Status& why) {
    CutReport report;
    report.problem = why.ToString();
    report.place = sequence;
    verdict(report, {});
  };
  auto trace = RunSequence(plan);
  if (!trace.ok()) return fail(trace.status());
  auto history = History::Read(*trace, StepsByThread(plan.threads));
  if (!history.ok()) return fail(history.status());
  Random random(seed + 3);
  Player player(SimEnv(), *trace);
  const std::vector<size_t> places = PlacesIn(*trace, history->first_cut() + 1, trace->size());
  const uint64_t step = std::max<uint64_t>(1, places.size() / kKillsPerSequence);
  for (size_t i = random.Below(step); i < places.size() && limit > 0; i += step) {
    const Status moved = player.MoveTo(places[i]);
    if (!moved.ok()) return fail(moved);
    const auto device =
        player.Cut({.trace = {}, .policy = {.unsynced = CrashPolicy::Unsynced::kKeep}});
    for (int flip = 0; flip < kFlipsPerKill && limit > 0; ++flip, --limit) {
      const RotOutcome outcome = CheckRot(*device, *history, places[i], random);
      CutReport report;
      report.problem = outcome.problem;
      report.place =
          fmt::format("{}before {} of {}; {}", sequence, places[i], trace->size(), outcome.place);
      report.noticed = outcome.noticed;
      report.deltas = outcome.deltas;
      verdict(report, {});
    }
  }
}

void CutSequence(uint64_t seed, Workload workload, uint64_t limit, Injection injection,
                 const CutVerdict& verdict) {
  SequenceCuts(seed, workload, limit, injection, verdict).Run();
}

}  // namespace siltfs::testing
