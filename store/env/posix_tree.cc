#include "store/env/posix_tree.h"

#include <sys/stat.h>

#include "store/env/posix_error.h"

namespace siltfs {
namespace {

int64_t Nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Status TreeError(std::string_view action, const std::string& name) {
  return PosixError(action, errno).At(name);
}

SourceAttributes FromStat(const struct stat& info) {
  return {.file_system = info.st_dev,
          .inode = info.st_ino,
          .mode = info.st_mode,
          .links = static_cast<uint32_t>(info.st_nlink),
          .uid = info.st_uid,
          .gid = info.st_gid,
          .device = info.st_rdev,
          .size = static_cast<uint64_t>(info.st_size),
          .allocated_bytes = static_cast<uint64_t>(info.st_blocks) * 512,
          .atime = Nanoseconds(info.st_atim),
          .mtime = Nanoseconds(info.st_mtim),
          .ctime = Nanoseconds(info.st_ctim)};
}

Result<size_t> ReadFully(const Descriptor& fd, uint64_t offset, MutableByteView out,
                         const std::string& name) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = RetryInterrupted([&] {
      return pread(fd.get(), out.data() + done, out.size() - done,
                   static_cast<off_t>(offset + done));
    });
    if (got < 0) return TreeError("read", name);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace siltfs
