// System calls in a form that is easy to read in tests: the outcome is an errno, 0 for success.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <vector>

#include "store/base/bytes.h"

namespace siltfs::testing {

// Example: `Outcome(unlink(path)) == ENOENT`
inline int Outcome(long result) { return result < 0 ? errno : 0; }

inline struct stat StatOf(const std::string& path) {
  struct stat stat = {};
  if (lstat(path.c_str(), &stat) != 0) throw std::runtime_error("lstat " + path);
  return stat;
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path, int flags = O_RDONLY, mode_t mode = 0644)
      : fd_(open(path.c_str(), flags, mode)), error_(fd_ < 0 ? errno : 0) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  int error() const { return error_; }
  int Close() {
    const int outcome = fd_ < 0 ? 0 : Outcome(close(fd_));
    fd_ = -1;
    return outcome;
  }

 private:
  int fd_;
  int error_;
};

inline int WriteAt(int fd, uint64_t offset, ByteView data) {
  while (!data.empty()) {
    const ssize_t count = pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (count < 0) return errno;
    data = data.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return 0;
}

inline int WriteFile(const std::string& path, std::string_view text) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (file.error() != 0) return file.error();
  const int outcome = WriteAt(file.get(), 0, AsBytes(text));
  return outcome != 0 ? outcome : file.Close();
}

inline Bytes ReadAt(int fd, uint64_t offset, size_t size) {
  Bytes bytes(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t count =
        pread(fd, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0) throw std::runtime_error("pread");
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

inline std::string ReadFile(const std::string& path) {
  const Descriptor file(path);
  if (file.error() != 0) throw std::runtime_error("open " + path);
  const Bytes bytes = ReadAt(file.get(), 0, static_cast<size_t>(StatOf(path).st_size));
  return std::string(AsText(bytes));
}

}  // namespace siltfs::testing
