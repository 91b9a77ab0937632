// The command siltfs umount, which umount(8) calls as umount.siltfs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <thread>

#include "fs/control/client.h"
#include "fs/control/protocol.h"
#include "store/env/mount_table.h"
#include "store/env/mountpoint.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using control::DaemonAddress;
using control::ServedMount;

// kDisconnection: how long the kernel may take to end the connection of a file system that is
// unmounted everywhere. kProbe: how long a mount may take to answer a probe.
constexpr std::chrono::seconds kDisconnection{3};
constexpr std::chrono::seconds kProbe{10};
constexpr std::chrono::milliseconds kInterval{50};

bool IsServed(const control::Identity& daemon, const ServedMount& wanted) {
  return daemon.mounts &&
         std::any_of(daemon.mounts->begin(), daemon.mounts->end(), [&](const ServedMount& mount) {
           return mount.device == wanted.device && mount.mountpoint == wanted.mountpoint;
         });
}

enum class Afterwards : uint8_t {
  kDaemonEnds,    // it has begun to close the store, or it does not answer
  kDaemonGoesOn,  // it serves other mounts of the store
};

// Waits until the daemon no longer serves this mount, which was unmounted here. Returns kInUse if
// the daemon still serves it elsewhere.
Result<Afterwards> AwaitEndOfMount(const DaemonAddress& address, const control::Identity& daemon,
                                   const std::optional<ServedMount>& served) {
  const auto deadline = std::chrono::steady_clock::now() + kDisconnection;
  while (true) {
    const auto now = control::Identify(address);
    if (!now.ok() || now->state != control::kMounted) return Afterwards::kDaemonEnds;
    if (served && !IsServed(*now, *served)) return Afterwards::kDaemonGoesOn;
    if (std::chrono::steady_clock::now() > deadline) break;
    std::this_thread::sleep_for(kInterval);
  }
  std::string cause =
      fmt::format("is unmounted here, but process {} goes on serving it, as ", daemon.pid);
  const auto mounts = ReadMountTable();
  if (mounts.ok()) {
    for (const Mount& mount : *mounts) {
      if (mount.device != address.device) continue;
      return Status(StatusCode::kInUse,
                    cause + fmt::format("it is also mounted on {}; unmount that, too",
                                        mount.mount_point))
          .At(address.mountpoint);
    }
  }
  const auto foreign = FindForeignMount(address.device);
  if (foreign) {
    cause += fmt::format(
        "the mount namespace of process {} still has it; \"nsenter -t {} -m umount {}\" unmounts "
        "it there",
        foreign->pid, foreign->pid, foreign->mount_point);
  } else {
    cause +=
        "another mount namespace (a container or a service) or an open file still has it; it "
        "closes the store when the last of them ends";
  }
  return Status(StatusCode::kInUse, std::move(cause)).At(address.mountpoint);
}

// The live files were unmounted, but the daemon goes on. Makes everything durable, as its end
// would. An empty value if the daemon ends after all.
std::optional<ExitCode> SyncAfterUnmount(const DaemonAddress& address, Surroundings& surroundings,
                                         LongCommand& command) {
  const Status synced =
      control::Ask(address, "sync",
                   command.WhileItRuns("it is unmounted, and its daemon goes on making everything "
                                       "durable",
                                       std::chrono::milliseconds(0)))
          .status();
  if (control::IsGone(synced)) return std::nullopt;
  command.End();
  if (synced.Is(StatusCode::kInterrupted)) return Fail(surroundings, synced);
  if (!synced.ok()) return Fail(surroundings, ExitCode::kFailed, synced.ToString());
  const auto daemon = control::Identify(address);
  if (!daemon.ok() || !daemon->mounts) return ExitCode::kDone;
  std::string places;
  for (const ServedMount& mount : *daemon->mounts)
    places += fmt::format("{}{}", places.empty() ? "" : ", ", mount.mountpoint);
  Say(surroundings, fmt::format("{}: everything is durable; process {} keeps the store open for "
                                "the snapshots that are mounted on {}",
                                address.mountpoint, daemon->pid, places));
  return ExitCode::kDone;
}

// How to unmount if files are open, or if the daemon does not answer.
struct UmountRequest {
  std::string mountpoint;
  bool force = false;  // aborts the mount if the daemon does not answer
  bool lazy = false;   // removes the mountpoint at once, and does not wait for the daemon
};

// Ends a mount whose daemon does not answer.
ExitCode AbortSilentMount(const DaemonAddress& address, Surroundings& surroundings) {
  const Status aborted = AbortMount(address.mountpoint);
  if (!aborted.ok()) return Fail(surroundings, ExitCode::kFailed, aborted.ToString());
  Say(surroundings, fmt::format("{}: the mount of a daemon that does not answer is aborted; data "
                                "not synced before is lost, and the next mount recovers the rest",
                                address.mountpoint));
  return ExitCode::kDone;
}

// Unmounts, but cannot report whether everything is durable, because the daemon cannot be asked.
// `why` is the error of the attempt to ask it.
ExitCode UnmountWithoutDaemon(const DaemonAddress& address, const Status& why, bool force,
                              Surroundings& surroundings) {
  const auto fail = [&](const Status& status) {
    return Fail(surroundings, ExitCode::kFailed, status.ToString());
  };
  // Probe the mount even if no daemon seems to be behind the socket. A daemon that cannot start a
  // thread closes the connection, too, but still serves the mount.
  const MountAnswer answer = ProbeMount(address.mountpoint, kProbe);
  if (answer == MountAnswer::kSilent) {
    if (force) return AbortSilentMount(address, surroundings);
    return fail(Status(StatusCode::kIoError,
                       fmt::format("does not answer, and its daemon cannot be reached ({}); it was "
                                   "not unmounted; when its process is continued (kill -CONT) or "
                                   "ended, try again",
                                   why.ToString()))
                    .At(address.mountpoint));
  }
  const Status unmounted = UnmountFuse(address.mountpoint);
  if (!unmounted.ok()) return fail(unmounted);
  if (answer == MountAnswer::kDead) {
    surroundings.err << fmt::format(
        "siltfs: {}: the mount of a daemon that was killed or had crashed is removed; data not "
        "synced before is lost, and the next mount recovers the rest\n",
        address.mountpoint);
    return ExitCode::kDone;
  }
  return fail(Status(StatusCode::kIoError,
                     fmt::format("is unmounted, but its daemon cannot be asked whether everything "
                                 "is durable ({}); see its log",
                                 why.ToString()))
                  .At(address.mountpoint));
}

// An interruption has its own exit code, all else has the general one.
ExitCode FailUnmount(Surroundings& surroundings, const Status& status) {
  if (status.Is(StatusCode::kInterrupted)) return Fail(surroundings, status);
  return Fail(surroundings, ExitCode::kFailed, status.ToString());
}

// Registers as a waiter before the unmount. After the unmount the daemon may end before this
// process could register, and could then not report to it.
Result<control::Waiter> Register(const DaemonAddress& address, const LongCommand& command) {
  control::Patience patience;
  patience.interrupted = [&command] { return command.interrupted(); };
  patience.unwanted = std::chrono::milliseconds(0);
  patience.afterwards = "nothing has changed";
  auto waiter = control::Waiter::Register(address, patience);
  // The signal may have come too late for the daemon's answer.
  if (waiter.ok() && !command.Check().ok())
    return Status(StatusCode::kInterrupted, "was interrupted; " + patience.afterwards)
        .At(address.mountpoint);
  return waiter;
}

ExitCode UnmountStore(const UmountRequest& request, Surroundings& surroundings) {
  const std::string& path = request.mountpoint;
  const auto fail = [&](const Status& status) { return FailUnmount(surroundings, status); };
  const auto mounted = FindMount(path);
  if (!mounted.ok()) return fail(mounted.status());
  if (!*mounted)
    return fail(Status(StatusCode::kNotFound, "no siltfs file system is mounted there").At(path));
  const DaemonAddress& address = **mounted;
  if (request.lazy) {
    const Status detached = DetachFuse(address.mountpoint);
    return detached.ok() ? ExitCode::kDone : fail(detached);
  }

  const auto command = LongCommand::Begin(
      surroundings, {.command = "umount", .subject = path, .quiet = !surroundings.err_is_terminal});
  if (!command.ok()) return fail(command.status());
  const auto stop = [&](const Status& status) {
    (*command)->End();
    return fail(status);
  };
  auto waiter = Register(address, **command);
  if (!waiter.ok()) {
    (*command)->End();
    if (waiter.status().Is(StatusCode::kInterrupted)) return fail(waiter.status());
    const bool does_not_answer =
        waiter.status().path() == address.mountpoint && waiter.status().Is(StatusCode::kIoError);
    if (does_not_answer && request.force) return AbortSilentMount(address, surroundings);
    if (does_not_answer || waiter.status().Is(StatusCode::kNotPermitted))
      return fail(waiter.status());
    return UnmountWithoutDaemon(address, waiter.status(), request.force, surroundings);
  }
  const auto served = ServedMountOf(address, waiter->identity());
  const Status unmounted = UnmountFuse(address.mountpoint);
  if (!unmounted.ok()) return stop(unmounted);
  const auto afterwards = AwaitEndOfMount(address, waiter->identity(), served);
  if (!afterwards.ok()) return stop(afterwards.status());
  if (*afterwards == Afterwards::kDaemonGoesOn) {
    if (!served->snapshot.empty()) return ExitCode::kDone;
    if (const auto done = SyncAfterUnmount(address, surroundings, **command)) return *done;
  }
  auto patience = (*command)->WhileItRuns(
      fmt::format("it is unmounted, and its daemon goes on writing everything to {}; siltfs mount "
                  "and siltfs fsck wait for its end",
                  address.store),
      std::chrono::milliseconds(0));
  patience.notice = [&](const std::string& sentence) {
    (*command)->Print([&] {
      Say(surroundings,
          fmt::format("{}, which is writing everything to {}", sentence, address.store));
    });
  };
  const Status ended = waiter->Wait(patience);
  return ended.ok() ? ExitCode::kDone : stop(ended);
}

}  // namespace

std::function<ExitCode()> ConfigureUmount(CLI::App& app, Surroundings& surroundings) {
  struct Arguments {
    UmountRequest request;
    bool no_mtab = false;
    bool verbose = false;
    bool read_only = false;
    std::string type;
  };
  auto arguments = std::make_shared<Arguments>();
  app.add_option("MOUNTPOINT", arguments->request.mountpoint, "Where the store is mounted")
      ->required();
  app.add_flag("-f", arguments->request.force,
               "If the daemon does not answer, abort the mount; unsynced data is lost");
  app.add_flag("-l", arguments->request.lazy,
               "Remove the mountpoint at once; the daemon ends when the last open file is closed");
  app.add_flag("-n", arguments->no_mtab, "Accepted and ignored, for umount(8)");
  app.add_flag("-v", arguments->verbose, "Accepted and ignored, for umount(8)");
  app.add_flag("-r", arguments->read_only, "Accepted and ignored, for umount(8)");
  app.add_option("-t", arguments->type, "Accepted and ignored, for umount(8): the type")
      ->type_name("TYPE");
  return [arguments, &surroundings] { return UnmountStore(arguments->request, surroundings); };
}

}  // namespace siltfs
