#include "fs/fuse/capabilities.h"

#include <algorithm>

namespace siltfs::fuse {
namespace {

// Limit of readahead and writeback requests under way; the kernel's default of 12 would leave
// threads idle.
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
  connection.max_write = std::min(connection.max_write, FuseBinding::kMaxRequestBytes);
  connection.max_readahead = std::min(connection.max_readahead, FuseBinding::kMaxRequestBytes);
  connection.max_read =
      context.options.mount.max_read.value_or(0);  // must agree with the mount option
  connection.max_background = kMaxBackgroundRequests;
  connection.congestion_threshold = kMaxBackgroundRequests / 4 * 3;

  context.writeback_can_be_awaited = connection.proto_minor >= kFirstProtocolToAwait;
  context.cache_can_be_passed_by = connection.proto_minor >= kFirstProtocolToPassCacheBy;

  Ask(connection, FUSE_CAP_ASYNC_READ);
  Ask(connection, FUSE_CAP_WRITEBACK_CACHE);
  Ask(connection,
      FUSE_CAP_PARALLEL_DIROPS);  // on by default in some versions of libfuse, off in others
  Ask(connection, FUSE_CAP_CACHE_SYMLINKS);
  // File handles (open_by_handle_at, NFS) then stay valid after the kernel has dropped the inode:
  // the kernel looks up "." of the inode's number. Numbers are never reused, so the generation is
  // always 0.
  Ask(connection, FUSE_CAP_EXPORT_SUPPORT);
  // Listings include attributes if the kernel sees that programs use them, as `ls -l` and `find
  // -size` do.
  Ask(connection, FUSE_CAP_READDIRPLUS);
  Ask(connection, FUSE_CAP_READDIRPLUS_AUTO);
  // A directory's default ACL replaces the umask, so the core applies the umask after it has read
  // the directory.
  Ask(connection, FUSE_CAP_DONT_MASK);
  // The kernel then enforces access control lists, which it reads as extended attributes.
  context.acls = !context.options.mount.no_xattrs && Ask(connection, FUSE_CAP_POSIX_ACL);
  context.opendir_may_be_declined = Ask(connection, FUSE_CAP_NO_OPENDIR_SUPPORT);

  // Truncation at open then arrives as SETATTR, so one handler deals with all truncations.
  Decline(connection, FUSE_CAP_ATOMIC_O_TRUNC);
  // The successor FUSE_HANDLE_KILLPRIV_V2 is accepted in its place (in kernel_extensions.cc, since
  // libfuse knows it only from 3.17 on). With V2, each request says which set-id bits and
  // capabilities to remove, according to the caller's rights. So the kernel need not ask for
  // security.capability before each write.
  Decline(connection, FUSE_CAP_HANDLE_KILLPRIV);
  // The kernel would finish an asynchronous direct write before it drops the pages that buffered
  // reads filled meanwhile, and later reads would return the old bytes.
  Decline(connection, FUSE_CAP_ASYNC_DIO);
  // All changes go through the kernel, so its cache needs no such check.
  Decline(connection, FUSE_CAP_AUTO_INVAL_DATA);
  // Data are in memory, on their way through the chunker; there is no descriptor to splice from or
  // to.
  Decline(connection, FUSE_CAP_SPLICE_READ);
  Decline(connection, FUSE_CAP_SPLICE_WRITE);
  Decline(connection, FUSE_CAP_SPLICE_MOVE);
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
  connection.no_interrupt = 1;  // no request takes long enough to be worth interrupting
#endif
}

}  // namespace siltfs::fuse
