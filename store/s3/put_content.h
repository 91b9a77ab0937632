// The content of a Put: its checksums, which one pass over it computes before it is sent, and a
// check that the bytes sent later are the same.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "store/base/checksum.h"
#include "store/env/env.h"
#include "store/s3/sha256.h"

namespace siltfs {

// Bytes in memory as a file. They must outlive it.
class MemoryFile : public ReadableFile {
 public:
  explicit MemoryFile(ByteView bytes) : bytes_(bytes) {}

  const std::string& path() const override { return path_; }
  Result<size_t> Read(uint64_t offset, MutableByteView out) const override;
  Result<uint64_t> Size() const override { return bytes_.size(); }

 private:
  const ByteView bytes_;
  const std::string path_ = "bytes in memory";
};

class PutContent : public ReadableFile {
 public:
  // Reads all of `file`, which must outlive the PutContent.
  static Result<std::unique_ptr<PutContent>> Measure(const ReadableFile& file);

  const std::string& path() const override { return file_.path(); }
  // Must be called for the pieces in their order; offset 0 begins from the start. Returns kIoError
  // instead of the last piece if the bytes are not those that were measured.
  Result<size_t> Read(uint64_t offset, MutableByteView out) const override;
  Result<uint64_t> Size() const override { return size_; }

  uint64_t size() const { return size_; }
  uint64_t checksum() const { return checksum_; }
  const Sha256Digest& sha256() const { return sha256_; }

 private:
  explicit PutContent(const ReadableFile& file) : file_(file) {}

  const ReadableFile& file_;
  uint64_t size_ = 0;
  uint64_t checksum_ = 0;
  Sha256Digest sha256_{};
  // Of the bytes sent.
  mutable std::unique_ptr<StreamingChecksum> sent_;
};

}  // namespace siltfs
