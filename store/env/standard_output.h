// Standard output as a stream that keeps the cause of its first failure.
//
// std::cout loses the cause: it keeps only the fact that a write failed. When the program checks
// this after the final flush, errno may have changed.
//
// Thread-safety: as for std::ostream. A terminal gets each line at once; otherwise the buffer is
// written when it is full, at a flush, and by the destructor. A failed write sets badbit.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace siltfs {

class StandardOutput : private std::streambuf {
 public:
  // Make it before this process opens any file. If standard output is closed, nothing is ever
  // written, because another file may get its descriptor number.
  StandardOutput();
  ~StandardOutput() override;
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;

  std::ostream& stream() { return stream_; }
  // The first failed write's error, such as "cannot write: No space left on device"; else empty.
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
