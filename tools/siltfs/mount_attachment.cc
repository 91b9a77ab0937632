#include "tools/siltfs/mount_attachment.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "fs/attach/attach_message.h"
#include "fs/control/client.h"
#include "fs/control/protocol.h"
#include "fs/control/snapshot_json.h"
#include "fs/fuse/kernel_readahead.h"
#include "fs/fuse/mount_maker.h"
#include "store/env/mount_table.h"
#include "store/env/mountpoint.h"
#include "store/env/process.h"
#include "tools/siltfs/interruption.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

// How long to wait until a daemon has answered which process it is, and how long until a daemon
// that is starting has mounted the store.
constexpr std::chrono::seconds kIntroduction{3};
constexpr std::chrono::seconds kStart{60};
constexpr std::chrono::milliseconds kInterval{20};
// How long the daemon may take for one of its messages.
constexpr std::chrono::seconds kAnswer{30};
// The interval between looks at the mount table.
constexpr std::chrono::milliseconds kLook{200};

Status CannotServe(const DaemonOptions& options, const control::Identity& daemon) {
  return Status(
             StatusCode::kInUse,
             fmt::format("is mounted on {} by process {}, whose version of siltfs cannot serve "
                         "a second mount; use {}/.snapshots/{}, or mount the store again with "
                         "this version",
                         daemon.mountpoint, daemon.pid, daemon.mountpoint, options.mount.snapshot))
      .At(options.store);
}

// Reads an answer of the daemon. A snapshot that is not found is no missing store, which has an
// exit code of its own.
Status ReadAnswer(LocalStream& stream) {
  const auto line = stream.ReadLine(control::kMaxResponseBytes);
  if (line.status().Is(StatusCode::kInterrupted))
    return {StatusCode::kIoError, "the daemon of the store does not answer"};
  SILTFS_RETURN_IF_ERROR(line.status());
  if (!*line) return {StatusCode::kAborted, "the daemon of the store ended before it answered"};
  const Status answer = control::DecodeResponse(**line).status();
  if (!answer.Is(StatusCode::kNotFound)) return answer;
  return {StatusCode::kIoError, std::string(answer.cause())};
}

// The options with which this process makes the mount. If the superuser hands it to the daemon of
// another user, set-id programs and device nodes would give that user the rights of others.
MountOptions OptionsFor(const DaemonOptions& options, uint32_t daemon_user) {
  MountOptions mount = options.mount;
  if (daemon_user == 0) return mount;
  std::erase(mount.passed_on, "suid");
  std::erase(mount.passed_on, "dev");
  return mount;
}

Status Hand(LocalStream& stream, MadeMount& made) {
  SILTFS_RETURN_IF_ERROR(
      stream.SendDescriptors(attach::EncodeDevice(made.device), {&made.connection}));
  // Only the daemon keeps the connection open. So if the daemon ends, programs get an error.
  made.connection.Reset();
  return ReadAnswer(stream);
}

// Makes the mount and hands it over. Returns its device. After an error nothing is mounted.
Result<uint64_t> MakeAndHand(const DaemonOptions& options, MountOptions mount,
                             LocalStream& stream) {
  SILTFS_ASSIGN_OR_RETURN(MadeMount made, MakeMount({.mountpoint = options.mountpoint,
                                                     .store = options.store,
                                                     .mount = std::move(mount),
                                                     .log = nullptr,
                                                     .on_ready = {}}));
  Status handed = Hand(stream, made);
  if (handed.ok()) return made.device;
  made.connection.Reset();
  const Status unmounted = UnmountFuse(options.mountpoint);
  if (!unmounted.ok()) AbortMount(options.mountpoint).IgnoreError("the first failure is reported");
  return handed;
}

Result<Attachment> AttachTo(const control::DaemonAddress& address, const control::Identity& daemon,
                            const DaemonOptions& options) {
  const auto session = control::OpenSession(address, std::string(attach::kCommand));
  if (session.status().Is(StatusCode::kInvalidArgument)) return CannotServe(options, daemon);
  SILTFS_RETURN_IF_ERROR(session.status());
  if (session->greeting.value("version", uint64_t{0}) != attach::kVersion)
    return CannotServe(options, daemon);
  LocalStream& stream = *session->stream;
  SILTFS_ASSIGN_OR_RETURN(const uint32_t daemon_user, stream.PeerUid());
  SILTFS_RETURN_IF_ERROR(stream.SetTimeout(kAnswer));
  // A signal must not end this process between the mount and its hand-over.
  SILTFS_ASSIGN_OR_RETURN(const auto signals, TerminationSignals::Block());
  SILTFS_RETURN_IF_ERROR(stream.WriteAll(attach::EncodeWanted({.snapshot = options.mount.snapshot,
                                                               .mountpoint = options.mountpoint,
                                                               .xattrs = !options.mount.no_xattrs,
                                                               .max_read = options.mount.max_read,
                                                               .owners = options.mount.owners})));
  SILTFS_RETURN_IF_ERROR(ReadAnswer(stream));
  SILTFS_ASSIGN_OR_RETURN(const uint64_t device,
                          MakeAndHand(options, OptionsFor(options, daemon_user), stream));
  return Attachment{daemon.pid, attach::DeviceText(device)};
}

Result<bool> HandOverTo(const control::DaemonAddress& address, const DaemonOptions& options) {
  const auto session = control::OpenSession(address, std::string(attach::kMountCommand));
  // An older daemon does not know the session.
  const bool does_not_wait =
      session.status().Is(StatusCode::kInUse) || session.status().Is(StatusCode::kInvalidArgument);
  if (does_not_wait && !options.mount.snapshot.empty()) return false;
  SILTFS_RETURN_IF_ERROR(session.status());
  LocalStream& stream = *session->stream;
  SILTFS_ASSIGN_OR_RETURN(const uint32_t daemon_user, stream.PeerUid());
  SILTFS_RETURN_IF_ERROR(stream.SetTimeout(kAnswer));
  SILTFS_ASSIGN_OR_RETURN(const uint64_t device,
                          MakeAndHand(options, OptionsFor(options, daemon_user), stream));
  // The answer to this question follows the answer to INIT, which would lower the readahead again.
  if (ProbeMount(options.mountpoint, kAnswer) == MountAnswer::kAnswers)
    fuse::RaiseKernelReadahead(device, fuse::kKernelReadaheadBytes);
  return true;
}

// The options that concern the daemon, and so have no effect.
std::string WithoutEffect(const MountOptions& mount) {
  std::string names;
  const auto add = [&](bool given, std::string_view name) {
    if (given) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  };
  add(mount.index_memory.has_value(), "index_memory");
  add(mount.index_merge_rate != 0, "index_merge_rate");
  add(mount.bucket_timeout.has_value(), "bucket_timeout");
  add(mount.follow_interval.has_value(), "follow");
  add(mount.reader_age.has_value(), "reader_age");
  add(mount.sync_bucket, "sync");
  add(mount.index_sync, "index_sync");
  add(mount.commit_interval.has_value(), "commit");
  add(mount.no_background_gc, "nogc");
  add(mount.log_file.has_value(), "log");
  add(mount.io_uring == IoUringUse::kOn, "io_uring");
  add(mount.debug, "debug");
  return names;
}

}  // namespace

Result<std::optional<Attachment>> AttachToDaemon(const DaemonOptions& options,
                                                 Surroundings& surroundings) {
  const auto none = std::optional<Attachment>();
  SILTFS_RETURN_IF_ERROR(CheckSnapshotArguments({{"name", options.mount.snapshot}}));
  for (const auto deadline = Clock::now() + kStart;; std::this_thread::sleep_for(kInterval)) {
    const control::DaemonAddress address = AddressOfStore(options.store);
    const auto daemon = control::Identify(address, {.answer = kIntroduction});
    // kIoError: the daemon does not answer. After other errors the caller opens the store, and that
    // reports why it fails.
    if (daemon.status().Is(StatusCode::kIoError)) return daemon.status();
    if (!daemon.ok() || daemon->state == control::kClosing) return none;
    if (daemon->state == control::kStarting) {
      if (Clock::now() < deadline) continue;
      return Status(
                 StatusCode::kInUse,
                 fmt::format("process {} is still opening the store; try again later", daemon->pid))
          .At(options.store);
    }
    auto attached = AttachTo(address, *daemon, options);
    if (!attached.ok()) {
      const bool ends = control::IsGone(attached.status());
      if (ends && Clock::now() < deadline) continue;
      return attached.status();
    }
    const std::string without_effect = WithoutEffect(options.mount);
    if (!without_effect.empty()) {
      Warn(surroundings, fmt::format("mount options without effect, because process {} serves the "
                                     "mount: {}",
                                     attached->pid, without_effect));
    }
    return std::optional<Attachment>(*std::move(attached));
  }
}

bool MayAttach(const DaemonOptions& options, ExitCode code) {
  if (options.mount.snapshot.empty() || code != ExitCode::kInUse) return false;
  const auto daemon = control::Identify(AddressOfStore(options.store), {.answer = kIntroduction});
  return daemon.ok() && daemon->state != control::kClosing;
}

Result<bool> HandOver(const DaemonOptions& options) {
  // A signal must not end this process between the mount and its hand-over.
  SILTFS_ASSIGN_OR_RETURN(const auto signals, TerminationSignals::Block());
  auto handed = HandOverTo({.store = options.store, .device = attach::kAwaited}, options);
  // A service manager that stops a service sends the signal to the daemon, too.
  if (handed.ok() || !signals->Pending()) return handed;
  return Status(StatusCode::kInterrupted, "was interrupted; nothing has changed")
      .At(options.mountpoint);
}

Result<std::optional<Attachment>> AwaitAttachment(const DaemonOptions& options) {
  bool told = false;
  for (const auto deadline = Clock::now() + kStart; Clock::now() < deadline;
       std::this_thread::sleep_for(kInterval)) {
    const auto daemon = control::Identify(AddressOfStore(options.store), {.answer = kIntroduction});
    if (daemon.status().Is(StatusCode::kIoError)) return daemon.status();
    if (!daemon.ok() || daemon->state == control::kClosing) break;
    if (daemon->state == control::kStarting) continue;
    if (!std::exchange(told, true)) options.on_waiting();
    for (const control::ServedMount& mount :
         daemon->mounts.value_or(std::vector<control::ServedMount>())) {
      if (mount.mountpoint == options.mountpoint && mount.snapshot == options.mount.snapshot)
        return std::optional<Attachment>({daemon->pid, mount.device});
    }
  }
  if (!told) return std::optional<Attachment>();
  return Status(StatusCode::kIoError, "no process has mounted it").At(options.mountpoint);
}

Status AwaitUnmount(const DaemonOptions& options, const Attachment& attachment) {
  SILTFS_ASSIGN_OR_RETURN(const auto signals, TerminationSignals::Block());
  Interruption interruption(*signals);
  if (!options.receives_mount) {
    interruption.OnRequest([&] {
      UnmountFuse(options.mountpoint).IgnoreError("it is tried again, or the mount has ended");
    });
  }
  while (!options.receives_mount || !interruption.requested()) {
    SILTFS_ASSIGN_OR_RETURN(const auto mounts, ReadMountTable());
    const bool mounted = std::any_of(mounts.begin(), mounts.end(), [&](const Mount& mount) {
      return mount.mount_point == options.mountpoint && mount.device == attachment.device;
    });
    if (!mounted) return Status::Ok();
    if (StateOfProcess(attachment.pid) == ProcessState::kEnded) {
      return Status(StatusCode::kAborted,
                    fmt::format("process {}, which served the mount, has ended; siltfs umount {} "
                                "removes it",
                                attachment.pid, options.mountpoint))
          .At(options.mountpoint);
    }
    std::this_thread::sleep_for(kLook);
  }
  return Status::Ok();
}

}  // namespace siltfs
