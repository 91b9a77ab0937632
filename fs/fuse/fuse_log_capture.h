// libfuse explains failures only in its log. While a capture exists, it collects the messages that
// libfuse logs on the thread that made the capture. Other messages go to the process's default
// logger.
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
