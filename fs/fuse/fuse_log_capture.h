// libfuse explains failures only in its log. A capture collects the messages libfuse logs on its
// thread while it exists; other messages go to the process's default logger.
#pragma once

#include <string>

namespace siltfs::fuse {

class FuseLogCapture {
 public:
  FuseLogCapture();
  ~FuseLogCapture();
  FuseLogCapture(const FuseLogCapture&) = delete;
  FuseLogCapture& operator=(const FuseLogCapture&) = delete;

  // The messages logged so far, in one line; empty if there were none.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace siltfs::fuse
