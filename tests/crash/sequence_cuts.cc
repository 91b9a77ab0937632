#include "tests/crash/sequence_cuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tests/crash/sequence.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kPoliciesPerPlace = 2;
constexpr uint64_t kOneRecoveryCutIn = 12;  // of so many cuts, one has its recovery cut in turn
constexpr size_t kPlacesInRecovery = 8;

// Where the power is cut: before each change, when all marks before it have been made.
std::vector<size_t> PlacesIn(const SimTrace& trace, size_t first) {
  std::vector<size_t> places;
  for (size_t i = first; i <= trace.size(); ++i) {
    if (i == trace.size() || trace[i].kind != SimRecord::Kind::kMark) places.push_back(i);
  }
  return places;
}

// A device that is moved along a trace.
class Player {
 public:
  Player(const SimEnv& start, const SimTrace& trace) : device_(start.Fork()), trace_(trace) {}

  Status MoveTo(size_t place) {
    for (; next_ < place; ++next_) SILTFS_RETURN_IF_ERROR(device_->Replay(trace_[next_]));
    return Status::Ok();
  }
  std::unique_ptr<SimEnv> Cut(const CrashPolicy& policy) const {
    auto copy = device_->Fork();
    copy->PowerCut(policy);
    return copy;
  }

 private:
  const std::unique_ptr<SimEnv> device_;
  const SimTrace& trace_;
  size_t next_ = 0;
};

class SequenceCuts {
 public:
  SequenceCuts(uint64_t seed, uint64_t limit, Injection injection, const CutVerdict& verdict)
      : seed_(seed), left_(limit), injection_(injection), verdict_(verdict), random_(seed + 2) {}

  void Run() {
    const Status status = RunAll();
    if (!status.ok())
      verdict_(status.ToString(), fmt::format("sequence {}", seed_), false, chain_);
  }

 private:
  Status RunAll() {
    const SequencePlan plan = PlanSequence(seed_);
    SILTFS_ASSIGN_OR_RETURN(SimTrace trace, RunSequence(plan));
    SILTFS_ASSIGN_OR_RETURN(const History plain,
                            History::Read(trace, StepsByThread(plan.threads)));
    trace = Inject(std::move(trace), injection_, plain.first_cut());
    SILTFS_ASSIGN_OR_RETURN(const History history,
                            History::Read(trace, StepsByThread(plan.threads)));
    chain_.links.push_back({std::move(trace), 0, {}});
    CutChain::Link& link = chain_.links.front();
    Player player(SimEnv(), link.trace);
    for (size_t place : PlacesIn(link.trace, history.first_cut() + 1)) {
      SILTFS_RETURN_IF_ERROR(player.MoveTo(place));
      link.cut = place;
      for (uint64_t nth = 0; nth < kPoliciesPerPlace && left_ > 0; ++nth) {
        link.policy = PolicyFor(nth, random_);
        CutOnce(*player.Cut(link.policy), history);
      }
      if (left_ == 0) break;
    }
    return Status::Ok();
  }

  CutOptions Options() {
    CutOptions options;
    options.seed = random_.Next();
    options.cut_again = random_.OneIn(4);
    options.close = !options.cut_again && random_.OneIn(4);
    return options;
  }

  void CutOnce(SimEnv& device, const History& history) {
    const CutChain::Link& link = chain_.links.back();
    const bool first = chain_.links.size() == 1;
    const bool cuts_recovery =
        first && injection_ == Injection::kNone && random_.OneIn(kOneRecoveryCutIn);
    const auto start = cuts_recovery ? device.Fork() : nullptr;
    CutOutcome outcome = CheckCut(device, history, link.cut, Options());
    --left_;
    verdict_(outcome.problem, Place(), !first, chain_);
    if (!outcome.problem.empty() || !cuts_recovery) return;
    const Status status =
        CutRecovery(*start, std::move(outcome.trace), history.Surviving(outcome.steps));
    if (!status.ok()) verdict_(status.ToString(), Place(), true, chain_);
  }

  Status CutRecovery(const SimEnv& start, SimTrace trace, const StepsByThread& earlier) {
    SILTFS_ASSIGN_OR_RETURN(const History history, History::Read(trace, earlier));
    std::vector<size_t> places = PlacesIn(trace, 0);
    while (places.size() > kPlacesInRecovery) {
      places.erase(places.begin() + static_cast<ptrdiff_t>(random_.Below(places.size())));
    }
    chain_.links.push_back({std::move(trace), 0, {}});
    Player player(start, chain_.links.back().trace);
    for (size_t place : places) {
      if (left_ == 0) break;
      SILTFS_RETURN_IF_ERROR(player.MoveTo(place));
      chain_.links.back().cut = place;
      chain_.links.back().policy = PolicyFor(random_.Below(2), random_);
      CutOnce(*player.Cut(chain_.links.back().policy), history);
    }
    chain_.links.pop_back();
    return Status::Ok();
  }

  std::string Place() const {
    std::string text = fmt::format("sequence {}", seed_);
    for (const CutChain::Link& link : chain_.links) {
      text += fmt::format(", cut before {} of {} ({}), {}", link.cut, link.trace.size(),
                          link.cut < link.trace.size() ? Describe(link.trace[link.cut]) : "its end",
                          Describe(link.policy));
    }
    return text;
  }

  const uint64_t seed_;
  uint64_t left_;
  const Injection injection_;
  const CutVerdict& verdict_;
  Random random_;
  CutChain chain_;
};

}  // namespace

void CutSequence(uint64_t seed, uint64_t limit, Injection injection, const CutVerdict& verdict) {
  SequenceCuts(seed, limit, injection, verdict).Run();
}

}  // namespace siltfs::testing
