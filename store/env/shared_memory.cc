#include "store/env/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "store/env/posix_error.h"

namespace siltfs {
namespace {

// The size can neither shrink, which would make accesses fail, nor grow. The seals are permanent.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Result<uint8_t*> Map(const Descriptor& fd, size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return PosixError("map shared memory", errno);
  return static_cast<uint8_t*>(address);
}

Status Refuse(const char* why) { return {StatusCode::kInvalidArgument, why}; }

}  // namespace

Result<SharedMemory> SharedMemory::Make(size_t bytes) {
  Descriptor fd(memfd_create("siltfs", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return PosixError("make shared memory", errno);
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return PosixError("make shared memory", errno);
  }
  SILTFS_ASSIGN_OR_RETURN(uint8_t * address, Map(fd, bytes));
  return SharedMemory(address, bytes, std::move(fd));
}

Result<SharedMemory> SharedMemory::Adopt(const Descriptor& fd, size_t least, size_t most) {
  // Only memory files and huge pages can be sealed, and the latter are not accepted: their faults
  // can fail.
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return Refuse("the memory's size is not sealed");
  if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0)
    return Refuse("the memory cannot be written");
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return PosixError("examine shared memory", errno);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (!S_ISREG(info.st_mode) || size < least || size > most)
    return Refuse("the memory has a size that is not allowed");
  if (info.st_blksize > 64 << 10) return Refuse("the memory has huge pages");
  SILTFS_ASSIGN_OR_RETURN(uint8_t * address, Map(fd, size));
  return SharedMemory(address, size, Descriptor());
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    Unmap();
    address_ = std::exchange(other.address_, nullptr);
    size_ = std::exchange(other.size_, 0);
    fd_ = std::move(other.fd_);
  }
  return *this;
}

void SharedMemory::Unmap() {
  if (address_ != nullptr) munmap(address_, size_);
  address_ = nullptr;
}

}  // namespace siltfs
