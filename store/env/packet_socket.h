// A connected pair of sockets that keep the boundaries of messages (packets). One process makes the
// pair and passes one end to another process (LocalStream::SendDescriptors).
//
// Thread-safety: Shutdown from any thread at any time; otherwise one sending and one receiving
// thread. Errors: Status with the cause. A vanished peer never raises a signal.
#pragma once

#include <memory>
#include <utility>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

class PacketSocket {
 public:
  struct Pair {
    std::unique_ptr<PacketSocket> own;
    Descriptor other;
  };
  static Result<Pair> MakePair();
  // kInvalidArgument if the descriptor is no socket for packets.
  static Result<std::unique_ptr<PacketSocket>> Adopt(Descriptor fd);

  explicit PacketSocket(Descriptor fd) : fd_(std::move(fd)) {}

  // kAborted if the peer has closed its end.
  Status Send(ByteView packet);
  // The next packet. kAborted if the peer has closed its end, or after Shutdown. kInvalidArgument
  // if the packet is longer than `limit` bytes.
  Result<Bytes> Receive(size_t limit);
  // Ends sending and receiving, also in waiting calls.
  void Shutdown();

 private:
  const Descriptor fd_;
};

}  // namespace siltfs
