#include "store/env/local_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "store/env/files.h"
#include "store/env/posix_error.h"

namespace siltfs {
namespace {

constexpr int kBacklog = 16;
constexpr size_t kReceiveSize = 4096;

Status ErrorAt(std::string_view action, const std::string& path) {
  return PosixError(action, errno).At(path);
}

Result<Descriptor> OpenDirectory(const std::string& directory, const std::string& path) {
  Descriptor fd(
      RetryInterrupted([&] { return open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); }));
  if (!fd.valid()) return ErrorAt("reach the socket's directory", path);
  return fd;
}

struct Address {
  sockaddr_un address{};
  socklen_t size = sizeof(sockaddr_un);
};

// An address holds 107 bytes. A longer path is replaced by a short path through the directory's
// descriptor.
Result<Address> AddressOf(const std::string& path, const std::string& name,
                          const Descriptor& directory) {
  Address made;
  made.address.sun_family = AF_UNIX;
  std::string place = path;
  if (place.size() >= sizeof made.address.sun_path) {
    place = fmt::format("/proc/self/fd/{}/{}", directory.get(), name);
  }
  if (place.size() >= sizeof made.address.sun_path)
    return PosixError("use the socket", ENAMETOOLONG).At(path);
  std::memcpy(made.address.sun_path, place.c_str(), place.size() + 1);
  return made;
}

// An abstract name begins with a zero byte and ends at the address's size.
Result<Address> AbstractAddress(const std::string& name) {
  Address made;
  made.address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof made.address.sun_path)
    return PosixError("use the socket", ENAMETOOLONG).At("@" + name);
  std::memcpy(made.address.sun_path + 1, name.data(), name.size());
  made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return made;
}

Result<Descriptor> NewSocket(const std::string& path) {
  Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrorAt("make a socket", path);
  return fd;
}

const sockaddr* Generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.address);
}

Status ConnectTo(const Descriptor& fd, const Address& address, const std::string& path) {
  if (RetryInterrupted([&] { return connect(fd.get(), Generic(address), address.size); }) == 0) {
    return Status::Ok();
  }
  if (errno == ECONNREFUSED) return Status(StatusCode::kStale, "no process listens on it").At(path);
  if (errno == EAGAIN) {
    return Status(StatusCode::kInterrupted, "was not answered in time").At(path);
  }
  return ErrorAt("connect", path);
}

// Removes a stale socket of this name.
Status ClearPlace(const std::string& name, const Descriptor& directory, const Address& address,
                  const std::string& path) {
  struct stat info;
  if (fstatat(directory.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return Status::Ok();
    return ErrorAt("look at the socket's place", path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return Status(StatusCode::kAlreadyExists,
                  "is not a socket, but the daemon's socket must have this name; remove this file")
        .At(path);
  }
  SILTFS_ASSIGN_OR_RETURN(Descriptor probe, NewSocket(path));
  Status connected = ConnectTo(probe, address, path);
  if (connected.ok())
    return Status(StatusCode::kInUse, "another process listens on it already").At(path);
  if (!connected.Is(StatusCode::kStale)) return connected;
  if (unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return ErrorAt("remove the stale socket", path);
  }
  return Status::Ok();
}

Status SetTimeoutOf(const Descriptor& fd, std::chrono::milliseconds timeout,
                    const std::string& path) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  timeval time{};
  time.tv_sec = seconds.count();
  time.tv_usec = std::chrono::microseconds(timeout - seconds).count();
  for (int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    if (setsockopt(fd.get(), SOL_SOCKET, option, &time, sizeof time) != 0) {
      return ErrorAt("set the timeout", path);
    }
  }
  return Status::Ok();
}

Status TransferError(std::string_view action, const std::string& path) {
  if (errno == EAGAIN) {
    return Status(StatusCode::kInterrupted, fmt::format("cannot {}: timed out", action)).At(path);
  }
  return ErrorAt(action, path);
}

Result<ucred> PeerOf(const Descriptor& fd, const std::string& path) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return ErrorAt("find out which process is the peer", path);
  }
  return peer;
}

// Prepares a bound socket for Accept; returns the eventfd that stops it.
Result<Descriptor> BeginListening(const Descriptor& fd, const std::string& path) {
  Descriptor stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (listen(fd.get(), kBacklog) != 0 || fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0 ||
      !stop.valid()) {
    return ErrorAt("listen on the socket", path);
  }
  return stop;
}

}  // namespace

Result<std::unique_ptr<LocalStream>> LocalStream::Connect(
    const std::string& directory, const std::string& name,
    std::optional<std::chrono::milliseconds> timeout) {
  const std::string path = JoinPath(directory, name);
  SILTFS_ASSIGN_OR_RETURN(Descriptor directory_fd, OpenDirectory(directory, path));
  struct stat info;
  if (fstatat(directory_fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return ErrorAt("connect", path);
  // A symbolic link may lead to another user's socket.
  if (!S_ISSOCK(info.st_mode)) return Status(StatusCode::kNotFound, "is not a socket").At(path);
  SILTFS_ASSIGN_OR_RETURN(const Address address, AddressOf(path, name, directory_fd));
  SILTFS_ASSIGN_OR_RETURN(Descriptor fd, NewSocket(path));
  if (timeout) SILTFS_RETURN_IF_ERROR(SetTimeoutOf(fd, *timeout, path));
  SILTFS_RETURN_IF_ERROR(ConnectTo(fd, address, path));
  return std::make_unique<LocalStream>(path, std::move(fd));
}

Result<std::unique_ptr<LocalStream>> LocalStream::ConnectAbstract(
    const std::string& name, std::optional<std::chrono::milliseconds> timeout) {
  const std::string path = "@" + name;
  SILTFS_ASSIGN_OR_RETURN(const Address address, AbstractAddress(name));
  SILTFS_ASSIGN_OR_RETURN(Descriptor fd, NewSocket(path));
  if (timeout) SILTFS_RETURN_IF_ERROR(SetTimeoutOf(fd, *timeout, path));
  SILTFS_RETURN_IF_ERROR(ConnectTo(fd, address, path));
  return std::make_unique<LocalStream>(path, std::move(fd));
}

Status LocalStream::SetTimeout(std::chrono::milliseconds timeout) {
  SILTFS_RETURN_IF_ERROR(SetTimeoutOf(fd_, timeout, path_));
  timeout_ = timeout;
  return Status::Ok();
}

Result<bool> LocalStream::Receive() {
  char bytes[kReceiveSize];
  ssize_t got = RetryInterrupted([&] { return recv(fd_.get(), bytes, sizeof bytes, 0); });
  if (got < 0) {
    if (errno == ECONNRESET)
      return false;  // the peer closed before it read everything: the end of the stream
    return TransferError("receive", path_);
  }
  buffer_.append(bytes, static_cast<size_t>(got));
  return got > 0;
}

Result<std::optional<std::string>> LocalStream::ReadLine(size_t limit) {
  const auto begin = std::chrono::steady_clock::now();
  size_t searched = 0;
  while (true) {
    const size_t end = buffer_.find('\n', searched);
    if (std::min(end, buffer_.size()) > limit) {
      return Status(StatusCode::kFileTooLarge,
                    fmt::format("sent a line of more than {} bytes", limit))
          .At(path_);
    }
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return std::optional<std::string>(std::move(line));
    }
    searched = buffer_.size();
    if (timeout_ && std::chrono::steady_clock::now() - begin > *timeout_) {
      return Status(StatusCode::kInterrupted, "the line was not complete in time").At(path_);
    }
    SILTFS_ASSIGN_OR_RETURN(bool more, Receive());
    if (more) continue;
    if (buffer_.empty()) return std::optional<std::string>();
    return Status(StatusCode::kAborted, "the peer closed the connection in the middle of a line")
        .At(path_);
  }
}

Result<std::string> LocalStream::ReadAll(size_t limit) {
  while (true) {
    if (buffer_.size() > limit) {
      return Status(StatusCode::kFileTooLarge, fmt::format("sent more than {} bytes", limit))
          .At(path_);
    }
    SILTFS_ASSIGN_OR_RETURN(bool more, Receive());
    if (!more) return std::exchange(buffer_, std::string());
  }
}

Status LocalStream::WriteAll(std::string_view text) {
  while (!text.empty()) {
    ssize_t sent =
        RetryInterrupted([&] { return send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL); });
    if (sent < 0) return TransferError("send", path_);
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return Status::Ok();
}

Result<size_t> LocalStream::ReadSome(MutableByteView out) {
  if (!buffer_.empty()) {
    const size_t size = std::min(out.size(), buffer_.size());
    std::copy_n(buffer_.begin(), size, out.begin());
    buffer_.erase(0, size);
    return size;
  }
  const ssize_t got = RetryInterrupted([&] { return recv(fd_.get(), out.data(), out.size(), 0); });
  if (got >= 0) return static_cast<size_t>(got);
  if (errno == ECONNRESET) return size_t{0};  // as in Receive
  return TransferError("receive", path_);
}

Result<size_t> LocalStream::WriteSome(ByteView bytes) {
  const ssize_t sent =
      RetryInterrupted([&] { return send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); });
  if (sent < 0) return TransferError("send", path_);
  return static_cast<size_t>(sent);
}

Status LocalStream::SendDescriptors(ByteView bytes,
                                    const std::vector<const Descriptor*>& descriptors) {
  iovec part{const_cast<uint8_t*>(bytes.data()), bytes.size()};
  std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
  for (size_t i = 0; i < descriptors.size(); ++i) {
    const int fd = descriptors[i]->get();
    std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
  }
  const ssize_t sent = RetryInterrupted([&] { return sendmsg(fd_.get(), &message, MSG_NOSIGNAL); });
  if (sent < 0) return TransferError("send", path_);
  return WriteAll(AsText(bytes.subspan(static_cast<size_t>(sent))));
}

Result<std::optional<LocalStream::Message>> LocalStream::ReceiveDescriptors(size_t size,
                                                                            size_t most) {
  Message received;
  received.bytes = Bytes(buffer_.begin(), buffer_.end());
  buffer_.clear();
  if (received.bytes.size() > size)
    return Status(StatusCode::kInvalidArgument, "sent bytes between two messages").At(path_);
  while (received.bytes.size() < size) {
    Bytes rest(size - received.bytes.size());
    iovec part{rest.data(), rest.size()};
    std::vector<char> control(CMSG_SPACE(most * sizeof(int)));
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got =
        RetryInterrupted([&] { return recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC); });
    if (got < 0 && errno != ECONNRESET) return TransferError("receive", path_);
    // The descriptors first get an owner, so that none is lost.
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); got >= 0 && header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
        received.descriptors.emplace_back(fd);
      }
    }
    if (got <= 0) {
      if (received.bytes.empty()) return std::optional<Message>();
      return Status(StatusCode::kAborted, "the peer closed the connection within a message")
          .At(path_);
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0 || received.descriptors.size() > most)
      return Status(StatusCode::kInvalidArgument, "sent too many descriptors").At(path_);
    received.bytes.insert(received.bytes.end(), rest.begin(), rest.begin() + got);
  }
  return std::optional<Message>(std::move(received));
}

Status LocalStream::FinishWriting() {
  if (shutdown(fd_.get(), SHUT_WR) != 0) return ErrorAt("finish writing", path_);
  return Status::Ok();
}

bool LocalStream::PeerHasLeft() const {
  pollfd state{fd_.get(), 0, 0};
  return poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR)) != 0;
}

bool LocalStream::PeerHasSentMore() const {
  if (!buffer_.empty()) return true;
  char byte = 0;
  return recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void LocalStream::FinishReading() { shutdown(fd_.get(), SHUT_RD); }

void LocalStream::Shutdown() { shutdown(fd_.get(), SHUT_RDWR); }

Result<uint32_t> LocalStream::PeerUid() const {
  SILTFS_ASSIGN_OR_RETURN(const ucred peer, PeerOf(fd_, path_));
  return static_cast<uint32_t>(peer.uid);
}

Result<std::vector<uint32_t>> LocalStream::PeerGroups() const {
  SILTFS_ASSIGN_OR_RETURN(const ucred peer, PeerOf(fd_, path_));
  std::vector<uint32_t> groups(64);
  socklen_t size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  int outcome = getsockopt(fd_.get(), SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
  if (outcome != 0 && errno == ERANGE) {
    groups.resize(size / sizeof(gid_t));
    outcome = getsockopt(fd_.get(), SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
  }
  if (outcome != 0) return ErrorAt("find out the groups of the peer", path_);
  groups.resize(size / sizeof(gid_t));
  groups.insert(groups.begin(), peer.gid);
  return groups;
}

Result<int64_t> LocalStream::PeerPid() const {
  SILTFS_ASSIGN_OR_RETURN(const ucred peer, PeerOf(fd_, path_));
  return static_cast<int64_t>(peer.pid);
}

Result<std::unique_ptr<LocalListener>> LocalListener::Listen(const std::string& directory,
                                                             const std::string& name,
                                                             uint32_t mode) {
  const std::string path = JoinPath(directory, name);
  SILTFS_ASSIGN_OR_RETURN(Descriptor directory_fd, OpenDirectory(directory, path));
  SILTFS_ASSIGN_OR_RETURN(const Address address, AddressOf(path, name, directory_fd));
  SILTFS_RETURN_IF_ERROR(ClearPlace(name, directory_fd, address, path));
  SILTFS_ASSIGN_OR_RETURN(Descriptor fd, NewSocket(path));
  // bind gives the name the socket's mode. With a chmod after bind, other users could connect for a
  // moment.
  if (fchmod(fd.get(), mode) != 0) return ErrorAt("set the socket's mode", path);
  if (bind(fd.get(), Generic(address), address.size) != 0) return ErrorAt("make the socket", path);
  auto stop = BeginListening(fd, path);
  if (!stop.ok()) {
    unlinkat(directory_fd.get(), name.c_str(), 0);
    return std::move(stop).status();
  }
  return std::unique_ptr<LocalListener>(
      new LocalListener(path, name, std::move(directory_fd), std::move(fd), std::move(*stop)));
}

Result<std::unique_ptr<LocalListener>> LocalListener::ListenAbstract(const std::string& name) {
  const std::string path = "@" + name;
  SILTFS_ASSIGN_OR_RETURN(const Address address, AbstractAddress(name));
  SILTFS_ASSIGN_OR_RETURN(Descriptor fd, NewSocket(path));
  if (bind(fd.get(), Generic(address), address.size) != 0) return ErrorAt("make the socket", path);
  SILTFS_ASSIGN_OR_RETURN(Descriptor stop, BeginListening(fd, path));
  return std::unique_ptr<LocalListener>(
      new LocalListener(path, name, Descriptor(), std::move(fd), std::move(stop)));
}

LocalListener::~LocalListener() {
  if (directory_.valid()) unlinkat(directory_.get(), name_.c_str(), 0);
}

Result<std::unique_ptr<LocalStream>> LocalListener::Accept() {
  while (true) {
    pollfd waiting[2] = {{stop_.get(), POLLIN, 0}, {fd_.get(), POLLIN, 0}};
    if (RetryInterrupted([&] { return poll(waiting, 2, -1); }) < 0)
      return ErrorAt("wait for a connection", path_);
    if (waiting[0].revents != 0) return Status(StatusCode::kAborted, "no longer listens").At(path_);
    Descriptor fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd.valid()) return std::make_unique<LocalStream>(path_, std::move(fd));
    const bool gone_again = errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
    if (!gone_again) return ErrorAt("accept a connection", path_);
  }
}

void LocalListener::Shutdown() { eventfd_write(stop_.get(), 1); }

}  // namespace siltfs
