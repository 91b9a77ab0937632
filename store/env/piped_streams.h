// Standard input and output of a program whose data are a stream of bytes, such as one side of a
// pipe over ssh.
//
// While a call waits for the other side, it calls `check` at intervals (kPipeInterval), and returns
// its failure. So a program can be interrupted although the other side neither reads nor writes.
//
// Thread-safety: one thread for each returned stream. Ownership: the streams belong to the caller.
// Errors: those of the operating system, with "standard input" or "standard output" as path. A
// reader that has left is a failure of Write, not a signal.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "store/base/byte_stream.h"
#include "store/base/status.h"

namespace siltfs {

inline constexpr std::chrono::milliseconds kPipeInterval{100};

class PipedStreams {
 public:
  using Check = std::function<Status()>;

  virtual ~PipedStreams() = default;
  virtual bool InputIsTerminal() const = 0;
  virtual bool OutputIsTerminal() const = 0;
  virtual std::unique_ptr<ByteSource> Input(Check check) = 0;
  // Not buffered.
  virtual std::unique_ptr<ByteSink> Output(Check check) = 0;
};

// Those of this process. Output makes the process ignore SIGPIPE.
std::unique_ptr<PipedStreams> StandardPipes();

}  // namespace siltfs
