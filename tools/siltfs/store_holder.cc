#include "tools/siltfs/store_holder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "fs/control/client.h"
#include "fs/control/protocol.h"
#include "fs/open/store_layout.h"
#include "store/env/lock_holder.h"
#include "store/env/process.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

// The holders of a lock that are about to end: a daemon without a mount, which is closing the
// store; commands that read the statistics of the store, which monitoring systems run at any time;
// and siltfs tune, which writes two small files.
constexpr std::array<std::string_view, 6> kShortHolders = {"siltfs mount",   "mount.siltfs",
                                                           "siltfs stat",    "siltfs check-health",
                                                           "siltfs metrics", "siltfs tune"};

// How long to wait until a daemon has answered which process it is and what state it is in.
constexpr std::chrono::seconds kIntroduction{3};

// Whether the text has the form of a command's name.
bool IsWord(const std::string& text) {
  return !text.empty() && text[0] != '-' && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || c == '-';
  });
}

// Returns the program's name and, for siltfs, the command: "siltfs fsck", "fsck.siltfs".
std::string CommandOf(int64_t pid) {
  const std::vector<std::string> arguments = ArgumentsOfProcess(pid);
  if (arguments.empty()) return "";
  std::string command = arguments[0].substr(arguments[0].rfind('/') + 1);
  if (command == "siltfs" && arguments.size() > 1 && IsWord(arguments[1])) {
    command += " " + arguments[1];
    if (arguments[1] == "index" && arguments.size() > 2 && IsWord(arguments[2]))
      command += " " + arguments[2];
  }
  return command;
}

Status Mounted(const control::Identity& daemon, const std::string& store,
               const std::string& instead) {
  if (daemon.state == control::kClosing) {
    return Status(StatusCode::kInUse,
                  fmt::format("process {}, which had it mounted on {}, is still closing it; try "
                              "again when that has ended",
                              daemon.pid, daemon.mountpoint))
        .At(store);
  }
  return Status(StatusCode::kInUse,
                fmt::format("is mounted on {} by process {}; use {} {}", daemon.mountpoint,
                            daemon.pid, instead, daemon.mountpoint))
      .At(store);
}

}  // namespace

bool IsLocked(const Status& status, const std::string& store) {
  return status.Is(StatusCode::kInUse) && status.path() == LockPath(store);
}

bool IsAboutToEnd(const std::string& store) {
  const auto daemon = control::Identify(AddressOfStore(store), {.answer = kIntroduction});
  if (daemon.ok()) return daemon->state == control::kClosing;
  const std::optional<int64_t> holder = FindLockHolder(LockPath(store));
  if (!holder) return true;  // the holder has just ended, or is in another container
  const std::string command = CommandOf(*holder);
  return command.empty() || std::ranges::find(kShortHolders, command) != kShortHolders.end();
}

Status WaitUntilClosed(const std::string& store,
                       const std::function<void(const std::string&)>& notice) {
  auto waiter = control::Waiter::Register(AddressOfStore(store));
  if (!waiter.ok()) {
    // kIoError: the daemon does not answer. Other errors, for example a socket that this process
    // may not use, are ignored here: the caller opens the store, and that reports why it fails.
    const bool silent = waiter.status().Is(StatusCode::kIoError);
    return silent ? std::move(waiter).status() : Status::Ok();
  }
  if (waiter->identity().state != control::kClosing) {
    return Mounted(waiter->identity(), store, "siltfs umount");
  }
  auto patience = control::Patience::WhileItRuns();
  patience.notice = notice;
  const Status closed = waiter->Wait(patience);
  // Return an error only if the daemon stopped answering. Ignore whether it has closed the store
  // without an error: the unmount reports that, and opening the store shows the store's state.
  return closed.Is(StatusCode::kIoError) && !waiter->ended() ? closed : Status::Ok();
}

Status ExplainLock(Status status, const std::string& store, const std::string& instead) {
  if (!IsLocked(status, store)) return status;
  const auto daemon = control::Identify(AddressOfStore(store), {.answer = kIntroduction});
  if (daemon.ok()) return Mounted(*daemon, store, instead);
  const std::optional<int64_t> holder = FindLockHolder(LockPath(store));
  if (!holder) {
    return Status(StatusCode::kInUse,
                  "is in use by a process that cannot be seen from here, perhaps in a container")
        .At(store);
  }
  const std::string command = CommandOf(*holder);
  return Status(StatusCode::kInUse,
                fmt::format("is in use by process {}{}; try again when that has ended", *holder,
                            command.empty() ? "" : fmt::format(" ({})", command)))
      .At(store);
}

Status ExplainReadOnlyMedium(Status status, const std::string& store, std::string_view instead) {
  if (!status.Is(StatusCode::kReadOnly)) return status;
  return Status(StatusCode::kReadOnly,
                fmt::format("the file system that the store is on is read-only; {}", instead))
      .At(store);
}

}  // namespace siltfs
