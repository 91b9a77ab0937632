// Large files that bring the store to the wanted size. They are written once, synced, and must
// never change. All their chunks are different.
#pragma once

#include <cstdint>
#include <string>

namespace siltfs::killtest {

class Fill {
 public:
  static constexpr uint64_t kFileBytes = 64u << 20;

  Fill(std::string directory, uint64_t bytes, uint64_t seed)
      : directory_(std::move(directory)), bytes_(bytes), seed_(seed) {}

  uint64_t files() const { return (bytes_ + kFileBytes - 1) / kFileBytes; }
  // Writes the files. Write and Verify throw Failure.
  void Write() const;
  // Compares every byte of a file. Returns the number of bytes.
  uint64_t Verify(uint64_t file) const;

 private:
  std::string PathOf(uint64_t file) const;
  uint64_t SizeOf(uint64_t file) const;

  const std::string directory_;
  const uint64_t bytes_;
  const uint64_t seed_;
};

}  // namespace siltfs::killtest
