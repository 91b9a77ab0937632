// libfuse explains failures only in its log. While a capture lives, what libfuse logs on this
// thread is collected; otherwise it goes to the process's default logger.
#pragma once

#include <string>

namespace siltfs::fuse {

class FuseLogCapture {
 public:
  FuseLogCapture();
  ~FuseLogCapture();
  FuseLogCapture(const FuseLogCapture&) = delete;
  FuseLogCapture& operator=(const FuseLogCapture&) = delete;

  // What was logged so far, in one line; empty if nothing.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace siltfs::fuse
