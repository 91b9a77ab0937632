// The devices of the block campaign. One records all requests; the other holds the state after a
// power cut, made from such a record.
//
// A device behaves like a disk with a volatile cache. A write is durable when a flush that began
// after the write has returned. Other writes may be lost, kept, kept without earlier ones, or torn
// between sectors.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/random.h"

namespace siltfs::blocktest {

inline constexpr uint64_t kSectorBytes = 512;
inline constexpr uint64_t kPageBytes = 4096;

// The functions are called by the thread that answers the requests of the kernel. Each function
// returns 0 or an errno.
class Device {
 public:
  virtual ~Device() = default;
  virtual int Read(uint64_t offset, MutableByteView out) = 0;
  virtual int Write(uint64_t offset, ByteView data) = 0;
  // Handles a discard or a write of zeros: the range reads as zeros afterwards.
  virtual int Zero(uint64_t offset, uint64_t length) = 0;
  virtual int Flush() = 0;
};

struct DeviceRecord {
  enum class Kind : uint8_t { kWrite, kZero, kFlush };
  Kind kind = Kind::kFlush;
  uint64_t offset = 0;
  uint64_t length = 0;
  Bytes data;  // the written bytes, for a write
};
using DeviceLog = std::deque<DeviceRecord>;

// The bytes of a disk. Pages that were never written take no memory. Not thread-safe.
class SparseImage {
 public:
  // Throws Failure.
  explicit SparseImage(uint64_t size);
  ~SparseImage();
  SparseImage(const SparseImage&) = delete;
  SparseImage& operator=(const SparseImage&) = delete;

  uint64_t size() const { return size_; }
  ByteView view() const { return {bytes_, size_}; }
  void Write(uint64_t offset, ByteView data);
  void Zero(uint64_t offset, uint64_t length);
  void Apply(const DeviceRecord& record);

 private:
  const uint64_t size_;
  uint8_t* bytes_;
};

// A temporary failure of a part of a device.
struct Fault {
  bool reads = false;
  bool writes = false;
  bool flushes = false;
  // The failing ranges [begin, end) of the device; empty: the whole device. Flushes fail regardless
  // of the ranges.
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
};

// Thread-safe.
class RecordingDevice final : public Device {
 public:
  RecordingDevice(uint64_t size, uint64_t seed) : image_(size), random_(seed) {}

  int Read(uint64_t offset, MutableByteView out) override;
  int Write(uint64_t offset, ByteView data) override;
  int Zero(uint64_t offset, uint64_t length) override;
  int Flush() override;

  // Returns the number of records so far.
  uint64_t position() const { return position_; }
  // Returns the number of bytes in the log.
  uint64_t log_bytes() const { return log_bytes_; }
  // Call it only while no thread uses the device.
  const DeviceLog& log() const { return log_; }

  void SetFault(std::optional<Fault> fault);
  uint64_t failed_calls() const { return failed_calls_; }

 private:
  bool Fails(bool Fault::*kind, uint64_t offset, uint64_t length);
  void Record(DeviceRecord record);

  std::mutex mutex_;  // guards the members below
  SparseImage image_;
  DeviceLog log_;
  std::optional<Fault> fault_;
  Random random_;
  std::atomic<uint64_t> position_ = 0;
  std::atomic<uint64_t> log_bytes_ = 0;
  std::atomic<uint64_t> failed_calls_ = 0;
};

// Holds the state after a cut, and on top of it the writes of recovery. Does not change the image
// of the state after the cut. Thread-safe.
class CutDevice final : public Device {
 public:
  // Borrows `base`, which must not change while this object exists.
  explicit CutDevice(const SparseImage& base) : base_(base) {}

  int Read(uint64_t offset, MutableByteView out) override;
  int Write(uint64_t offset, ByteView data) override;
  int Zero(uint64_t offset, uint64_t length) override;
  int Flush() override { return 0; }

  // Saves the image as a sparse file. Throws Failure.
  void Save(const std::string& path);

 private:
  using Page = std::array<uint8_t, kPageBytes>;
  Page& PageAt(uint64_t number);

  std::mutex mutex_;
  const SparseImage& base_;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
};

}  // namespace siltfs::blocktest
