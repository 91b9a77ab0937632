// The administrator's programs that siltfs runs when it finds damage (docs/monitoring.md). They are
// in one directory, and get the finding in their environment.
//
// Thread-safety: from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "store/base/result.h"
#include "store/env/programs.h"

namespace siltfs {

struct HookEvent {
  std::string event = {};       // "damage", "failure", "unit-failed" or "test"
  std::string store = {};       // its directory
  std::string mountpoint = {};  // empty: not mounted
  uint64_t count = 0;           // what the message counts, such as damaged blocks
  std::string message = {};     // one sentence
};

// The message of an event "damage": "2 more blocks are damaged".
std::string DamageMessage(uint64_t blocks);

// The longest time for each program.
inline constexpr std::chrono::seconds kHookTime{60};

// The environment variable SILTFS_HOOKS, or else /etc/siltfs/hooks.d. Empty: no hooks.
std::string HookDirectory();
// False if the directory has no program to run. A directory that cannot be read counts as one with
// programs, so that the failure is reported when they are run.
bool HasHooks();

// Runs the programs one after another, each at most for `timeout`. Calls `say` with one sentence
// for each failure. True if nothing has failed.
bool RunHooks(const HookEvent& event, std::chrono::seconds timeout,
              const std::function<void(const std::string& sentence)>& say);

// Starts "siltfs notify" with this event, for a caller that must not wait. If this process is a
// service of systemd, the command becomes a unit of its own: the service's restrictions would keep
// most programs from sending mail, and its end would end them.
Result<StartedProgram> StartNotify(const HookEvent& event);

}  // namespace siltfs
