// Ties a FileSystem to a mountpoint: the thin layer between libfuse's low-level interface and the
// core.
//
// What the kernel is told. This daemon is the only writer, so names, attributes and "no such name"
// stay valid for a day, file contents stay cached over opens, and writes are gathered in the
// kernel's writeback cache: what was not fsynced may still be there when the machine dies. Only
// where a reply under way may tell what a directory was before somebody else's change is the kernel
// told to believe it no longer (told_directories.h).
// Permissions are checked by the kernel (default_permissions). Node ids are inode numbers, which
// are never reused. FLUSH and OPENDIR are declined for good (ENOSYS), which saves a round trip for
// every close and every directory.
//
// Thread-safety: Serve runs the request loop (request_loop.h) on kMaxThreads threads of its own;
// AwaitWriteback and Connected may be called from any thread; everything else belongs to one thread.
// There is no call that ends Serve: an unmount ends it. Ownership: borrows the FileSystem and the
// Env, which must outlive it; does not close the FileSystem. Memory: each thread owns a request
// buffer of 1 MiB, each READ in progress a reply buffer of at most as much.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <spdlog/logger.h>

#include "fs/core/file_system.h"
#include "fs/fuse/mount_options.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct FuseBindingOptions {
  std::string mountpoint;  // absolute path of an existing directory
  std::string store;       // absolute path, shown as the mount's source in /proc/self/mounts
  MountOptions mount;
  std::shared_ptr<spdlog::logger> log;
  std::function<void()> on_ready;  // called once, on a thread of Serve, when the kernel has
                                   // accepted the mount; may be empty
};

class FuseBinding {
 public:
  static constexpr unsigned kMaxThreads = 8;
  static constexpr uint32_t kMaxRequestBytes = 1U << 20;  // of one READ or WRITE

  // The name the kernel lists mounts under: /proc/self/mounts says "STORE MOUNTPOINT fuse.siltfs".
  static constexpr const char* kSubtype = "siltfs";

  // Mounts; requests wait until Serve. kIoError with the cause if the kernel or fusermount3
  // refuses.
  static Result<std::unique_ptr<FuseBinding>> Mount(Env& env, FileSystem& file_system,
                                                    FuseBindingOptions options);

  // Unmounts (detached, contents not written back) if still mounted: the way of a failure, not of a
  // shutdown.
  virtual ~FuseBinding() = default;

  // To be called after syncfs(2), which makes the kernel send what it holds of this mount and does
  // not wait until that is answered: returns when it is. From any thread but those that answer
  // requests, while Serve runs. Only files that are open for writing are looked at, as closing one
  // waits for the same. kUnsupported and kInUse where the owner of the mount cannot find out.
  virtual Status AwaitWriteback() = 0;

  // Answers requests until the file system is unmounted. Then every request has been answered and
  // none follows.
  virtual Status Serve() = 0;

  // False once the file system is unmounted everywhere, whether Serve has noticed or not. From any
  // thread.
  virtual bool Connected() const = 0;
};

}  // namespace siltfs
