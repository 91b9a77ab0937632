// The daemon's side of a transfer: accepts the lanes of one client, and serves each of them on a
// thread of its own (lane_message.h).
//
// Thread-safety: RunLanes runs on the thread of the client's connection, and returns when all lanes
// have ended. `stopped` may be called from any thread. Lifetime: the handlers are made and
// destroyed during the call; each one is used by one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "fs/transfer/lane_message.h"
#include "store/base/bytes.h"
#include "store/base/status.h"
#include "store/env/local_socket.h"

namespace siltfs::transfer {

// Answers the requests of one lane.
class LaneHandler {
 public:
  virtual ~LaneHandler() = default;
  // `slot` is the whole slot of the request, in shared memory: the client may change it at any
  // time.
  virtual Answer Handle(const Request& request, MutableByteView slot) = 0;
};
using MakeLaneHandler = std::function<std::unique_ptr<LaneHandler>()>;

// Returns OK when the client has sent the end and all requests are answered. kAborted if the client
// has left, was silent for `alive_limit`, or if `stopped` returns true; kInvalidArgument if the
// client does not follow the protocol. When the owner of the stream wants the transfer to end, it
// makes `stopped` true and then calls LocalStream::FinishReading.
Status RunLanes(LocalStream& stream, const MakeLaneHandler& make_handler,
                const std::function<bool()>& stopped,
                std::chrono::milliseconds alive_limit = kAliveLimit);

}  // namespace siltfs::transfer
