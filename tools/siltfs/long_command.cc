#include "tools/siltfs/long_command.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::milliseconds kInterval{50};  // between two looks at the signals
constexpr int kTurnsBetweenLooks = 6;               // at the work
constexpr int kTurnsBeforeFirst = 18;  // a command that takes less than a second shows nothing
constexpr std::chrono::seconds kPatienceOfLook{1};

// The names of steps. A daemon of another version may have others.
constexpr std::string_view kSteps[] = {"segments",
                                       "files",
                                       "chunks",
                                       "changed records",
                                       "removed records",
                                       "metadata",
                                       "records of the rollback"};

}  // namespace

Result<std::unique_ptr<LongCommand>> LongCommand::Begin(Surroundings& surroundings,
                                                        Options options) {
  SILTFS_ASSIGN_OR_RETURN(auto signals, PolledSignals::Block());
  return std::unique_ptr<LongCommand>(
      new LongCommand(surroundings, std::move(options), std::move(signals)));
}

LongCommand::LongCommand(Surroundings& surroundings, Options options,
                         std::unique_ptr<PolledSignals> signals)
    : signals_(std::move(signals)),
      display_(surroundings, {.command = std::move(options.command),
                              .subject = std::move(options.subject),
                              .quiet = options.quiet,
                              .descriptor = std::nullopt}),
      thread_([this] { Run(); }) {}

Status LongCommand::Check() const {
  // The thread may not have looked at the signals yet.
  return interrupted_ || signals_->TerminationRequested()
             ? Status(StatusCode::kInterrupted, "was interrupted")
             : Status::Ok();
}

void LongCommand::Observe(Look look) {
  const MutexLock lock(mutex_);
  look_ = std::move(look);
}

void LongCommand::OnInterruption(std::function<void()> action) {
  const MutexLock lock(mutex_);
  action_ = std::move(action);
}

void LongCommand::Print(const std::function<void()>& print) {
  const MutexLock lock(mutex_);
  display_.Clear();
  print();
}

control::Patience LongCommand::WhileItRuns(std::string afterwards,
                                           std::chrono::milliseconds patience) const {
  control::Patience made = control::Patience::WhileItRuns();
  made.interrupted = [this] { return interrupted(); };
  made.unwanted = patience;
  made.afterwards = std::move(afterwards);
  return made;
}

void LongCommand::End() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    if (signals_->TakeStatusRequest()) Show(/*asked=*/true);
    changed_.NotifyAll();
  }
  thread_.join();
  const MutexLock lock(mutex_);
  display_.Clear();
}

void LongCommand::Run() {
  const MutexLock lock(mutex_);
  for (int turns = 0; !ended_; ++turns) {
    changed_.WaitFor(mutex_, kInterval);
    if (ended_) return;
    if (signals_->TerminationRequested() && !interrupted_.exchange(true)) display_.Clear();
    if (interrupted_ && action_) action_();
    const bool asked = signals_->TakeStatusRequest();
    const bool due = turns >= kTurnsBeforeFirst && turns % kTurnsBetweenLooks == 0;
    if (asked || due) Show(asked);
  }
}

void LongCommand::Show(bool asked) {
  const WorkProgress progress = look_ ? look_() : WorkProgress{};
  display_.Show(
      {.number = 1, .name = progress.step, .done = progress.done, .total = progress.total}, asked);
}

Status ExplainInterruption(Status status, std::string_view afterwards) {
  if (!status.Is(StatusCode::kInterrupted) || status.cause().find(';') != std::string_view::npos)
    return status;
  std::string cause = fmt::format("{}; {}", status.cause(), afterwards);
  Status explained(StatusCode::kInterrupted, std::move(cause));
  if (status.path().empty()) return explained;
  return std::move(explained).At(std::string(status.path()));
}

std::string_view StepOf(std::string_view name) {
  for (const std::string_view step : kSteps) {
    if (step == name) return step;
  }
  return name.empty() ? std::string_view() : "steps";
}

void EndProcess(ExitCode code) { std::_Exit(static_cast<int>(code)); }

LongCommand::Look LookAtDaemon(control::DaemonAddress address, std::string command,
                               std::string job) {
  return [address = std::move(address), command = std::move(command),
          job = std::move(job)]() -> WorkProgress {
    const auto answer =
        control::Ask(address, command, {.answer = kPatienceOfLook, .stopped = kPatienceOfLook});
    if (!answer.ok()) {
      answer.status().IgnoreError("the command itself reports a daemon that does not answer");
      return {};
    }
    const Json none = Json::object();
    const Json& report = job.empty() ? *answer : answer->contains(job) ? answer->at(job) : none;
    if (!report.is_object()) return {};
    const auto number = [&report](const char* key) {
      const auto found = report.find(key);
      const bool valid = found != report.end() && found->is_number_unsigned();
      return valid ? found->get<uint64_t>() : 0;
    };
    const auto step = report.find("step");
    if (step == report.end() || !step->is_string()) return {};
    return {StepOf(step->get<std::string>()), number("done"), number("total")};
  };
}

}  // namespace siltfs
