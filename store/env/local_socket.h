// Stream sockets with a name in a directory, for one process to ask another on the same machine
// (the control socket of a mounted store). The directory's path may be of any length. A socket can
// also have an abstract name, which needs no directory: it works as long as both processes share a
// network namespace, whatever becomes of the disk. Abstract names have no permissions; both sides
// must look at PeerUid.
//
// Thread-safety: LocalListener::Shutdown and LocalStream::Shutdown may be called from any thread at
// any time; otherwise a listener is used by one thread at a time, and a stream by one that reads
// and one that writes. Errors: Status with the socket's path. No signal is ever raised because the
// other side is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/result.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

class LocalStream {
 public:
  // kNotFound if there is no socket of that name, kStale if there is one and the process that
  // listened on it is gone; other codes say that it is not known whether a process listens.
  static Result<std::unique_ptr<LocalStream>> Connect(
      const std::string& directory, const std::string& name,
      std::optional<std::chrono::milliseconds> timeout = std::nullopt);

  // To the socket of this abstract name; kStale if there is none.
  static Result<std::unique_ptr<LocalStream>> ConnectAbstract(
      const std::string& name, std::optional<std::chrono::milliseconds> timeout = std::nullopt);

  LocalStream(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  // From now on a call that waits longer than this for the other side fails with kInterrupted.
  Status SetTimeout(std::chrono::milliseconds timeout);
  // The next line, without its end; nothing if the other side has closed instead of beginning one.
  // kFileTooLarge if it is longer than `limit` bytes, kAborted if the stream ends within it.
  Result<std::optional<std::string>> ReadLine(size_t limit);
  // Everything until the other side closes or finishes writing; kFileTooLarge beyond `limit` bytes.
  Result<std::string> ReadAll(size_t limit);
  Status WriteAll(std::string_view text);
  // The other side's ReadAll ends; reading goes on.
  Status FinishWriting();
  // Ends reading and writing, waiting calls included: reads find the stream closed, writes fail.
  void Shutdown();
  // The user the other process ran as when it connected, or listened.
  Result<uint32_t> PeerUid() const;
  // The other process, when it connected or listened; 0 if this process's namespace has no number
  // for it.
  Result<int64_t> PeerPid() const;

 private:
  // Adds what has come to the buffer; false at the end of the stream.
  Result<bool> Receive();

  const std::string path_;
  const Descriptor fd_;
  std::string buffer_;  // received, not handed out yet
};

class LocalListener {
 public:
  // Takes the place of a socket nobody listens on any more; kInUse if somebody does, kAlreadyExists
  // if there is something else of that name. Only users with write permission by `mode` can
  // connect.
  static Result<std::unique_ptr<LocalListener>> Listen(const std::string& directory,
                                                       const std::string& name,
                                                       uint32_t mode = 0600);
  // On an abstract name, of at most 100 bytes; kInUse if another process has it. Any user can
  // connect.
  static Result<std::unique_ptr<LocalListener>> ListenAbstract(const std::string& name);
  // Removes the socket's name. So a listener must end before its successor may begin (before its
  // store is unlocked).
  ~LocalListener();

  // Waits for the next connection; kAborted after Shutdown.
  Result<std::unique_ptr<LocalStream>> Accept();
  // Ends Accept, now and for good.
  void Shutdown();

 private:
  LocalListener(std::string path, std::string name, Descriptor directory, Descriptor fd,
                Descriptor stop)
      : path_(std::move(path)),
        name_(std::move(name)),
        directory_(std::move(directory)),
        fd_(std::move(fd)),
        stop_(std::move(stop)) {}

  const std::string path_;
  const std::string name_;
  const Descriptor directory_;  // not valid for an abstract name
  const Descriptor fd_;
  const Descriptor stop_;  // an eventfd, readable once Shutdown was called
};

}  // namespace siltfs
