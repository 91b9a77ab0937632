// Snapshot streams in memory. The functions fail the running test.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "fs/interface/file_system.h"
#include "fs/interface/snapshot_transfers.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

inline const std::function<Status()> kGoOn = [] { return Status::Ok(); };

class TextSink final : public ByteSink {
 public:
  Status Write(ByteView bytes) override {
    text += AsText(bytes);
    return Status::Ok();
  }
  std::string text;
};

class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : rest_(text) {}
  Result<size_t> Read(MutableByteView out) override {
    const size_t size = std::min(out.size(), rest_.size());
    std::copy_n(AsBytes(rest_).begin(), size, out.begin());
    rest_.remove_prefix(size);
    return size;
  }

 private:
  std::string_view rest_;
};

inline std::string Send(FileSystem& from, SendRequest request) {
  TextSink out;
  REQUIRE_OK(from.transfers().Send(request, out, kGoOn));
  return std::move(out.text);
}

inline Result<ReceiveOutcome> Receive(FileSystem& to, std::string_view stream,
                                      std::string name = {}) {
  TextSource in(stream);
  return to.transfers().Receive({.name = std::move(name)}, in, kGoOn);
}

}  // namespace siltfs::testing
