#include "tools/siltfs/mount_store.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "fs/bucket/store_bucket.h"
#include "fs/fuse/mount_options.h"
#include "fs/fuse/ring_transport.h"
#include "fs/open/store_index.h"
#include "store/env/daemon.h"
#include "store/env/files.h"
#include "store/env/mountpoint.h"
#include "store/env/posix_env.h"
#include "store/env/process.h"
#include "store/env/resources.h"
#include "store/env/service_manager.h"
#include "store/superblock/superblock.h"
#include "tools/siltfs/closest_name.h"
#include "tools/siltfs/daemon.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/mount_attachment.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/remaining_mounts.h"
#include "tools/siltfs/size_option.h"
#include "tools/siltfs/small_disk.h"
#include "tools/siltfs/store_bucket_options.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"
#include "tools/siltfs/store_search.h"

namespace siltfs {
namespace {

constexpr int kAttempts = 5;

// Tells the superuser, which alone can change it, about the setting that makes mounts faster.
// Called after the mount, because a mount that fails prints one sentence.
void TellOfRings(const MountOptions& options, Surroundings& surroundings) {
  if (options.io_uring != IoUringUse::kAuto || CurrentUserId() != 0) return;
  if (fuse::ReadRingOffer() != fuse::RingOffer::kDisabled) return;
  surroundings.err << fmt::format(
                          "siltfs: mounts are faster with FUSE over io_uring, which is disabled on "
                          "this system: write Y to {} before mounting (see docs/performance.md)\n",
                          fuse::kRingSetting)
                   << std::flush;
}

// Tells the service manager, if one has started this process, how far a mount in the foreground is.
// The texts are shown by "systemctl status".
class Announcer {
 public:
  Announcer(const DaemonOptions& options, Surroundings& surroundings)
      : store_(Printable(options.store)),
        mountpoint_(Printable(options.mountpoint)),
        surroundings_(surroundings) {}

  void Opening() { Tell(manager_.Report(fmt::format("opening {}", store_))); }
  // The start ends when the other process has mounted the store; systemd waits for that process.
  void Waiting() {
    Tell(manager_.Ready(fmt::format("{} is open, and waits for its mount", store_)));
  }
  void Mounted() { Tell(manager_.Report(fmt::format("{} is mounted on {}", store_, mountpoint_))); }
  void Ready() { Tell(manager_.Ready(fmt::format("{} is mounted on {}", store_, mountpoint_))); }
  void Closing() { Tell(manager_.Stopping(fmt::format("writing everything to {}", store_))); }
  void Failed(const Status& why) { Tell(manager_.Report(Printable(why.ToString()))); }

 private:
  // The mount goes on without a service manager that cannot be told. The manager ends the process
  // if it waits for the message.
  void Tell(const Status& told) {
    if (!told.ok()) Warn(surroundings_, told.ToString());
  }

  const ServiceManager manager_ = ServiceManager::FromEnvironment();
  const std::string store_;
  const std::string mountpoint_;
  Surroundings& surroundings_;
};

bool IsWithin(const std::string& path, const std::string& directory) {
  return path == directory || directory == "/" || path.starts_with(directory + "/");
}

// Checks the mountpoint and the machine, before anything is opened or started.
Status Check(const DaemonOptions& options) {
  SILTFS_RETURN_IF_ERROR(CheckMountpoint(options.mountpoint));
  if (IsWithin(options.store, options.mountpoint)) {
    return Status(StatusCode::kNotPermitted,
                  fmt::format("a mount at this place would hide its own store {}", options.store))
        .At(options.mountpoint);
  }
  if (IsWithin(options.mountpoint, options.store)) {
    return Status(StatusCode::kNotPermitted, "the mountpoint lies in the store itself")
        .At(options.mountpoint);
  }
  return options.receives_mount ? Status::Ok() : CheckFuseDevice();
}

Status Explain(Status served, const DaemonOptions& options) {
  return ExplainReadOnlyMedium(ExplainLock(std::move(served), options.store), options.store,
                               "mount it with -o ro");
}

// Makes the store from its bucket. Threads that this starts would not be in a process that is
// forked later, so the daemon's process calls it.
Status Restore(const std::string& store, const BucketConfig& from, bool take_over) {
  const auto env = NewPosixEnv({.links = SymbolicLinks::kRefuse, .anchor = {}});
  SILTFS_RETURN_IF_ERROR(RestoreFromBucket(*env, store, from, take_over).status());
  return KeepToOwner(store);
}

// Makes the directory of a mount that follows the writer of a bucket.
Status PrepareToFollow(const std::string& directory, const BucketConfig& config) {
  const auto env = NewPosixEnv({.links = SymbolicLinks::kRefuse, .anchor = {}});
  SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(*env, ParentOf(directory), directory));
  SILTFS_RETURN_IF_ERROR(KeepToOwner(directory));
  return WriteBucketConfig(*env, directory, config);
}

// Serves the store, with all paths anchored at the store's directory. So the daemon follows the
// directory when it is moved, and does not write into another directory put in its place.
Status Serve(const DaemonOptions& options) {
  PrepareForStore();
  if (options.follow) SILTFS_RETURN_IF_ERROR(PrepareToFollow(options.store, *options.follow));
  if (options.restore_from)
    SILTFS_RETURN_IF_ERROR(Restore(options.store, *options.restore_from, options.take_over));
  const auto env = NewPosixEnv({.links = SymbolicLinks::kRefuse, .anchor = options.store});
  return ExplainInterruption(Explain(ServeStore(*env, options), options),
                             "the store is sound, and the next mount begins the opening again");
}

// Both functions return an empty value if another process has got the store meanwhile, and can
// serve the mount.
std::optional<ExitCode> ServeInForeground(DaemonOptions options, Surroundings& surroundings) {
  Announcer announcer(options, surroundings);
  options.foreground = true;
  options.on_ready = [&] {
    TellOfRings(options.mount, surroundings);
    options.receives_mount ? announcer.Mounted() : announcer.Ready();
    return true;
  };
  options.on_waiting = [&] { announcer.Waiting(); };
  options.on_closing = [&] { announcer.Closing(); };
  announcer.Opening();
  const Status served = Serve(options);
  if (served.ok()) return ExitCode::kDone;
  if (MayAttach(options, ExitCodeOf(served))) return std::nullopt;
  announcer.Failed(served);
  return Fail(surroundings, served);
}

// Shows in the launcher what the daemon reports, and passes signals on to it.
class LaunchDisplay {
 public:
  LaunchDisplay(const DaemonOptions& options, Surroundings& surroundings)
      : options_(options), surroundings_(surroundings) {}

  LauncherWatch Begin() {
    auto begun = LongCommand::Begin(
        surroundings_, {.command = "mount", .subject = options_.store, .quiet = options_.quiet});
    if (!begun.ok()) {
      begun.status().IgnoreError("the mount works without progress");
      return {};
    }
    command_ = *std::move(begun);
    command_->Observe([this] { return meter_.Now(); });
    return {.progress =
                [this](std::string_view step, uint64_t done, uint64_t total) {
                  meter_.Put({StepOf(step), done, total});
                },
            .interrupted = [this] { return command_->interrupted(); }};
  }
  void End() {
    if (command_) command_->End();
  }

 private:
  const DaemonOptions& options_;
  Surroundings& surroundings_;
  ProgressMeter meter_;
  std::unique_ptr<LongCommand> command_;
};

std::optional<ExitCode> ServeInBackground(DaemonOptions options, Surroundings& surroundings) {
  // The terminal sends its signals to both processes. Neither may end before its report, so they
  // are blocked from before the fork until the report was sent.
  const auto signals = TerminationSignals::Block();
  if (!signals.ok()) return Fail(surroundings, signals.status());
  LaunchDisplay display(options, surroundings);
  auto start = BecomeDaemon([&display] { return display.Begin(); });
  if (!start.ok()) return Fail(surroundings, ExitCode::kFailed, start.status().ToString());
  if (start->role == DaemonRole::kLauncher) {
    display.End();
    const auto code = static_cast<ExitCode>(start->exit_code);
    // A signal that came too late to be passed on has not ended the mount.
    if (start->interrupted && code == ExitCode::kDone) {
      return Fail(surroundings,
                  Status(StatusCode::kInterrupted,
                         "was interrupted; its daemon unmounts it again, and nothing is lost")
                      .At(options.mountpoint));
    }
    if (!start->interrupted && MayAttach(options, code)) return std::nullopt;
    if (!start->message.empty()) return Fail(surroundings, code, start->message);
    if (code == ExitCode::kDone) TellOfRings(options.mount, surroundings);
    return code;
  }
  std::atomic<bool> ready = false;
  options.on_ready = [&] {
    ready = true;
    return start->report->Ready().ok();
  };
  options.on_opening = [&](const WorkProgress& work) {
    start->report->Progress(work.step, work.done, work.total);
  };
  const Status served = Serve(options);
  const ExitCode code = ExitCodeOf(served);
  if (!ready) {
    start->report->Failure(served.ToString(), static_cast<int>(code))
        .IgnoreError("the launcher is gone");
  }
  return code;
}

// Mounts the store with a daemon of its own. Returns an empty value as the functions above.
std::optional<ExitCode> MountAlone(const DaemonOptions& options, bool foreground,
                                   Surroundings& surroundings) {
  // A daemon may still be closing the store. Wait for it before signals are blocked, so that a
  // signal can end this process.
  const Status closed = WaitUntilClosed(options.store, [&](const std::string& sentence) {
    surroundings.err << fmt::format("siltfs: {}, which is closing the store\n", sentence)
                     << std::flush;
  });
  if (!closed.ok()) {
    if (MayAttach(options, ExitCodeOf(closed))) return std::nullopt;
    return Fail(surroundings, closed);
  }
  return foreground ? ServeInForeground(options, surroundings)
                    : ServeInBackground(options, surroundings);
}

// Mounts a snapshot. If a daemon has the store open, it serves the mount.
ExitCode MountSnapshot(DaemonOptions options, bool foreground, Surroundings& surroundings) {
  options.on_waiting = [&] { Announcer(options, surroundings).Waiting(); };
  // Mounts of other snapshots may begin and end at the same time, and each may get the store first.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto attached =
        options.receives_mount ? AwaitAttachment(options) : AttachToDaemon(options, surroundings);
    if (!attached.ok()) return Fail(surroundings, attached.status());
    if (*attached) {
      if (!foreground) return ExitCode::kDone;
      Announcer announcer(options, surroundings);
      options.receives_mount ? announcer.Mounted() : announcer.Ready();
      const Status ended = AwaitUnmount(options, **attached);
      if (ended.ok()) return ExitCode::kDone;
      announcer.Failed(ended);
      return Fail(surroundings, ended);
    }
    const auto alone = MountAlone(options, foreground, surroundings);
    if (alone) return *alone;
  }
  return Fail(
      surroundings,
      Status(StatusCode::kInUse, "other processes use it in turns; try again").At(options.store));
}

// Makes the mount for a daemon that runs with --part=serve.
ExitCode MountForDaemon(const DaemonOptions& options, Surroundings& surroundings) {
  const auto handed = HandOver(options);
  if (!handed.ok()) return Fail(surroundings, handed.status());
  if (*handed) return ExitCode::kDone;
  const auto attached = AttachToDaemon(options, surroundings);
  if (!attached.ok()) return Fail(surroundings, attached.status());
  if (*attached) return ExitCode::kDone;
  return Fail(surroundings,
              Status(StatusCode::kInUse, "its daemon does not wait for a process that mounts it")
                  .At(options.store));
}

// Adds the closest name to the message about an unknown option.
std::string ExplainMountOption(const Status& wrong) {
  constexpr std::string_view kUnknown = "unknown mount option \"";
  std::string sentence = wrong.ToString();
  if (!sentence.starts_with(kUnknown)) return sentence;
  const std::string_view name = std::string_view(sentence).substr(kUnknown.size());
  const std::vector<std::string> names = MountOptionNames();
  const auto closest = FindClosestName(name.substr(0, name.find_first_of("=\"")), names);
  return fmt::format("{}{} (try siltfs mount --help)", sentence,
                     closest ? fmt::format(", did you mean {}?", names[*closest]) : "");
}

// What a mount does with the bucket that it names.
struct BucketUse {
  std::optional<BucketConfig> restore_from;  // the store is to be made from the bucket
  std::optional<BucketConfig> follow;        // the mount follows the bucket's writer
};

// The directory of the store that is in a bucket.
Result<std::string> StoreOfBucket(const MountRequest& request, const MountOptions& mount, Env& env,
                                  BucketUse& use) {
  if (!request.directory) {
    return Status(StatusCode::kInvalidArgument,
                  "a mount of a bucket needs --cache DIR, where the local part of the store is, or "
                  "is to be made");
  }
  SILTFS_ASSIGN_OR_RETURN(std::string store, AbsolutePath(*request.directory));
  SILTFS_ASSIGN_OR_RETURN(const auto known, ReadBucketConfig(env, store));
  SILTFS_ASSIGN_OR_RETURN(BucketConfig config,
                          ApplyBucketOptions(request.bucket, known.value_or(BucketConfig())));
  if (known && known->address != config.address) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("has a store in {}; name another directory with --cache",
                              known->address))
        .At(store);
  }
  // The superblock is the last file of a restore. Without it, an earlier restore was interrupted.
  const auto superblock = ReadSuperblock(env, store, StoreAccess::kReadOnly);
  const bool missing = superblock.status().Is(StatusCode::kNotFound);
  if (!mount.read_only) {
    if (missing) use.restore_from = std::move(config);
    return store;
  }
  if (request.take_over) {
    return Status(StatusCode::kInvalidArgument,
                  "a read-only mount of a bucket leaves the writer alone; leave out --take-over");
  }
  if (!mount.snapshot.empty()) {
    return Status(
        StatusCode::kInvalidArgument,
        "a read-only mount of a bucket shows no snapshot alone; leave out -o snapshot, and "
        "look into the directory .snapshots of the mount");
  }
  if (!missing) {
    return Status(StatusCode::kInvalidArgument,
                  "has a store that can be mounted for writing; a read-only mount of a "
                  "bucket needs another directory, so give one with --cache")
        .At(store);
  }
  use.follow = std::move(config);
  return store;
}

// Returns the directory of the store, which the request may name by its UUID or label.

Result<std::string> FindStore(const MountRequest& request, const MountOptions& mount, Env& env,
                              BucketUse& use) {
  if (NamesBucket(request.store)) return StoreOfBucket(request, mount, env, use);
  const auto tag = ParseStoreTag(request.store);
  if (!tag) return AbsolutePath(request.store);
  if (!mount.search.empty()) return FindTaggedStore(env, *tag, mount.search);
  SILTFS_ASSIGN_OR_RETURN(const std::vector<std::string> places, ReadStorePlaces(env, kStoresFile));
  return FindTaggedStore(env, *tag, places);
}

// "mount -a" compares the source in fstab with the one in the mount table, which is a directory. So
// if fstab has a UUID or a label, it calls the helper again for a store that is mounted already.
bool IsMountedThere(const DaemonOptions& options) {
  const auto address = FindMount(options.mountpoint);
  if (!address.ok()) {
    address.status().IgnoreError("the checks before the mount report it");
    return false;
  }
  if (!*address || (*address)->store != options.store) return false;
  const auto daemon = control::Identify(**address);
  if (!daemon.ok()) return false;
  const auto served = ServedMountOf(**address, *daemon);
  return served && served->snapshot == options.mount.snapshot;
}

}  // namespace

ExitCode MountStore(const MountRequest& request, Surroundings& surroundings) {
  auto mount_options = ParseMountOptions(request.options);
  if (!mount_options.ok())
    return Fail(surroundings, ExitCode::kUsage, ExplainMountOption(mount_options.status()));
  BucketUse use;
  const auto store = FindStore(request, *mount_options, surroundings.env, use);
  if (request.part == MountPart::kRemove)
    return RemoveMounts(store, *mount_options, request.mountpoint, surroundings);
  if (!store.ok()) return Fail(surroundings, store.status());
  const auto mountpoint = AbsolutePath(request.mountpoint);
  if (!mountpoint.ok())
    return Fail(surroundings, ExitCode::kFailed, mountpoint.status().ToString());

  DaemonOptions options{.store = *store,
                        .mountpoint = *mountpoint,
                        .mount = std::move(*mount_options),
                        .quiet = request.quiet,
                        .receives_mount = request.part == MountPart::kServe,
                        .take_over = request.take_over,
                        .restore_from = std::move(use.restore_from),
                        .follow = std::move(use.follow),
                        .on_ready = {}};
  options.mount.follows = options.follow.has_value();
  if (options.mount.log_file) {
    const auto log_file = AbsolutePath(*options.mount.log_file);
    if (!log_file.ok()) return Fail(surroundings, ExitCode::kFailed, log_file.status().ToString());
    options.mount.log_file = *log_file;
  }
  if (request.is_helper && ParseStoreTag(request.store) && IsMountedThere(options))
    return ExitCode::kDone;
  const Status checked = Check(options);
  if (!checked.ok()) return Fail(surroundings, ExitCode::kFailed, checked.ToString());
  if (request.part == MountPart::kMount) return MountForDaemon(options, surroundings);
  if (options.mount.index_memory) {
    const auto warning =
        WarnOfIndexMemory("mount option \"index_memory\"", *options.mount.index_memory,
                          PhysicalMemoryBytes(), LeastIndexMemory(surroundings.env, options.store));
    if (warning) Warn(surroundings, *warning);
  }
  if (!options.mount.read_only) {
    const auto warning = WarnOfSmallDisk(surroundings.env, options.store);
    if (warning) Warn(surroundings, *warning);
  }
  if (request.check_only) return ExitCode::kDone;
  const bool foreground = request.foreground || options.receives_mount;
  if (!options.mount.snapshot.empty()) return MountSnapshot(options, foreground, surroundings);
  return MountAlone(options, foreground, surroundings).value_or(ExitCode::kInUse);
}

}  // namespace siltfs
