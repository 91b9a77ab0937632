#include "tests/crash/transfer_pipe.h"

#include <algorithm>

namespace siltfs::testing {

Status TransferPipe::Write(ByteView bytes) {
  const MutexLock lock(mutex_);
  if (closed_) return {StatusCode::kIoError, "the pipe is closed"};
  written_ = true;
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  if (--left_ == 0) closed_ = true;
  changed_.NotifyAll();
  return Status::Ok();
}

Result<size_t> TransferPipe::Read(MutableByteView out) {
  const MutexLock lock(mutex_);
  while (bytes_.empty() && !closed_) changed_.Wait(mutex_);
  const size_t size = std::min(out.size(), bytes_.size());
  const auto end = bytes_.begin() + static_cast<ptrdiff_t>(size);
  std::copy(bytes_.begin(), end, out.begin());
  bytes_.erase(bytes_.begin(), end);
  return size;
}

void TransferPipe::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  changed_.NotifyAll();
}

bool TransferPipe::written() const {
  const MutexLock lock(mutex_);
  return written_;
}

}  // namespace siltfs::testing
