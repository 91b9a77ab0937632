// Stream sockets with a name in a directory, for requests between processes on the same machine
// (the control socket of a mounted store). The directory's path may have any length. A socket can
// also have an abstract name, which needs no directory. A socket with such a name can be reached
// even if the disk fails, but only by a process in the same network namespace. Abstract names have
// no permissions; both sides must check PeerUid.
//
// Thread-safety: LocalListener::Shutdown and LocalStream::Shutdown may be called from any thread at
// any time; otherwise a listener is used by one thread at a time, and a stream by one reading and
// one writing thread. Errors: Status with the socket's path. A vanished peer never raises a signal.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

class LocalStream {
 public:
  // Connects to the socket `name` in `directory`. kNotFound if there is none, kStale if it exists
  // but its listener is gone. After other codes it is unknown whether a process listens.
  static Result<std::unique_ptr<LocalStream>> Connect(
      const std::string& directory, const std::string& name,
      std::optional<std::chrono::milliseconds> timeout = std::nullopt);

  // Connects to the socket of this abstract name; kStale if there is none.
  static Result<std::unique_ptr<LocalStream>> ConnectAbstract(
      const std::string& name, std::optional<std::chrono::milliseconds> timeout = std::nullopt);

  LocalStream(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  // From now on, a call fails with kInterrupted if it waits longer than this for the peer. ReadLine
  // counts the time until the line is complete, so a peer that sends byte by byte gains nothing.
  Status SetTimeout(std::chrono::milliseconds timeout);
  // The next line, without its newline; nullopt if the stream ends before the line begins.
  // kFileTooLarge if the line is longer than `limit` bytes, kAborted if the stream ends within the
  // line. After kInterrupted the call can be repeated: received bytes stay in the buffer.
  Result<std::optional<std::string>> ReadLine(size_t limit);
  // All bytes until the peer closes or finishes writing; kFileTooLarge beyond `limit` bytes.
  Result<std::string> ReadAll(size_t limit);
  Status WriteAll(std::string_view text);
  // Receive and send what is possible without more waiting, but at least one byte; they return the
  // number of bytes. 0 from ReadSome: the stream has ended. After kInterrupted no byte was
  // transferred, so the call can be repeated.
  Result<size_t> ReadSome(MutableByteView out);
  Result<size_t> WriteSome(ByteView bytes);
  // Send and receive one message of fixed size, with descriptors. Received descriptors belong to
  // the caller. ReceiveDescriptors returns nullopt at the end of the stream, kInvalidArgument if a
  // message has more than `most` descriptors, and kAborted if the stream ends within
  // the message. Do not call it while a part of a line may be buffered.
  Status SendDescriptors(ByteView message, const std::vector<const Descriptor*>& descriptors);
  struct Message {
    Bytes bytes;
    std::vector<Descriptor> descriptors;
  };
  Result<std::optional<Message>> ReceiveDescriptors(size_t size, size_t most);
  // Ends the peer's ReadAll; this side can still read.
  Status FinishWriting();
  // Ends reading, also in waiting calls. This side can still write.
  void FinishReading();
  // Ends reading and writing, also in waiting calls: reads then find the stream closed, writes
  // fail.
  void Shutdown();
  // Whether the peer has closed the stream, or has ended. A peer that only finished writing has not
  // left. May be called from any thread.
  bool PeerHasLeft() const;
  // Whether the peer has sent bytes that this side has not taken yet. May be called from any thread
  // while none reads.
  bool PeerHasSentMore() const;
  // The user of the peer process when it connected or listened.
  Result<uint32_t> PeerUid() const;
  // The group, and after it the supplementary groups, of the peer process when it connected or
  // listened.
  Result<std::vector<uint32_t>> PeerGroups() const;
  // The peer's process id when it connected or listened; 0 if it has none in this process's
  // namespace.
  Result<int64_t> PeerPid() const;

 private:
  // Appends received bytes to the buffer; returns false at the end of the stream.
  Result<bool> Receive();

  const std::string path_;
  const Descriptor fd_;
  std::string buffer_;  // received, not returned yet
  std::optional<std::chrono::milliseconds> timeout_;
};

class LocalListener {
 public:
  // Listens on the socket `name` in `directory`. Replaces a socket that has no listener. kInUse if
  // another process listens on it, kAlreadyExists if the name belongs to a file that is no socket.
  // Only users with write permission by `mode` can connect.
  static Result<std::unique_ptr<LocalListener>> Listen(const std::string& directory,
                                                       const std::string& name,
                                                       uint32_t mode = 0600);
  // Listens on an abstract name of at most 100 bytes; kInUse if another process uses it. Any user
  // can connect.
  static Result<std::unique_ptr<LocalListener>> ListenAbstract(const std::string& name);
  // Removes the socket's name. So a listener must be destroyed while the store is still locked.
  // Once the store is unlocked, the name may belong to the listener of another process.
  ~LocalListener();

  // Waits for the next connection; kAborted after Shutdown.
  Result<std::unique_ptr<LocalStream>> Accept();
  // Ends Accept permanently.
  void Shutdown();
  // The socket, for a library that accepts connections itself. It does not block.
  int descriptor() const { return fd_.get(); }

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
