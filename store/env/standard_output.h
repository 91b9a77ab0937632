// Standard output as a stream that knows why it failed.
//
// std::cout forgets the cause: a write may fail long before the flush at the end that tells.
//
// Thread-safety: as for std::ostream. Lines go out at once to a terminal, else when the buffer is
// full, at a flush, and at the end of the object's life. A write that fails sets badbit.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace siltfs {

class StandardOutput : private std::streambuf {
 public:
  // To be made before this process opens anything. Where standard output is closed, its number may
  // later be that of another file, so that nothing is ever written.
  StandardOutput();
  ~StandardOutput() override;
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;

  std::ostream& stream() { return stream_; }
  // "cannot write: No space left on device", of the first write that failed; else empty.
  const std::string& failure() const { return failure_; }

 private:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

  const bool by_lines_;
  std::string buffer_;
  std::string failure_;
  std::ostream stream_;
};

}  // namespace siltfs
