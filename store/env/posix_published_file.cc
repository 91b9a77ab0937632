#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "store/env/posix_descriptor.h"
#include "store/env/posix_error.h"
#include "store/env/published_file.h"

namespace siltfs {
namespace {

constexpr mode_t kMode = 0644;

Status WriteAll(const Descriptor& file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written =
        RetryInterrupted([&] { return write(file.get(), content.data(), content.size()); });
    if (written < 0) return PosixError("write", errno);
    content.remove_prefix(static_cast<size_t>(written));
  }
  // The process's umask must not keep the file from its readers.
  if (fchmod(file.get(), kMode) != 0) return PosixError("change the mode", errno);
  return Status::Ok();
}

}  // namespace

Status CheckPublishable(const std::string& path) {
  struct stat present;
  if (lstat(path.c_str(), &present) == 0) {
    if (!S_ISREG(present.st_mode))
      return Status(StatusCode::kInvalidArgument, "is not a regular file").At(path);
  } else if (errno != ENOENT) {
    return PosixError("look at", errno).At(path);
  }
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (access(directory.c_str(), W_OK | X_OK) != 0)
    return PosixError("create a file in the directory", errno).At(path);
  return Status::Ok();
}

Status PublishFile(const std::string& path, std::string_view content) {
  SILTFS_RETURN_IF_ERROR(CheckPublishable(path));
  std::string made = path + ".XXXXXX";
  const Descriptor file(mkostemp(made.data(), O_CLOEXEC));
  if (!file.valid()) return PosixError("create a file beside", errno).At(path);
  Status done = WriteAll(file, content);
  if (done.ok() && rename(made.c_str(), path.c_str()) != 0) done = PosixError("rename", errno);
  if (!done.ok()) unlink(made.c_str());
  return std::move(done).At(path);
}

}  // namespace siltfs
