#include "fs/fuse/capabilities.h"

#include <algorithm>

namespace siltfs::fuse {
namespace {

// The most readahead and writeback requests that may be unanswered at a time; the kernel then sends
// no more of them. The kernel's default of 12 would leave threads of the daemon idle.
constexpr unsigned kMaxBackgroundRequests = 64;

// Asks for the capability. False if the kernel does not offer it.
bool Ask(fuse_conn_info& connection, uint64_t capability) {
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
  return fuse_set_feature_flag(&connection, capability);
#else
  const auto flag = static_cast<unsigned>(capability);
  if ((connection.capable & flag) == 0) return false;
  connection.want |= flag;
  return true;
#endif
}

void Decline(fuse_conn_info& connection, uint64_t capability) {
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
  fuse_unset_feature_flag(&connection, capability);
#else
  connection.want &= ~static_cast<unsigned>(capability);
#endif
}

}  // namespace

void Negotiate(HandlerContext& context, fuse_conn_info& connection) {
  connection.max_write = std::min(connection.max_write, context.options.request_bytes);
  if (const auto payload = context.rings.payload_bytes()) {
    connection.max_write = std::min(connection.max_write, static_cast<unsigned>(*payload));
  }
  connection.max_readahead = std::min(connection.max_readahead, context.options.request_bytes);
  connection.max_read =
      context.options.mount.max_read.value_or(0);  // must agree with the mount option
  connection.max_background = kMaxBackgroundRequests;
  connection.congestion_threshold = kMaxBackgroundRequests / 4 * 3;

  context.writeback_can_be_awaited = connection.proto_minor >= kFirstProtocolToAwait;
  context.cache_can_be_passed_by = connection.proto_minor >= kFirstProtocolToPassCacheBy;

  Ask(connection, FUSE_CAP_ASYNC_READ);
  // With this capability, the kernel keeps the sizes of files, whatever attributes it is told.
  if (context.options.mount.follows) {
    Decline(connection, FUSE_CAP_WRITEBACK_CACHE);
  } else {
    Ask(connection, FUSE_CAP_WRITEBACK_CACHE);
  }
  Ask(connection,
      FUSE_CAP_PARALLEL_DIROPS);  // on by default in some versions of libfuse, off in others
  Ask(connection, FUSE_CAP_CACHE_SYMLINKS);
  // With this capability, file handles (open_by_handle_at, NFS) stay valid after the kernel has
  // dropped the inode: the kernel sends a lookup of "." in the inode with the number in the handle.
  // Numbers are never reused. A rollback gives the files that it changes another generation.
  Ask(connection, FUSE_CAP_EXPORT_SUPPORT);
  // The kernel requests listings with attributes if it sees that programs use the attributes, as
  // `ls -l` and `find -size` do.
  Ask(connection, FUSE_CAP_READDIRPLUS);
  Ask(connection, FUSE_CAP_READDIRPLUS_AUTO);
  // With this capability, the kernel does not apply the umask. The core applies it, unless the new
  // inode inherits the directory's default ACL, which replaces the umask.
  Ask(connection, FUSE_CAP_DONT_MASK);
  // With this capability, the kernel enforces access control lists, which it reads as extended
  // attributes. They would contradict shown owners and permission bits.
  const bool acls = !context.options.mount.no_xattrs && !context.options.mount.owners.any();
  context.acls = acls && Ask(connection, FUSE_CAP_POSIX_ACL);
  context.opendir_may_be_declined = Ask(connection, FUSE_CAP_NO_OPENDIR_SUPPORT);

  // Without this capability, a truncation at open arrives as SETATTR. So one handler makes all
  // truncations.
  Decline(connection, FUSE_CAP_ATOMIC_O_TRUNC);
  // siltfs accepts the successor of this capability, FUSE_HANDLE_KILLPRIV_V2, in its place. It does
  // so in kernel_extensions.cc, because libfuse knows the successor only from 3.17 on. With the
  // successor, each request says which set-id bits and capabilities to remove, according to the
  // caller's rights. So the kernel need not ask for security.capability before each write.
  Decline(connection, FUSE_CAP_HANDLE_KILLPRIV);
  // With asynchronous direct writes, the kernel would report a write as finished too early: cached
  // pages that concurrent buffered reads have filled would still be there. Later reads would return
  // the old bytes of these pages.
  Decline(connection, FUSE_CAP_ASYNC_DIO);
  // All changes of files go through the kernel, or it is told of them. So it need not check whether
  // its cache is current.
  Decline(connection, FUSE_CAP_AUTO_INVAL_DATA);
  // File contents are in the daemon's memory, for the chunker and the decompression. There is no
  // file descriptor to splice them from or to.
  Decline(connection, FUSE_CAP_SPLICE_READ);
  Decline(connection, FUSE_CAP_SPLICE_WRITE);
  Decline(connection, FUSE_CAP_SPLICE_MOVE);
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
  connection.no_interrupt = 1;  // no request takes long enough to be worth interrupting
#endif
}

}  // namespace siltfs::fuse
