// Negotiation with kernels that lack some capabilities.
#include "fs/fuse/capabilities.h"

#include <spdlog/sinks/null_sink.h>

#include <array>
#include <cstddef>
#include <memory>

#include "store/env/posix_env.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

struct Negotiation {
  uint64_t wanted = 0;  // FUSE_CAP_...
  bool acls = false;
  bool writeback_can_be_awaited = false;
};

// libfuse 3.17 takes a connection for a member of its session, and writes to members beside it.
struct Session {
  std::array<std::byte, 4096> before = {};
  fuse_conn_info connection = {};
  std::array<std::byte, 4096> after = {};
};

Negotiation NegotiateWith(uint64_t capable, bool no_xattrs, unsigned protocol = 45,
                          const OwnerMapping& owners = {}) {
  const std::unique_ptr<Env> env = NewPosixEnv();
  MemoryFileSystem fs;
  FuseBindingOptions options;
  options.mount.no_xattrs = no_xattrs;
  options.mount.owners = owners;
  fuse::HandlerContext context{
      .env = *env,
      .file_system = fs,
      .options = std::move(options),
      .read_buffers = {},
      .failure_log = {
          std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>()),
          [] { return int64_t{0}; }}};
  const auto session = std::make_unique<Session>();
  fuse_conn_info& connection = session->connection;
  connection.proto_minor = protocol;
  connection.capable = static_cast<unsigned>(capable);
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
  connection.capable_ext = capable;
#endif
  fuse::Negotiate(context, connection);
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
  return {connection.want_ext, context.acls, context.writeback_can_be_awaited};
#else
  return {connection.want, context.acls, context.writeback_can_be_awaited};
#endif
}

constexpr uint64_t kAll = 0xffffffff;
constexpr uint64_t kAcl = FUSE_CAP_POSIX_ACL;

TEST_CASE("Access control lists are requested if kernel and mount have them") {
  const Negotiation both = NegotiateWith(kAll, /*no_xattrs=*/false);
  CHECK(both.acls);
  CHECK((both.wanted & kAcl) != 0);
  CHECK((both.wanted & FUSE_CAP_DONT_MASK) != 0);
  const Negotiation old_kernel = NegotiateWith(kAll & ~kAcl, /*no_xattrs=*/false);
  CHECK_FALSE(old_kernel.acls);
  CHECK((old_kernel.wanted & kAcl) == 0);
  const Negotiation no_xattrs = NegotiateWith(kAll, /*no_xattrs=*/true);
  CHECK_FALSE(no_xattrs.acls);
  CHECK((no_xattrs.wanted & kAcl) == 0);
  for (const OwnerMapping& owners : {OwnerMapping{.uid = 0, .gid = {}, .umask = {}},
                                     OwnerMapping{.uid = {}, .gid = 0, .umask = {}},
                                     OwnerMapping{.uid = {}, .gid = {}, .umask = 0}}) {
    const Negotiation mapped = NegotiateWith(kAll, /*no_xattrs=*/false, 45, owners);
    CHECK_FALSE(mapped.acls);
    CHECK((mapped.wanted & kAcl) == 0);
  }
}

TEST_CASE("Writeback can be awaited only with a protocol version that allows it") {
  CHECK(NegotiateWith(kAll, false, 45).writeback_can_be_awaited);
  CHECK(NegotiateWith(kAll, false, 44).writeback_can_be_awaited);
  CHECK_FALSE(NegotiateWith(kAll, false, 43).writeback_can_be_awaited);
}

}  // namespace
}  // namespace siltfs::testing
