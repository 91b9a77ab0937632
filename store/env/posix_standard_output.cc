#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "store/env/posix_descriptor.h"
#include "store/env/posix_error.h"
#include "store/env/standard_output.h"

namespace siltfs {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

std::string FailureOf(int error) { return std::string(PosixError("write", error).cause()); }

}  // namespace

StandardOutput::StandardOutput() : by_lines_(isatty(STDOUT_FILENO) != 0), stream_(this) {
  if (fcntl(STDOUT_FILENO, F_GETFD) < 0) failure_ = FailureOf(errno);
}

StandardOutput::~StandardOutput() { sync(); }

StandardOutput::int_type StandardOutput::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof()))
    return traits_type::not_eof(character);
  const char c = traits_type::to_char_type(character);
  return xsputn(&c, 1) == 1 ? character : traits_type::eof();
}

std::streamsize StandardOutput::xsputn(const char* text, std::streamsize size) {
  const std::string_view added(text, static_cast<size_t>(size));
  buffer_ += added;
  const bool due =
      buffer_.size() >= kBufferBytes || (by_lines_ && added.find('\n') != std::string_view::npos);
  return due && sync() != 0 ? 0 : size;
}

int StandardOutput::sync() {
  std::string_view rest = buffer_;
  while (!rest.empty() && failure_.empty()) {
    const ssize_t written =
        RetryInterrupted([&] { return write(STDOUT_FILENO, rest.data(), rest.size()); });
    if (written < 0) {
      failure_ = FailureOf(errno);
    } else {
      rest.remove_prefix(static_cast<size_t>(written));
    }
  }
  // After a failure nothing more is written: a reader must not mistake output with a gap for
  // complete output.
  const bool lost = !rest.empty();
  buffer_.clear();
  return lost ? -1 : 0;
}

}  // namespace siltfs
