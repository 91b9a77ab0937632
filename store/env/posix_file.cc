#include "store/env/posix_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "store/env/posix_error.h"

namespace siltfs {
namespace {

Status ErrorAt(std::string_view action, std::string_view path) {
  return PosixError(action, errno).At(path);
}

}  // namespace

Result<size_t> PosixFile::Read(uint64_t offset, MutableByteView out) const {
  size_t done = 0;
  while (done < out.size()) {
    ssize_t got = RetryInterrupted([&] {
      return pread(fd_.get(), out.data() + done, out.size() - done,
                   static_cast<off_t>(offset + done));
    });
    if (got < 0) return PosixError("read", errno).At(path_, offset + done);
    done += static_cast<size_t>(got);
    if (EndsAfter(static_cast<size_t>(got))) break;
  }
  return done;
}

Status PosixFile::Write(uint64_t offset, ByteView data) {
  size_t done = 0;
  while (done < data.size()) {
    ssize_t put = RetryInterrupted([&] {
      return pwrite(fd_.get(), data.data() + done, data.size() - done,
                    static_cast<off_t>(offset + done));
    });
    if (put < 0) return PosixError("write", errno).At(path_, offset + done);
    if (put == 0) {
      return Status(StatusCode::kIoError, "cannot write: the disk accepted no bytes")
          .At(path_, offset + done);
    }
    done += static_cast<size_t>(put);
  }
  return Status::Ok();
}

Status PosixFile::Sync() {
  // fdatasync covers the size; it omits only the times, which nothing reads.
  if (RetryInterrupted([&] { return fdatasync(fd_.get()); }) != 0) return ErrorAt("sync", path_);
  return Status::Ok();
}

void PosixFile::BeginSync(uint64_t offset, uint64_t size) {
#if defined(SYNC_FILE_RANGE_WRITE)
  // Failures are ignored: Sync does the rest and reports the device's errors.
  (void)sync_file_range(fd_.get(), static_cast<off64_t>(offset), static_cast<off64_t>(size),
                        SYNC_FILE_RANGE_WRITE);
#else
  (void)offset, (void)size;
#endif
}

void PosixFile::BeginRead(uint64_t offset, uint64_t size) const {
  // Failures are ignored: Read does the rest.
  (void)posix_fadvise(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(size),
                      POSIX_FADV_WILLNEED);
}

Status PosixFile::Truncate(uint64_t size) {
  if (RetryInterrupted([&] { return ftruncate(fd_.get(), static_cast<off_t>(size)); }) != 0) {
    return PosixError("truncate", errno).At(path_, size);
  }
  return Status::Ok();
}

Status PosixFile::Preallocate(uint64_t size) {
  if (size == 0) return Status::Ok();
  if (RetryInterrupted([&] {
        return fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size));
      }) != 0) {
    return ErrorAt(fmt::format("claim {} bytes for it", size), path_);
  }
  return Status::Ok();
}

Result<uint64_t> PosixFile::Size() const {
  struct stat info;
  if (fstat(fd_.get(), &info) != 0) return ErrorAt("read its size", path_);
  return static_cast<uint64_t>(info.st_size);
}

Status PosixFile::Close() {
  // Linux releases the descriptor even if close() reports an interruption.
  if (close(fd_.Release()) != 0 && errno != EINTR) return ErrorAt("close", path_);
  return Status::Ok();
}

}  // namespace siltfs
