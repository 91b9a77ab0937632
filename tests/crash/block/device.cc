#include "tests/crash/block/device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "store/env/posix_descriptor.h"
#include "tests/crash/kill/failure.h"

namespace siltfs::blocktest {

SparseImage::SparseImage(uint64_t size) : size_(size) {
  void* const bytes = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED) throw killtest::SystemFailure("map memory for a disk");
  bytes_ = static_cast<uint8_t*>(bytes);
}

SparseImage::~SparseImage() { munmap(bytes_, size_); }

void SparseImage::Write(uint64_t offset, ByteView data) {
  std::copy(data.begin(), data.end(), bytes_ + offset);
}

void SparseImage::Zero(uint64_t offset, uint64_t length) {
  // Returns whole pages to the kernel, and writes zeros to the rest.
  const uint64_t begin =
      std::min(offset + length, (offset + kPageBytes - 1) / kPageBytes * kPageBytes);
  const uint64_t end = std::max(begin, (offset + length) / kPageBytes * kPageBytes);
  std::memset(bytes_ + offset, 0, begin - offset);
  if (end > begin && madvise(bytes_ + begin, end - begin, MADV_DONTNEED) != 0)
    std::memset(bytes_ + begin, 0, end - begin);
  std::memset(bytes_ + end, 0, offset + length - end);
}

void SparseImage::Apply(const DeviceRecord& record) {
  if (record.kind == DeviceRecord::Kind::kWrite) Write(record.offset, record.data);
  if (record.kind == DeviceRecord::Kind::kZero) Zero(record.offset, record.length);
}

bool RecordingDevice::Fails(bool Fault::*kind, uint64_t offset, uint64_t length) {
  if (!fault_ || !((*fault_).*kind)) return false;
  const bool everywhere = fault_->ranges.empty() || kind == &Fault::flushes;
  const bool fails =
      everywhere || std::any_of(fault_->ranges.begin(), fault_->ranges.end(), [&](auto range) {
        return offset < range.second && offset + length > range.first;
      });
  if (fails) ++failed_calls_;
  return fails;
}

void RecordingDevice::Record(DeviceRecord record) {
  image_.Apply(record);
  log_bytes_ += record.data.size();
  log_.push_back(std::move(record));
  position_ = log_.size();
}

int RecordingDevice::Read(uint64_t offset, MutableByteView out) {
  const std::lock_guard lock(mutex_);
  if (Fails(&Fault::reads, offset, out.size())) return EIO;
  const ByteView from = image_.view().subspan(offset, out.size());
  std::copy(from.begin(), from.end(), out.begin());
  return 0;
}

int RecordingDevice::Write(uint64_t offset, ByteView data) {
  const std::lock_guard lock(mutex_);
  const bool fails = Fails(&Fault::writes, offset, data.size());
  if (fails) {
    // Half of the failing writes write a part of their data.
    data = data.first(
        random_.OneIn(2) ? 0 : random_.Below(data.size() / kSectorBytes + 1) * kSectorBytes);
  }
  if (!data.empty()) {
    Record({.kind = DeviceRecord::Kind::kWrite,
            .offset = offset,
            .length = data.size(),
            .data = Bytes(data.begin(), data.end())});
  }
  return fails ? EIO : 0;
}

int RecordingDevice::Zero(uint64_t offset, uint64_t length) {
  const std::lock_guard lock(mutex_);
  if (Fails(&Fault::writes, offset, length)) return EIO;
  Record({.kind = DeviceRecord::Kind::kZero, .offset = offset, .length = length, .data = {}});
  return 0;
}

int RecordingDevice::Flush() {
  const std::lock_guard lock(mutex_);
  if (Fails(&Fault::flushes, 0, 0)) return EIO;
  Record({});
  return 0;
}

void RecordingDevice::SetFault(std::optional<Fault> fault) {
  const std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
}

CutDevice::Page& CutDevice::PageAt(uint64_t number) {
  auto& page = pages_[number];
  if (!page) {
    page = std::make_unique<Page>();
    const ByteView from = base_.view().subspan(number * kPageBytes, kPageBytes);
    std::copy(from.begin(), from.end(), page->begin());
  }
  return *page;
}

int CutDevice::Read(uint64_t offset, MutableByteView out) {
  const std::lock_guard lock(mutex_);
  for (size_t done = 0; done < out.size();) {
    const uint64_t number = (offset + done) / kPageBytes;
    const uint64_t within = (offset + done) % kPageBytes;
    const size_t piece = std::min<size_t>(kPageBytes - within, out.size() - done);
    const auto found = pages_.find(number);
    const uint8_t* const from =
        found == pages_.end() ? base_.view().data() + number * kPageBytes : found->second->data();
    std::memcpy(out.data() + done, from + within, piece);
    done += piece;
  }
  return 0;
}

int CutDevice::Write(uint64_t offset, ByteView data) {
  const std::lock_guard lock(mutex_);
  for (size_t done = 0; done < data.size();) {
    const uint64_t within = (offset + done) % kPageBytes;
    const size_t piece = std::min<size_t>(kPageBytes - within, data.size() - done);
    std::memcpy(PageAt((offset + done) / kPageBytes).data() + within, data.data() + done, piece);
    done += piece;
  }
  return 0;
}

int CutDevice::Zero(uint64_t offset, uint64_t length) {
  const Bytes zeros(std::min<uint64_t>(length, 1u << 20));
  for (uint64_t done = 0; done < length;) {
    const uint64_t piece = std::min<uint64_t>(zeros.size(), length - done);
    Write(offset + done, ByteView(zeros).first(piece));
    done += piece;
  }
  return 0;
}

void CutDevice::Save(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.valid() || ftruncate(file.get(), static_cast<off_t>(base_.size())) != 0)
    throw killtest::SystemFailure("save " + path);
  const Page zeros{};
  Page page;
  for (uint64_t at = 0; at < base_.size(); at += kPageBytes) {
    Read(at, page);
    if (page == zeros) continue;
    if (pwrite(file.get(), page.data(), page.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(page.size()))
      throw killtest::SystemFailure("save " + path);
  }
}

}  // namespace siltfs::blocktest
