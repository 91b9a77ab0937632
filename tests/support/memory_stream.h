// Streams in memory for tests.
//
// Thread-safety: one thread at a time.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "store/base/byte_stream.h"

namespace siltfs::testing {

class TextSink final : public ByteSink {
 public:
  Status Write(ByteView bytes) override {
    text += AsText(bytes);
    return Status::Ok();
  }
  std::string text;
};

// Returns at most `most` bytes at a time. `failure` is returned where the bytes end, if it is set.
class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string text, size_t most = SIZE_MAX)
      : text_(std::move(text)), most_(most) {}
  Result<size_t> Read(MutableByteView out) override {
    if (next_ == text_.size() && !failure.ok()) return failure;
    const size_t size = std::min({out.size(), text_.size() - next_, most_});
    const ByteView bytes = AsBytes(text_).subspan(next_, size);
    std::copy(bytes.begin(), bytes.end(), out.begin());
    next_ += size;
    largest_read = std::max(largest_read, out.size());
    return size;
  }
  Status failure;
  size_t largest_read = 0;  // that was asked for

 private:
  const std::string text_;
  const size_t most_;
  size_t next_ = 0;
};

}  // namespace siltfs::testing
