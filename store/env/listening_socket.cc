#include "store/env/listening_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "store/env/posix_error.h"

namespace siltfs {
namespace {

constexpr std::string_view kPathPrefix = "unix:";
constexpr int kBacklog = 64;
constexpr uint32_t kSocketMode = 0660;

union Address {
  sockaddr generic;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

std::optional<Address> ToAddress(const std::string& host, uint16_t port) {
  Address address{};
  const std::string number = host == "localhost" ? "127.0.0.1" : host;
  if (inet_pton(AF_INET, number.c_str(), &address.v4.sin_addr) == 1) {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(port);
    return address;
  }
  if (inet_pton(AF_INET6, number.c_str(), &address.v6.sin6_addr) == 1) {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = htons(port);
    return address;
  }
  return std::nullopt;
}

Status NoAddress(std::string_view text) {
  return {StatusCode::kInvalidArgument,
          fmt::format("\"{}\" is no address to listen on; use ADDRESS:PORT with a numeric address, "
                      "such as 127.0.0.1:9851 or [::1]:9851, or unix:/PATH",
                      text)};
}

std::string NameOf(const Address& address) {
  char host[INET6_ADDRSTRLEN] = "";
  if (address.generic.sa_family == AF_INET) {
    inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof host);
    return fmt::format("{}:{}", host, ntohs(address.v4.sin_port));
  }
  inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof host);
  return fmt::format("[{}]:{}", host, ntohs(address.v6.sin6_port));
}

Status ErrorAt(std::string_view action, int error, const std::string& name) {
  if (error == EADDRINUSE)
    return Status(StatusCode::kInUse, "another process listens there").At(name);
  return PosixError(action, error).At(name);
}

// Listens on the address, and completes it with the port that the system has chosen.
Result<Descriptor> ListenOnPort(Address& address) {
  const std::string name = NameOf(address);
  const int family = address.generic.sa_family;
  const auto size =
      static_cast<socklen_t>(family == AF_INET ? sizeof address.v4 : sizeof address.v6);
  Descriptor fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrorAt("make a socket", errno, name);
  const int on = 1;
  // Connections of the previous process do not keep the port from this one.
  if (setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
    return ErrorAt("set up the socket", errno, name);
  if (family == AF_INET6 && setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0)
    return ErrorAt("set up the socket", errno, name);
  if (bind(fd.get(), &address.generic, size) != 0) return ErrorAt("listen there", errno, name);
  if (listen(fd.get(), kBacklog) != 0) return ErrorAt("listen there", errno, name);
  socklen_t length = sizeof address;
  if (getsockname(fd.get(), &address.generic, &length) != 0)
    return ErrorAt("find out the port", errno, name);
  return fd;
}

}  // namespace

Result<ListenAddress> ListenAddress::Parse(std::string_view text) {
  ListenAddress address;
  if (text.starts_with(kPathPrefix)) {
    address.path = text.substr(kPathPrefix.size());
    if (!address.path.starts_with('/') || address.path.ends_with('/')) return NoAddress(text);
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return NoAddress(text);
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (in_brackets) host = host.substr(1, host.size() - 2);
  const bool is_v6 = host.find(':') != host.npos;
  if (in_brackets != is_v6) return NoAddress(text);
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || parsed.ec != std::errc() || parsed.ptr != port.data() + port.size())
    return NoAddress(text);
  address.host = host;
  if (!ToAddress(address.host, address.port)) return NoAddress(text);
  return address;
}

Result<ListeningSocket> ListeningSocket::Open(const ListenAddress& address) {
  if (!address.path.empty()) {
    const size_t slash = address.path.rfind('/');
    const std::string directory = slash == 0 ? "/" : address.path.substr(0, slash);
    SILTFS_ASSIGN_OR_RETURN(
        auto listener,
        LocalListener::Listen(directory, address.path.substr(slash + 1), kSocketMode));
    // The umask has limited the mode.
    if (chmod(address.path.c_str(), kSocketMode) != 0)
      return PosixError("change the mode of the socket", errno).At(address.path);
    return ListeningSocket(address.path, Descriptor(), std::move(listener));
  }
  std::optional<Address> bound = ToAddress(address.host, address.port);
  if (!bound) return NoAddress(address.host);
  SILTFS_ASSIGN_OR_RETURN(Descriptor fd, ListenOnPort(*bound));
  return ListeningSocket(NameOf(*bound), std::move(fd), nullptr);
}

Result<Descriptor> ListeningSocket::Duplicate() const {
  const int original = listener_ ? listener_->descriptor() : fd_.get();
  Descriptor copy(fcntl(original, F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return PosixError("copy the socket", errno).At(name_);
  return copy;
}

// A connection that the peer has ended already cannot be ended again.
void EndConnection(int descriptor) { static_cast<void>(shutdown(descriptor, SHUT_RDWR)); }

}  // namespace siltfs
