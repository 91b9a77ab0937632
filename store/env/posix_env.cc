#include "store/env/posix_env.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "store/env/posix_descriptor.h"
#include "store/env/posix_error.h"
#include "store/env/posix_file.h"
#include "store/env/posix_paths.h"
#include "store/env/read_request.h"
#include "store/env/thread_read_queue.h"
#include "store/env/uring_read_queue.h"

namespace siltfs {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

// ELOOP means that the path has a symbolic link although links are refused, or that the links on
// the path form a loop.
Status ErrorAt(std::string_view action, std::string_view path) {
  if (errno != ELOOP) return PosixError(action, errno).At(path);
  return Status(StatusCode::kCorruption, "is a symbolic link, or lies behind one").At(path);
}

class PosixFileLock : public FileLock {
 public:
  explicit PosixFileLock(Descriptor fd) : fd_(std::move(fd)) {}

 private:
  Descriptor fd_;  // closing it releases the lock
};

FileType TypeOfMode(mode_t mode) {
  if (S_ISREG(mode)) return FileType::kRegular;
  if (S_ISDIR(mode)) return FileType::kDirectory;
  if (S_ISLNK(mode)) return FileType::kLink;
  return FileType::kOther;
}

class PosixEnv : public Env {
 public:
  explicit PosixEnv(PosixEnvOptions options)
      : options_(std::move(options)), paths_(options_.links, options_.anchor) {}

  Result<std::unique_ptr<File>> OpenFile(const std::string& path, OpenOptions options) override {
    // O_NONBLOCK avoids waiting on a pipe in place of a file; for files it has no effect.
    int flags = O_NONBLOCK | (options.mode == OpenMode::kRead ? O_RDONLY : O_RDWR);
    if (options.mode == OpenMode::kCreate) flags |= O_CREAT | O_EXCL;
    Descriptor fd = paths_.Open(path, flags, kFileMode);
    if (!fd.valid()) {
      return ErrorAt(options.mode == OpenMode::kCreate ? "create" : "open", path);
    }
    struct stat info;
    if (fstat(fd.get(), &info) != 0) return ErrorAt("open", path);
    if (S_ISDIR(info.st_mode)) return PosixError("open as a file", EISDIR).At(path);
    if (!S_ISREG(info.st_mode)) return Status(StatusCode::kCorruption, "is not a file").At(path);
    if (options.direct) {
      // O_DIRECT is not set in open: if it were refused there, a newly created file would remain.
      if (fcntl(fd.get(), F_SETFL, O_DIRECT) != 0) {
        int error = errno;
        if (options.mode == OpenMode::kCreate)
          RemoveFile(path).IgnoreError("an empty file remains");
        if (error == EINVAL) error = EOPNOTSUPP;
        return PosixError("open for direct access", error).At(path);
      }
    }
    return std::unique_ptr<File>(new PosixFile(path, std::move(fd), options.direct));
  }

  Status CreateDirectory(const std::string& path) override {
    const PosixPaths::Name name(paths_, path);
    if (!name.valid() || mkdirat(name.directory(), name.name(), kDirectoryMode) != 0)
      return ErrorAt("create the directory", path);
    return Status::Ok();
  }

  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override {
    Descriptor fd = paths_.Open(path, O_RDONLY | O_DIRECTORY);
    if (!fd.valid()) return ErrorAt("list", path);
    struct CloseDirectory {
      void operator()(DIR* directory) const { closedir(directory); }
    };
    std::unique_ptr<DIR, CloseDirectory> directory(fdopendir(fd.get()));
    if (directory == nullptr) return ErrorAt("list", path);
    fd.Release();
    std::vector<DirectoryEntry> entries;
    while (true) {
      errno = 0;
      const dirent* found = readdir(directory.get());
      if (found == nullptr) break;
      std::string_view name = found->d_name;
      if (name == "." || name == "..") continue;
      DirectoryEntry entry{std::string(name), FileType::kOther};
      if (found->d_type == DT_UNKNOWN) {
        struct stat info;
        if (fstatat(dirfd(directory.get()), found->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
          if (errno == ENOENT) continue;  // removed after readdir has read it
          return ErrorAt(fmt::format("list, at {}", name), path);
        }
        entry.type = TypeOfMode(info.st_mode);
      } else {
        entry.type = TypeOfMode(DTTOIF(found->d_type));
      }
      entries.push_back(std::move(entry));
    }
    if (errno != 0) return ErrorAt("list", path);
    return entries;
  }

  Status RemoveFile(const std::string& path) override {
    const PosixPaths::Name name(paths_, path);
    if (!name.valid() || unlinkat(name.directory(), name.name(), 0) != 0)
      return ErrorAt("remove", path);
    return Status::Ok();
  }

  Status RemoveDirectory(const std::string& path) override {
    const PosixPaths::Name name(paths_, path);
    if (!name.valid() || unlinkat(name.directory(), name.name(), AT_REMOVEDIR) != 0)
      return ErrorAt("remove the directory", path);
    return Status::Ok();
  }

  Status Rename(const std::string& from, const std::string& to) override {
    const PosixPaths::Name old_name(paths_, from);
    if (!old_name.valid()) return ErrorAt(fmt::format("rename to {}", to), from);
    const PosixPaths::Name new_name(paths_, to);
    if (!new_name.valid()) return ErrorAt(fmt::format("have {} renamed to it", from), to);
    if (renameat(old_name.directory(), old_name.name(), new_name.directory(), new_name.name()) != 0)
      return ErrorAt(fmt::format("rename to {}", to), from);
    return Status::Ok();
  }

  Status SyncDirectory(const std::string& path) override {
    Descriptor fd = paths_.Open(path, O_RDONLY | O_DIRECTORY);
    if (!fd.valid()) return ErrorAt("sync the directory", path);
    if (RetryInterrupted([&] { return fsync(fd.get()); }) != 0) {
      return ErrorAt("sync the directory", path);
    }
    return Status::Ok();
  }

  Result<FileInfo> GetFileInfo(const std::string& path) override {
    struct stat info;
    if (!LookAt(path, info)) return ErrorAt("look at", path);
    return FileInfo{TypeOfMode(info.st_mode), static_cast<uint64_t>(info.st_size),
                    static_cast<uint64_t>(info.st_blocks) * 512};
  }

  Result<DiskSpace> GetDiskSpace(const std::string& path) override {
    struct statvfs info;
    const Descriptor fd = paths_.anchored() ? paths_.Open(path, O_PATH) : Descriptor();
    const auto ask = [&] {
      return fd.valid() ? fstatvfs(fd.get(), &info) : statvfs(path.c_str(), &info);
    };
    if (RetryInterrupted(ask) != 0) return ErrorAt("ask for the free space", path);
    return DiskSpace{info.f_blocks * info.f_frsize, info.f_bfree * info.f_frsize,
                     info.f_bavail * info.f_frsize};
  }

  Result<std::unique_ptr<FileLock>> LockFile(const std::string& path) override {
    auto open_with = [&](int access) {
      return paths_.Open(path, access | O_CREAT | O_NONBLOCK, kFileMode);
    };
    Descriptor fd = open_with(O_RDWR);  // NFS grants exclusive locks only to writers
    if (!fd.valid() && (errno == EROFS || errno == EACCES)) fd = open_with(O_RDONLY);
    // On a read-only medium no file can be created, and no lock is needed.
    if (!fd.valid() && errno == EROFS) return std::unique_ptr<FileLock>(new PosixFileLock({}));
    if (!fd.valid()) return ErrorAt("open the lock file", path);
    struct stat info;
    if (fstat(fd.get(), &info) != 0) return ErrorAt("open the lock file", path);
    if (!S_ISREG(info.st_mode)) return Status(StatusCode::kCorruption, "is not a file").At(path);
    // flock belongs to the open file description, so it also excludes a second holder in this
    // process.
    if (RetryInterrupted([&] { return flock(fd.get(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno == EWOULDBLOCK)
        return Status(StatusCode::kInUse, "is locked by another holder").At(path);
      return ErrorAt("lock", path);
    }
    return std::unique_ptr<FileLock>(new PosixFileLock(std::move(fd)));
  }

  Result<std::unique_ptr<ReadQueue>> NewReadQueue(unsigned depth) override {
    SILTFS_RETURN_IF_ERROR(CheckReadQueueDepth(depth));
    if (options_.reads != ReadMechanism::kThreads) {
      Result<std::unique_ptr<ReadQueue>> queue = NewUringReadQueue(depth);
      // On any failure (no io_uring, not permitted, no memory for it) threads do the same work.
      if (queue.ok() || options_.reads == ReadMechanism::kUring) return queue;
    }
    return NewThreadReadQueue(depth);
  }

  // The kernel uses this coarse clock for file times. With a finer clock, the birth time of a new
  // file could be later than the modification time that the kernel sends.
  int64_t NowNanoseconds() override { return Clock(CLOCK_REALTIME_COARSE); }
  int64_t MonotonicNanoseconds() override { return Clock(CLOCK_MONOTONIC); }

  Status FillRandom(MutableByteView out) override {
    size_t done = 0;
    while (done < out.size()) {
      ssize_t got =
          RetryInterrupted([&] { return getrandom(out.data() + done, out.size() - done, 0); });
      if (got < 0) return PosixError("draw random bytes", errno);
      done += static_cast<size_t>(got);
    }
    return Status::Ok();
  }

 private:
  bool LookAt(const std::string& path, struct stat& info) const {
    const bool follows = options_.links == SymbolicLinks::kFollow;
    if (follows && !paths_.anchored()) return stat(path.c_str(), &info) == 0;
    const Descriptor fd = paths_.Open(path, follows ? O_PATH : O_PATH | O_NOFOLLOW);
    return fd.valid() && fstat(fd.get(), &info) == 0;
  }

  static int64_t Clock(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);  // cannot fail for these two clocks
    return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  }

  const PosixEnvOptions options_;
  const PosixPaths paths_;
};

}  // namespace

std::unique_ptr<Env> NewPosixEnv(PosixEnvOptions options) {
  return std::make_unique<PosixEnv>(std::move(options));
}

Status KeepToOwner(const std::string& directory) {
  if (chmod(directory.c_str(), kDirectoryMode) != 0)
    return ErrorAt("deny other users access to", directory);
  return Status::Ok();
}

Result<FileOwner> OwnerOf(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return ErrorAt("find the owner of", path);
  return FileOwner{.uid = info.st_uid, .gid = info.st_gid};
}

}  // namespace siltfs
