#include "store/env/service_manager.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "store/env/posix_descriptor.h"
#include "store/env/posix_error.h"

namespace siltfs {
namespace {

constexpr const char* kVariable = "NOTIFY_SOCKET";
constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};

}  // namespace

ServiceManager ServiceManager::FromEnvironment() {
  const char* address = std::getenv(kVariable);
  return ServiceManager(address == nullptr ? "" : address);
}

Status ServiceManager::Report(std::string_view text) const { return Send("", text); }
Status ServiceManager::Ready(std::string_view text) const { return Send("READY=1\n", text); }
Status ServiceManager::Stopping(std::string_view text) const { return Send("STOPPING=1\n", text); }

Status ServiceManager::Send(std::string_view state, std::string_view text) const {
  if (address_.empty()) return Status::Ok();
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  const bool abstract = address_.front() == '@';
  if ((!abstract && address_.front() != '/') || address_.size() < 2 ||
      address_.size() >= sizeof to.sun_path) {
    return Status(StatusCode::kInvalidArgument,
                  "the environment variable NOTIFY_SOCKET names no socket of this kind")
        .At(address_);
  }
  std::memcpy(to.sun_path, address_.data(), address_.size());
  if (abstract) to.sun_path[0] = '\0';
  // An abstract name ends at the address's size. A path also ends there; the zero byte after it is
  // not needed.
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());

  std::string message(state);
  message += "STATUS=";
  message += text;
  const auto line_break = [](char c) { return c == '\n' || c == '\r'; };
  std::replace_if(message.begin() + static_cast<ptrdiff_t>(state.size()), message.end(), line_break,
                  ' ');

  const Descriptor fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return PosixError("make a socket", errno).At(address_);
  if (setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience) != 0)
    return PosixError("limit the wait for the service manager", errno).At(address_);
  const ssize_t sent = RetryInterrupted([&] {
    return sendto(fd.get(), message.data(), message.size(), MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&to), size);
  });
  if (sent < 0) return PosixError("tell the service manager", errno).At(address_);
  return Status::Ok();
}

}  // namespace siltfs
