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

// An address holds 107 bytes; a directory with a longer path is reached through its descriptor.
Result<sockaddr_un> AddressOf(const std::string& path, const std::string& name,
                              const Descriptor& directory) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string place = path;
  if (place.size() >= sizeof address.sun_path) {
    place = fmt::format("/proc/self/fd/{}/{}", directory.get(), name);
  }
  if (place.size() >= sizeof address.sun_path)
    return PosixError("use the socket", ENAMETOOLONG).At(path);
  std::memcpy(address.sun_path, place.c_str(), place.size() + 1);
  return address;
}

Result<Descriptor> NewSocket(const std::string& path) {
  Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrorAt("make a socket", path);
  return fd;
}

const sockaddr* Generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

Status ConnectTo(const Descriptor& fd, const sockaddr_un& address, const std::string& path) {
  if (RetryInterrupted([&] { return connect(fd.get(), Generic(address), sizeof address); }) == 0) {
    return Status::Ok();
  }
  if (errno == ECONNREFUSED) return Status(StatusCode::kIoError, "nobody listens on it").At(path);
  if (errno == EAGAIN) {
    return Status(StatusCode::kInterrupted, "was not answered in time").At(path);
  }
  return ErrorAt("connect", path);
}

// Removes what a process that is gone has left in the name's place.
Status ClearPlace(const std::string& name, const Descriptor& directory, const sockaddr_un& address,
                  const std::string& path) {
  struct stat info;
  if (fstatat(directory.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return Status::Ok();
    return ErrorAt("look at the socket's place", path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return Status(StatusCode::kAlreadyExists, "is in the way of a socket").At(path);
  }
  SILTFS_ASSIGN_OR_RETURN(Descriptor probe, NewSocket(path));
  Status connected = ConnectTo(probe, address, path);
  if (connected.ok()) return Status(StatusCode::kInUse, "somebody listens on it already").At(path);
  if (!connected.Is(StatusCode::kIoError)) return connected;
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

}  // namespace

Result<std::unique_ptr<LocalStream>> LocalStream::Connect(
    const std::string& directory, const std::string& name,
    std::optional<std::chrono::milliseconds> timeout) {
  const std::string path = JoinPath(directory, name);
  SILTFS_ASSIGN_OR_RETURN(Descriptor directory_fd, OpenDirectory(directory, path));
  struct stat info;
  if (fstatat(directory_fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return ErrorAt("connect", path);
  // A link may lead to somebody else's.
  if (!S_ISSOCK(info.st_mode)) return Status(StatusCode::kIoError, "is no socket").At(path);
  SILTFS_ASSIGN_OR_RETURN(sockaddr_un address, AddressOf(path, name, directory_fd));
  SILTFS_ASSIGN_OR_RETURN(Descriptor fd, NewSocket(path));
  if (timeout) SILTFS_RETURN_IF_ERROR(SetTimeoutOf(fd, *timeout, path));
  SILTFS_RETURN_IF_ERROR(ConnectTo(fd, address, path));
  return std::make_unique<LocalStream>(path, std::move(fd));
}

Status LocalStream::SetTimeout(std::chrono::milliseconds timeout) {
  return SetTimeoutOf(fd_, timeout, path_);
}

Result<bool> LocalStream::Receive() {
  char bytes[kReceiveSize];
  ssize_t got = RetryInterrupted([&] { return recv(fd_.get(), bytes, sizeof bytes, 0); });
  if (got < 0) {
    if (errno == ECONNRESET)
      return false;  // gone with unread bytes of ours: all the same to a reader
    return TransferError("receive", path_);
  }
  buffer_.append(bytes, static_cast<size_t>(got));
  return got > 0;
}

Result<std::optional<std::string>> LocalStream::ReadLine(size_t limit) {
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
    SILTFS_ASSIGN_OR_RETURN(bool more, Receive());
    if (more) continue;
    if (buffer_.empty()) return std::optional<std::string>();
    return Status(StatusCode::kAborted, "the other side left in the middle of a line").At(path_);
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

Status LocalStream::FinishWriting() {
  if (shutdown(fd_.get(), SHUT_WR) != 0) return ErrorAt("finish writing", path_);
  return Status::Ok();
}

void LocalStream::Shutdown() { shutdown(fd_.get(), SHUT_RDWR); }

Result<uint32_t> LocalStream::PeerUid() const {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return ErrorAt("learn who is on the other side", path_);
  }
  return static_cast<uint32_t>(peer.uid);
}

Result<std::unique_ptr<LocalListener>> LocalListener::Listen(const std::string& directory,
                                                             const std::string& name,
                                                             uint32_t mode) {
  const std::string path = JoinPath(directory, name);
  SILTFS_ASSIGN_OR_RETURN(Descriptor directory_fd, OpenDirectory(directory, path));
  SILTFS_ASSIGN_OR_RETURN(sockaddr_un address, AddressOf(path, name, directory_fd));
  SILTFS_RETURN_IF_ERROR(ClearPlace(name, directory_fd, address, path));
  SILTFS_ASSIGN_OR_RETURN(Descriptor fd, NewSocket(path));
  // The name is born with the socket's own mode, so nobody slips in before a chmod of the name.
  if (fchmod(fd.get(), mode) != 0) return ErrorAt("set the socket's mode", path);
  if (bind(fd.get(), Generic(address), sizeof address) != 0)
    return ErrorAt("make the socket", path);
  Descriptor stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (listen(fd.get(), kBacklog) != 0 || fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0 ||
      !stop.valid()) {
    Status failed = ErrorAt("listen on the socket", path);
    unlinkat(directory_fd.get(), name.c_str(), 0);
    return failed;
  }
  return std::unique_ptr<LocalListener>(
      new LocalListener(path, name, std::move(directory_fd), std::move(fd), std::move(stop)));
}

LocalListener::~LocalListener() { unlinkat(directory_.get(), name_.c_str(), 0); }

Result<std::unique_ptr<LocalStream>> LocalListener::Accept() {
  while (true) {
    pollfd waiting[2] = {{stop_.get(), POLLIN, 0}, {fd_.get(), POLLIN, 0}};
    if (RetryInterrupted([&] { return poll(waiting, 2, -1); }) < 0)
      return ErrorAt("wait for a connection", path_);
    if (waiting[0].revents != 0) return Status(StatusCode::kAborted, "listens no more").At(path_);
    Descriptor fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd.valid()) return std::make_unique<LocalStream>(path_, std::move(fd));
    const bool gone_again = errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
    if (!gone_again) return ErrorAt("accept a connection", path_);
  }
}

void LocalListener::Shutdown() { eventfd_write(stop_.get(), 1); }

}  // namespace siltfs
