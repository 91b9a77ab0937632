// siltfs umount, and umount.siltfs as umount(8) calls it.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "fs/control/client.h"
#include "store/env/mountpoint.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

ExitCode UnmountStore(const std::string& path, Surroundings& surroundings) {
  const auto fail = [&](const Status& status) {
    return Fail(surroundings, ExitCode::kFailed, status.ToString());
  };
  const auto mounted = FindMount(path);
  if (!mounted.ok()) return fail(mounted.status());
  if (!*mounted)
    return fail(Status(StatusCode::kNotFound, "no siltfs file system is mounted there").At(path));

  // Before unmounting, or a quick daemon would be gone without a word.
  auto waiter = control::Waiter::Register((*mounted)->store);
  // A daemon that was killed leaves its mount behind, and for a moment its socket, too.
  const bool daemon_gone = !waiter.ok() && (waiter.status().Is(StatusCode::kNotFound) ||
                                            waiter.status().Is(StatusCode::kAborted));
  if (!waiter.ok() && !daemon_gone) return fail(waiter.status());
  const Status unmounted = UnmountFuse((*mounted)->mountpoint);
  if (!unmounted.ok()) return fail(unmounted);
  if (!waiter.ok()) return ExitCode::kDone;  // its daemon had crashed; the next mount recovers
  const Status ended = waiter->Wait();
  return ended.ok() ? ExitCode::kDone : fail(ended);
}

}  // namespace

std::function<ExitCode()> ConfigureUmount(CLI::App& app, Surroundings& surroundings) {
  struct Arguments {
    std::string mountpoint;
    bool no_mtab = false;
    bool verbose = false;
  };
  auto arguments = std::make_shared<Arguments>();
  app.add_option("MOUNTPOINT", arguments->mountpoint, "Where the store is mounted")->required();
  app.add_flag("-n", arguments->no_mtab, "Accepted and ignored, for umount(8)");
  app.add_flag("-v", arguments->verbose, "Accepted and ignored, for umount(8)");
  return [arguments, &surroundings] { return UnmountStore(arguments->mountpoint, surroundings); };
}

}  // namespace siltfs
