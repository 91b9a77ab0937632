#include "store/env/journal_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "store/env/posix_error.h"

namespace siltfs {
namespace {

constexpr timeval kPatience{.tv_sec = 1, .tv_usec = 0};
constexpr int kBitsOfLength = 64;

// "NAME=VALUE", or the form for any bytes: the name, the length as 64 bits in little-endian order,
// and the value.
void AppendField(std::string_view name, std::string_view value, std::string& entry) {
  value = value.substr(0, JournalSocket::kMostBytes);
  entry += name;
  if (value.find('\n') == value.npos) {
    entry += '=';
  } else {
    entry += '\n';
    for (int bit = 0; bit < kBitsOfLength; bit += 8)
      entry += static_cast<char>(static_cast<uint64_t>(value.size()) >> bit & 0xff);
  }
  entry += value;
  entry += '\n';
}

}  // namespace

Result<std::unique_ptr<JournalSocket>> JournalSocket::Open(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return PosixError("find the journal", errno).At(path);
  if (!S_ISSOCK(info.st_mode)) return Status(StatusCode::kNotFound, "is not a socket").At(path);
  if (path.size() >= sizeof sockaddr_un::sun_path)
    return Status(StatusCode::kNameTooLong, "the path is too long for a socket").At(path);
  Descriptor fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return PosixError("make a socket", errno).At(path);
  if (setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience) != 0)
    return PosixError("limit the wait for the journal", errno).At(path);
  return std::make_unique<JournalSocket>(path, std::move(fd));
}

// Each datagram has the address, so that a journal that was started again gets it, too.
Status JournalSocket::Send(const std::vector<Field>& fields) const {
  std::string entry;
  for (const auto& [name, value] : fields) AppendField(name, value, entry);
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path_.data(), path_.size());
  const ssize_t sent = RetryInterrupted([&] {
    return sendto(fd_.get(), entry.data(), entry.size(), MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&to), sizeof to);
  });
  if (sent < 0) return PosixError("write to the journal", errno).At(path_);
  return Status::Ok();
}

bool StandardErrorIsJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat info;
  if (stream == nullptr || fstat(STDERR_FILENO, &info) != 0) return false;
  return stream == fmt::format("{}:{}", info.st_dev, info.st_ino);
}

}  // namespace siltfs
