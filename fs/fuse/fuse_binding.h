// Binds a FileSystem to a mountpoint: the thin layer between libfuse's low-level interface and the
// core.
//
// Kernel caching: this daemon alone changes the file system. So the kernel may cache names,
// attributes and negative lookups for a day and file contents across opens, and its writeback cache
// gathers writes. A power cut may lose data that was written but not fsynced. The binding tells the
// kernel to drop a directory's attributes only if a reply under way may have attributes from before
// another thread's change (attribute_reply_tracker.h). The kernel checks permissions
// (default_permissions). Node ids are inode numbers, which are never reused. FLUSH and OPENDIR are
// declined permanently (ENOSYS), so the kernel sends no such request when a file is closed or a
// directory is opened.
//
// Transport: if the kernel offers FUSE over io_uring, requests arrive through rings
// (fs/rings/ring_server.h), otherwise through reads of /dev/fuse (request_loop.h). /dev/fuse is
// read in both cases, because some kernel messages never use the rings.
//
// A mount may also be made by another process (mount_maker.h), which passes the descriptor of its
// connection to this one (Adopt).
//
// Thread-safety: Serve runs the request loop on threads of its own; AwaitWriteback, Connected,
// CurrentTransport and Stop may be called from any thread; everything else belongs to one thread.
// An unmount ends Serve, and so does Stop if the binding was adopted. Ownership: borrows the
// FileSystem and the Env, which must outlive the binding; does not close the FileSystem. Memory:
// each thread of the request loop owns a request buffer of 1 MiB, and each READ in progress uses a
// reply buffer of up to 1 MiB. The slots of the rings take up to 16 MiB (fs/rings/ring_plan.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <spdlog/logger.h>

#include "fs/fuse/mount_options.h"
#include "fs/interface/file_system.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

enum class Transport : uint8_t {
  kDevice,  // reads of /dev/fuse
  kRings,   // FUSE over io_uring
};

inline constexpr unsigned kFuseThreads = 8;
inline constexpr uint32_t kMaxFuseRequestBytes = 1U << 20;

struct FuseBindingOptions {
  std::string mountpoint;  // absolute path of an existing directory
  std::string store;       // absolute path, shown as the mount's source in /proc/self/mounts
  MountOptions mount;
  std::shared_ptr<spdlog::logger> log;
  std::function<void()> on_ready;  // called once, on a thread of Serve, when the kernel has
                                   // accepted the mount; may be empty
  unsigned threads = kFuseThreads;
  uint32_t request_bytes = kMaxFuseRequestBytes;  // the most of a READ or WRITE
};

class FuseBinding {
 public:
  static constexpr unsigned kMaxThreads = kFuseThreads;
  static constexpr uint32_t kMaxRequestBytes = kMaxFuseRequestBytes;

  // The subtype in the kernel's list of mounts: /proc/self/mounts says "STORE MOUNTPOINT
  // fuse.siltfs".
  static constexpr const char* kSubtype = "siltfs";

  // Mounts; requests wait until Serve. kIoError with the cause if the kernel or fusermount3
  // refuses.
  static Result<std::unique_ptr<FuseBinding>> Mount(Env& env, FileSystem& file_system,
                                                    FuseBindingOptions options);

  // Serves a mount that another process has made with the same options. `connection` is the
  // descriptor of its connection to the kernel, and no other process may read from it. `device` is
  // the mount's device number (DeviceOf in fs/fuse/writeback.h); 0 if it is unknown or if the mount
  // is read-only. kInvalidArgument if the descriptor is no /dev/fuse.
  static Result<std::unique_ptr<FuseBinding>> Adopt(Env& env, FileSystem& file_system,
                                                    FuseBindingOptions options,
                                                    Descriptor connection, uint64_t device = 0);

  // Detaches the mount if it still exists, without writing cached contents back. This is for
  // failures, not for a regular shutdown. An adopted mount is not detached: its connection ends,
  // and programs that use it get ENOTCONN.
  virtual ~FuseBinding() = default;

  // Waits until all WRITE requests of the kernel are answered. Call it after syncfs(2), which makes
  // the kernel send its dirty data of this mount, but does not wait for the answers. Call it while
  // Serve runs, from any thread except those that answer requests. Only files that are open for
  // writing are checked, because closing a file waits until its writes are answered. Returns
  // kUnsupported or kInUse if this process cannot find out whether all writes are answered.
  virtual Status AwaitWriteback() = 0;

  // How requests arrive. From any thread; final when `on_ready` was called and the first request
  // after it was answered.
  virtual Transport CurrentTransport() const = 0;

  // Make the kernel forget what it has cached: whether `parent` has this name, and which inode it
  // is; the attributes of an inode, and with `listing` also the names in this directory. Call them
  // after a change that the kernel did not request. Call them while Serve runs, from any thread
  // except those that answer requests: the kernel may first wait for answers to requests about the
  // same directory. The caller holds no inode's lock. Nothing happens if nothing is cached.
  virtual void ForgetName(InodeNumber parent, const std::string& name) = 0;
  virtual void ForgetInode(InodeNumber inode, bool listing) = 0;

  // Answers requests until the file system is unmounted. On return every request has been answered,
  // and no request follows. After Stop, requests that no thread has read yet stay unanswered.
  virtual Status Serve() = 0;

  // Makes Serve return soon, if the binding was adopted. Does nothing otherwise. Call it while no
  // thread is in AwaitWriteback, ForgetName or ForgetInode, which may wait for the kernel's
  // requests.
  virtual void Stop() = 0;

  // Whether another process has made the mount. This process may then lack the right to unmount it.
  virtual bool Adopted() const = 0;

  // False once the file system is unmounted everywhere, whether Serve has noticed or not. From any
  // thread.
  virtual bool Connected() const = 0;
};

}  // namespace siltfs
