#include "store/env/packet_socket.h"

#include <sys/socket.h>

#include <cerrno>

#include "store/env/posix_error.h"

namespace siltfs {
namespace {

Status Closed() { return {StatusCode::kAborted, "the other process has closed the connection"}; }

}  // namespace

Result<PacketSocket::Pair> PacketSocket::MakePair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return PosixError("make a pair of sockets", errno);
  return Pair{std::make_unique<PacketSocket>(Descriptor(ends[0])), Descriptor(ends[1])};
}

Result<std::unique_ptr<PacketSocket>> PacketSocket::Adopt(Descriptor fd) {
  int type = 0;
  int domain = 0;
  socklen_t size = sizeof type;
  const bool known = getsockopt(fd.get(), SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
                     getsockopt(fd.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0;
  if (!known || type != SOCK_SEQPACKET || domain != AF_UNIX)
    return Status(StatusCode::kInvalidArgument, "the descriptor is no socket for packets");
  return std::make_unique<PacketSocket>(std::move(fd));
}

Status PacketSocket::Send(ByteView packet) {
  const ssize_t sent =
      RetryInterrupted([&] { return send(fd_.get(), packet.data(), packet.size(), MSG_NOSIGNAL); });
  if (sent == static_cast<ssize_t>(packet.size())) return Status::Ok();
  if (sent < 0 && (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)) return Closed();
  return PosixError("send", sent < 0 ? errno : EMSGSIZE);
}

Result<Bytes> PacketSocket::Receive(size_t limit) {
  Bytes packet(limit);
  iovec part{packet.data(), packet.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  // Without a control buffer, descriptors that the peer sends are closed.
  const ssize_t got = RetryInterrupted([&] { return recvmsg(fd_.get(), &message, 0); });
  if (got < 0) {
    if (errno == ECONNRESET || errno == ENOTCONN) return Closed();
    return PosixError("receive", errno);
  }
  if (got == 0) return Closed();
  if ((message.msg_flags & MSG_TRUNC) != 0)
    return Status(StatusCode::kInvalidArgument, "sent a message that is too long");
  packet.resize(static_cast<size_t>(got));
  return packet;
}

void PacketSocket::Shutdown() { shutdown(fd_.get(), SHUT_RDWR); }

}  // namespace siltfs
