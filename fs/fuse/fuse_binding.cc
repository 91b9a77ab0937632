#include "fs/fuse/fuse_binding.h"

#include <fmt/format.h>
#include <poll.h>

#include <cstring>
#include <utility>
#include <vector>

#include "fs/fuse/capabilities.h"
#include "fs/fuse/fuse_api.h"
#include "fs/fuse/handler_context.h"
#include "fs/fuse/kernel_extensions.h"
#include "fs/fuse/request_loop.h"
#include "fs/fuse/session_mount.h"
#include "fs/fuse/stop_event.h"
#include "store/env/mountpoint.h"

namespace siltfs {
namespace {

using fuse::HandlerContext;
using fuse::RingTransport;

void Initialize(void* user_data, fuse_conn_info* connection) {
  auto& context = *static_cast<HandlerContext*>(user_data);
  fuse::Negotiate(context, *connection);
  if (context.options.on_ready) context.options.on_ready();
}

fuse_lowlevel_ops MakeOperations(const MountOptions& mount) {
  fuse_lowlevel_ops operations = {};
  operations.init = Initialize;
  fuse::AddNameHandlers(operations);
  fuse::AddAttributeHandlers(operations);
  fuse::AddDirectoryHandlers(operations);
  fuse::AddFileHandlers(operations);
  // Without handlers for extended attributes, libfuse answers ENOSYS, and the kernel never asks
  // again.
  if (!mount.no_xattrs) fuse::AddXattrHandlers(operations);
  return operations;
}

class Session final : public FuseBinding {
 public:
  Session(Env& env, FileSystem& file_system, const FuseBindingOptions& options)
      : context_{.env = env,
                 .file_system = file_system,
                 .options = options,
                 .read_buffers = {},
                 .failure_log = {options.log, [&env] { return env.MonotonicNanoseconds(); }},
                 .rings = RingTransport({.use = options.mount.io_uring,
                                         .workers = kMaxThreads,
                                         .answer =
                                             [this](MutableByteView message, MutableByteView area) {
                                               fuse::AnswerRingRequest(session_.get(), message,
                                                                       area);
                                             },
                                         .failed = [this](const Status& cause) { Abort(cause); },
                                         .log = options.log})} {}

  ~Session() override {
    context_.rings.Release();  // it keeps /dev/fuse open
    if (mounted_) fuse_session_unmount(session_.get());
  }

  Status Mount() {
    const fuse_lowlevel_ops operations = MakeOperations(context_.options.mount);
    SILTFS_ASSIGN_OR_RETURN(session_, fuse::MountSession(context_.options, operations, &context_));
    mounted_ = true;
    context_.session = session_.get();
    context_.device = fuse::DeviceOf(context_.options.mountpoint);
    if (fuse::ListenToKernel(session_.get(), fuse_session_fd(session_.get()))) return {};
    return Status(StatusCode::kIoError, "cannot be mounted").At(context_.options.mountpoint);
  }

  Status Adopt(Descriptor connection, uint64_t device) {
    SILTFS_RETURN_IF_ERROR(CheckFuseDescriptor(connection).At(context_.options.mountpoint));
    SILTFS_ASSIGN_OR_RETURN(stop_, fuse::StopEvent::Make());
    const fuse_lowlevel_ops operations = MakeOperations(context_.options.mount);
    SILTFS_ASSIGN_OR_RETURN(session_, fuse::NewSession(context_.options, operations, &context_));
    context_.session = session_.get();
    context_.device = device;
    if (!fuse::ListenToKernel(session_.get(), connection.get()))
      return Status(StatusCode::kOutOfMemory, "cannot be served").At(context_.options.mountpoint);
    connection.Release();  // the session closes it
    return {};
  }

  Status AwaitWriteback() override {
    std::vector<fuse::KernelInode> files;
    for (const InodeNumber inode : context_.open_for_writing.All())
      files.push_back({inode, context_.file_system.GenerationOf(inode)});
    if (files.empty()) return {};
    Status written = fuse::WriteBackFiles(context_.options.mountpoint, context_.device, files);
    if (written.Is(StatusCode::kUnsupported)) written = fuse::WaitUntilAnswered(context_.device);
    if (written.ok()) return {};
    return Status(written.code(),
                  fmt::format("data of files that are open for writing may not be in the store "
                              "yet, fsync or close them: {}",
                              written.cause()))
        .At(context_.options.mountpoint);
  }

  void ForgetName(InodeNumber parent, const std::string& name) override {
    LogForgetting(parent, fuse_lowlevel_notify_inval_entry(session_.get(), parent, name.c_str(),
                                                           name.size()));
  }

  void ForgetInode(InodeNumber inode, bool listing) override {
    // The cached names are the directory's pages, from offset 0 on. A negative offset leaves them.
    LogForgetting(inode,
                  fuse_lowlevel_notify_inval_inode(session_.get(), inode, listing ? 0 : -1, 0));
  }

  Status Serve() override {
    const int outcome = fuse::ServeRequests(
        session_.get(), {.threads = context_.options.threads,
                         .seldom_used = [this] { return context_.rings.InUse(); },
                         .stop = stop_.get()});
    context_.rings.Stop();
    context_.tasks.Finish();
    if (outcome >= 0) return {};
    return Status(StatusCode::kIoError,
                  fmt::format("the connection to the kernel failed: {}", std::strerror(-outcome)))
        .At(context_.options.mountpoint);
  }

  Transport CurrentTransport() const override {
    return context_.rings.InUse() ? Transport::kRings : Transport::kDevice;
  }

  void Stop() override {
    if (!stop_) return;
    // A task waits until the kernel's requests are answered, so it must end before the loop does.
    context_.tasks.Finish();
    stop_->Set();
  }

  bool Adopted() const override { return stop_ != nullptr; }

  bool Connected() const override {
    // After the connection has ended, the kernel reports an error for the device.
    pollfd device{.fd = fuse_session_fd(session_.get()), .events = 0, .revents = 0};
    return poll(&device, 1, 0) == 0;
  }

 private:
  // Without its rings, the mount cannot be served. The end of the connection gives all waiting
  // programs an error.
  void Abort(const Status& cause) const {
    context_.options.log->error("{}: {}; the mount ends", context_.options.mountpoint,
                                cause.ToString());
    if (stop_) return stop_->Set();
    const Status aborted = AbortMount(context_.options.mountpoint);
    if (!aborted.ok()) context_.options.log->error("{}", aborted.ToString());
  }

  void LogForgetting(InodeNumber inode, int outcome) {
    const bool cached_nothing = outcome == 0 || outcome == -ENOENT;
    const bool unmounted = outcome == -ENODEV || outcome == -ENOTCONN || outcome == -EBADF;
    if (cached_nothing || unmounted) return;
    context_.failure_log.Add(
        Status(StatusCode::kIoError, fmt::format("the kernel may show an old state of inode {}: {}",
                                                 inode, std::strerror(-outcome))));
  }

  HandlerContext context_;
  std::unique_ptr<fuse::StopEvent> stop_;  // null unless adopted
  fuse::SessionPointer session_;
  bool mounted_ = false;
};

}  // namespace

Result<std::unique_ptr<FuseBinding>> FuseBinding::Mount(Env& env, FileSystem& file_system,
                                                        FuseBindingOptions options) {
  if (options.mount.io_uring == IoUringUse::kOn) {
    SILTFS_RETURN_IF_ERROR(fuse::CheckRings().At(options.mountpoint));
  }
  auto session = std::make_unique<Session>(env, file_system, options);
  SILTFS_RETURN_IF_ERROR(session->Mount());
  return std::unique_ptr<FuseBinding>(std::move(session));
}

Result<std::unique_ptr<FuseBinding>> FuseBinding::Adopt(Env& env, FileSystem& file_system,
                                                        FuseBindingOptions options,
                                                        Descriptor connection, uint64_t device) {
  if (options.mount.io_uring == IoUringUse::kOn) {
    SILTFS_RETURN_IF_ERROR(fuse::CheckRings().At(options.mountpoint));
  }
  auto session = std::make_unique<Session>(env, file_system, options);
  SILTFS_RETURN_IF_ERROR(session->Adopt(std::move(connection), device));
  return std::unique_ptr<FuseBinding>(std::move(session));
}

}  // namespace siltfs
