#include "tools/siltfs/damage_watch.h"

#include <fmt/format.h>

#include <utility>

namespace siltfs {
namespace {

// How often the thread looks whether the hooks have ended.
constexpr std::chrono::milliseconds kWhileHooksRun{500};
constexpr int kKinds = 3;  // of events in TakeEvent

}  // namespace

void DamageWatch::Note(const Notice& notice) {
  const MutexLock lock(mutex_);
  if (first_.empty()) first_ = notice.sentence;
  noted_ = true;
  changed_.NotifyAll();
}

void DamageWatch::Begin(StoreMaintenance& maintenance) {
  maintenance_ = &maintenance;
  const auto last = maintenance.GetHealth().last_scrub;
  if (last) reported_footers_ = last->damaged_footers;
  thread_ = std::thread([this] { Run(); });
}

void DamageWatch::End() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void DamageWatch::Run() {
  do {
    if (!HooksRun()) Look();
  } while (Await());
  // Now hooks may run at the same time, because there is no later time to start them.
  for (int kind = 0; kind < kKinds; ++kind) Look();
}

void DamageWatch::ReportFailure(const Status& failure) {
  if (std::exchange(reported_failure_, true)) return;
  StartHooks({.event = "failure",
              .store = options_.store,
              .mountpoint = options_.mountpoint,
              .message = failure.ToString()});
}

bool DamageWatch::Await() {
  const auto interval = hooks_ ? kWhileHooksRun : options_.interval;
  const MutexLock lock(mutex_);
  WaitUntilEnding(interval, /*or_noted=*/true);
  if (noted_) WaitUntilEnding(options_.together, /*or_noted=*/false);
  noted_ = false;
  return !ending_;
}

void DamageWatch::WaitUntilEnding(std::chrono::milliseconds most, bool or_noted) {
  const auto until = std::chrono::steady_clock::now() + most;
  while (!ending_ && !(or_noted && noted_)) {
    const auto left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0) return;
    changed_.WaitFor(mutex_, left);
  }
}

void DamageWatch::Look() {
  const auto event = TakeEvent(maintenance_->GetHealth());
  if (!event) return;
  options_.log->error("{}: {}", options_.store, event->message);
  StartHooks(*event);
}

std::optional<HookEvent> DamageWatch::TakeEvent(const StoreHealth& health) {
  HookEvent event{.event = "damage", .store = options_.store, .mountpoint = options_.mountpoint};
  if (health.found_damaged_blocks > reported_blocks_) {
    event.count =
        health.found_damaged_blocks - std::exchange(reported_blocks_, health.found_damaged_blocks);
    const MutexLock lock(mutex_);
    event.message = DamageMessage(event.count);
    if (!first_.empty()) event.message += "; the first message is: " + first_;
    first_.clear();
    return event;
  }
  const uint64_t footers = health.last_scrub ? health.last_scrub->damaged_footers : 0;
  if (footers > std::exchange(reported_footers_, footers)) {
    event.count = footers;
    event.message = fmt::format("the last scrub found {} damaged footers of segments", footers);
    return event;
  }
  if (!health.read_only_cause.empty() && !std::exchange(reported_failure_, true)) {
    event.event = "failure";
    event.message = health.read_only_cause;
    return event;
  }
  return std::nullopt;
}

void DamageWatch::StartHooks(const HookEvent& event) {
  if (!options_.has_hooks()) return;
  auto started = options_.start(event);
  if (!started.ok()) {
    options_.log->error("the hooks for this finding were not started: {}",
                        started.status().ToString());
    return;
  }
  hooks_ = *std::move(started);
}

bool DamageWatch::HooksRun() {
  if (!hooks_) return false;
  const auto end = hooks_->Wait(std::chrono::milliseconds(0));
  if (end.ok() && !*end) return true;
  hooks_.reset();
  if (!end.ok()) {
    options_.log->warn("{}", end.status().ToString());
  } else if (!(*end)->succeeded()) {
    options_.log->warn("{}: some hooks have failed; \"siltfs notify {}\" runs them as a test",
                       options_.store, options_.store);
  }
  return false;
}

}  // namespace siltfs
