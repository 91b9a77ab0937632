// A thread of the daemon that looks for new findings of the store, and starts the hooks for them
// (hooks.h). No other thread waits for it: reads, writes and scrubs only wake it.
//
// A damaged block is reported once, also over mounts, because the store keeps a list of damaged
// blocks. Findings of a few seconds are reported together. While hooks run, later findings wait.
//
// Thread-safety: Note from any thread; otherwise one thread makes, begins, ends and destroys it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <spdlog/logger.h>

#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "store/base/notice.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/programs.h"
#include "tools/siltfs/hooks.h"

namespace siltfs {

class DamageWatch {
 public:
  struct Options {
    std::string store = {};
    std::string mountpoint = {};
    std::shared_ptr<spdlog::logger> log = {};
    // Starts the hooks. Called on the thread.
    std::function<Result<StartedProgram>(const HookEvent& event)> start = StartNotify;
    std::function<bool()> has_hooks = HasHooks;
    // How long the thread waits for more findings, and how often it looks without a notice.
    std::chrono::milliseconds together{2000};
    std::chrono::milliseconds interval{30000};
  };
  explicit DamageWatch(Options options) : options_(std::move(options)) {}
  ~DamageWatch() { End(); }
  DamageWatch(const DamageWatch&) = delete;
  DamageWatch& operator=(const DamageWatch&) = delete;

  // Tells of a finding that may be new. Never waits for hooks.
  void Note(const Notice& notice) SILTFS_EXCLUDES(mutex_);
  // Starts the thread. `maintenance` must live until End.
  void Begin(StoreMaintenance& maintenance);
  // Looks a last time, and ends the thread. Hooks that still run go on by themselves.
  void End() SILTFS_EXCLUDES(mutex_);
  // Starts the hooks for a failure to close the store, unless they were started for a failure
  // before. Call it after End.
  void ReportFailure(const Status& failure);

 private:
  void Run() SILTFS_EXCLUDES(mutex_);
  // Waits for the next time to look. False: the thread shall end.
  bool Await() SILTFS_EXCLUDES(mutex_);
  void WaitUntilEnding(std::chrono::milliseconds most, bool or_noted) SILTFS_REQUIRES(mutex_);
  void Look() SILTFS_EXCLUDES(mutex_);
  // The first finding that was not reported yet, and marks it as reported.
  std::optional<HookEvent> TakeEvent(const StoreHealth& health) SILTFS_EXCLUDES(mutex_);
  void StartHooks(const HookEvent& event);
  bool HooksRun();

  const Options options_;
  StoreMaintenance* maintenance_ = nullptr;

  // The thread alone, between Begin and End.
  uint64_t reported_blocks_ = 0;
  uint64_t reported_footers_ = 0;
  bool reported_failure_ = false;
  std::optional<StartedProgram> hooks_;  // that run

  Mutex mutex_;
  CondVar changed_;
  std::string first_ SILTFS_GUARDED_BY(mutex_);  // the first sentence since the last event
  bool noted_ SILTFS_GUARDED_BY(mutex_) = false;
  bool ending_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace siltfs
