// The File of PosixEnv and its read queues. For this folder only.
#pragma once

#include <string>

#include "store/env/env.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

class PosixFile : public File {
 public:
  PosixFile(std::string path, Descriptor fd, bool direct)
      : path_(std::move(path)), fd_(std::move(fd)), direct_(direct) {}

  const std::string& path() const override { return path_; }
  Result<size_t> Read(uint64_t offset, MutableByteView out) const override;
  Status Write(uint64_t offset, ByteView data) override;
  Status Sync() override;
  void BeginSync(uint64_t offset, uint64_t size) override;
  void BeginRead(uint64_t offset, uint64_t size) const override;
  Status Truncate(uint64_t size) override;
  Status Preallocate(uint64_t size) override;
  Result<uint64_t> Size() const override;
  Status Close() override;

  int descriptor() const { return fd_.get(); }
  // Whether a read that returned only `got` bytes has reached the end of the file.
  bool EndsAfter(size_t got) const {
    // With O_DIRECT, a read returns an unaligned number of bytes only at the end of the file. A
    // further read from the unaligned offset would be refused.
    return got == 0 || (direct_ && got % kDirectAlignment != 0);
  }

 private:
  static constexpr size_t kDirectAlignment = 4096;

  const std::string path_;
  Descriptor fd_;
  const bool direct_;
};

}  // namespace siltfs
