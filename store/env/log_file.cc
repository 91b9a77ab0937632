#include "store/env/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "store/env/posix_error.h"

namespace siltfs {
namespace {

constexpr uint32_t kNewFile = 0666;  // less the umask
constexpr uint32_t kPermissions = 07777;

}  // namespace

Result<std::unique_ptr<LogFile>> LogFile::Open(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == 0 ? "/" : path.substr(0, slash);
  Descriptor opened(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return PosixError("open the log's directory", errno).At(path);
  std::unique_ptr<LogFile> log(new LogFile(path, path.substr(slash + 1), std::move(opened)));
  SILTFS_RETURN_IF_ERROR(log->OpenByName(kNewFile));
  return log;
}

Status LogFile::OpenByName(uint32_t mode) {
  const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY;
  Descriptor file(openat(directory_.get(), name_.c_str(), flags, static_cast<mode_t>(mode)));
  if (!file.valid()) return PosixError("open the log", errno).At(path_);
  struct stat info;
  if (fstat(file.get(), &info) != 0) return PosixError("look at the log", errno).At(path_);
  file_ = std::move(file);
  device_ = info.st_dev;
  inode_ = info.st_ino;
  return Status::Ok();
}

bool LogFile::IsStillThere() const {
  struct stat info;
  return fstatat(directory_.get(), name_.c_str(), &info, 0) == 0 && info.st_dev == device_ &&
         info.st_ino == inode_;
}

Status LogFile::Append(std::string_view line) {
  if (!IsStillThere()) {
    struct stat old;
    const uint32_t mode =
        fstat(file_.get(), &old) == 0 ? old.st_mode & kPermissions : uint32_t{kNewFile};
    OpenByName(mode).IgnoreError("the line goes to the old file");
  }
  while (!line.empty()) {
    const ssize_t written =
        RetryInterrupted([&] { return write(file_.get(), line.data(), line.size()); });
    if (written < 0) return PosixError("write to the log", errno).At(path_);
    line.remove_prefix(static_cast<size_t>(written));
  }
  return Status::Ok();
}

}  // namespace siltfs
