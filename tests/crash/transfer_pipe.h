// A pipe between two threads of a transfer. It can end after some of the messages of the sender.
//
// Thread-safety: every call from any thread.
#pragma once

#include <deque>

#include "store/base/byte_stream.h"
#include "store/base/thread_annotations.h"

namespace siltfs::testing {

class TransferPipe final : public ByteSink, public ByteSource {
 public:
  // `messages`: after this number of calls of Write, the pipe is closed.
  explicit TransferPipe(size_t messages = SIZE_MAX) : left_(messages) {}

  Status Write(ByteView bytes) override;
  // Waits for bytes, or for the end.
  Result<size_t> Read(MutableByteView out) override;
  // What was written can still be read.
  void Close();
  bool written() const;  // whether anything was written

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<uint8_t> bytes_ SILTFS_GUARDED_BY(mutex_);
  size_t left_ SILTFS_GUARDED_BY(mutex_);
  bool closed_ SILTFS_GUARDED_BY(mutex_) = false;
  bool written_ SILTFS_GUARDED_BY(mutex_) = false;
};

}  // namespace siltfs::testing
