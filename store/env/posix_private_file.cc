#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "store/env/posix_descriptor.h"
#include "store/env/posix_error.h"
#include "store/env/private_file.h"

namespace siltfs {
namespace {

Status CheckPrivate(const struct stat& info, const std::string& path) {
  if (!S_ISREG(info.st_mode)) {
    return Status(StatusCode::kAccessDenied, "is not a regular file, so it is not read").At(path);
  }
  if (info.st_uid != geteuid()) {
    return Status(StatusCode::kAccessDenied,
                  "holds secrets but belongs to user " + std::to_string(info.st_uid) +
                      "; it must belong to user " + std::to_string(geteuid()))
        .At(path);
  }
  if ((info.st_mode & 077) != 0) {
    return Status(StatusCode::kAccessDenied,
                  "holds secrets but other users have access to it; run: chmod 600 " + path)
        .At(path);
  }
  return Status::Ok();
}

}  // namespace

Result<std::string> ReadPrivateFile(const std::string& path, size_t limit) {
  // A FIFO without a writer would block an open without O_NONBLOCK.
  const Descriptor file(RetryInterrupted(
      [&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); }));
  if (!file.valid()) return PosixError("open", errno).At(path);
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return PosixError("examine", errno).At(path);
  SILTFS_RETURN_IF_ERROR(CheckPrivate(info, path));
  std::string content(limit + 1, '\0');
  size_t size = 0;
  while (size < content.size()) {
    const ssize_t got = RetryInterrupted(
        [&] { return read(file.get(), content.data() + size, content.size() - size); });
    if (got < 0) return PosixError("read", errno).At(path, size);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > limit) {
    return Status(StatusCode::kFileTooLarge,
                  "has more than " + std::to_string(limit) + " bytes, so it is no such file")
        .At(path);
  }
  content.resize(size);
  return content;
}

}  // namespace siltfs
