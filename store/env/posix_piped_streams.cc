#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "store/env/piped_streams.h"
#include "store/env/posix_descriptor.h"
#include "store/env/posix_error.h"

namespace siltfs {
namespace {

using Patience = std::optional<std::chrono::nanoseconds>;

// Returns when the descriptor can be used without waiting, or with the failure of `check`.
// kInterrupted after `patience`.
Status AwaitReady(int descriptor, short event, const PipedStreams::Check& check,
                  const Patience& patience = std::nullopt) {
  const auto begin = std::chrono::steady_clock::now();
  pollfd polled{.fd = descriptor, .events = event, .revents = 0};
  while (true) {
    SILTFS_RETURN_IF_ERROR(check());
    const int ready =
        RetryInterrupted([&] { return poll(&polled, 1, static_cast<int>(kPipeInterval.count())); });
    if (ready < 0) return PosixError("wait", errno);
    if (ready > 0) return Status::Ok();
    if (patience && std::chrono::steady_clock::now() - begin > *patience)
      return {StatusCode::kInterrupted, "nothing was written to the pipe for too long"};
  }
}

bool IsRegularFile(int descriptor) {
  struct stat info;
  return fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
}

class PipeSource final : public ByteSource {
 public:
  explicit PipeSource(PipedStreams::Check check) : check_(std::move(check)) {}

  Result<size_t> Read(MutableByteView out) override {
    SILTFS_RETURN_IF_ERROR(AwaitReady(STDIN_FILENO, POLLIN, check_, patience_));
    const ssize_t got =
        RetryInterrupted([&] { return read(STDIN_FILENO, out.data(), out.size()); });
    if (got < 0) return PosixError("read", errno).At("standard input");
    return static_cast<size_t>(got);
  }
  void SetPatience(Patience patience) override { patience_ = patience; }

 private:
  const PipedStreams::Check check_;
  Patience patience_;
};

class PipeSink final : public ByteSink {
 public:
  explicit PipeSink(PipedStreams::Check check)
      : check_(std::move(check)),
        // A pipe that poll reports as ready takes this much without waiting. A regular file always
        // does.
        most_(IsRegularFile(STDOUT_FILENO) ? SSIZE_MAX : PIPE_BUF) {}

  Status Write(ByteView bytes) override {
    while (!bytes.empty()) {
      SILTFS_RETURN_IF_ERROR(AwaitReady(STDOUT_FILENO, POLLOUT, check_));
      const ssize_t written = RetryInterrupted(
          [&] { return write(STDOUT_FILENO, bytes.data(), std::min(bytes.size(), most_)); });
      if (written < 0) return PosixError("write", errno).At("standard output");
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return Status::Ok();
  }

 private:
  const PipedStreams::Check check_;
  const size_t most_;
};

class ProcessPipes final : public PipedStreams {
 public:
  bool InputIsTerminal() const override { return isatty(STDIN_FILENO) != 0; }
  bool OutputIsTerminal() const override { return isatty(STDOUT_FILENO) != 0; }
  std::unique_ptr<ByteSource> Input(Check check) override {
    return std::make_unique<PipeSource>(std::move(check));
  }
  std::unique_ptr<ByteSink> Output(Check check) override {
    signal(SIGPIPE, SIG_IGN);
    return std::make_unique<PipeSink>(std::move(check));
  }
};

}  // namespace

std::unique_ptr<PipedStreams> StandardPipes() { return std::make_unique<ProcessPipes>(); }

}  // namespace siltfs
