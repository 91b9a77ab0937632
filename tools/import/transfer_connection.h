// The client's side of a transfer (fs/transfer/lane_message.h): the connection to the daemon, which
// a thread keeps alive, and its lanes.
//
// Thread-safety: NewLane, Finish and the destructor from one thread; Abort from any thread; a lane
// belongs to one thread. Ownership: the lanes must not be used after the connection is destroyed.
// Errors: kAborted, with the daemon's reason if it has sent one, if the daemon ends the transfer;
// those of control::OpenSession.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

#include "fs/control/client.h"
#include "fs/transfer/lane_message.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/local_socket.h"
#include "store/env/packet_socket.h"
#include "store/env/shared_memory.h"

namespace siltfs {

// One lane. Requests may be posted before earlier ones are answered; answers come in order.
class LaneClient {
 public:
  static Result<std::unique_ptr<LaneClient>> Make(LocalStream& main);

  MutableByteView slot(size_t number) const {
    return memory_.bytes().subspan(number * transfer::kSlotBytes, transfer::kSlotBytes);
  }
  Status Post(const transfer::Request& request);
  // The answer to the oldest request that is not answered. A failure of the request is in it.
  Result<transfer::Answer> Await();
  void Shutdown() { socket_->Shutdown(); }

 private:
  LaneClient(std::unique_ptr<PacketSocket> socket, SharedMemory memory)
      : socket_(std::move(socket)), memory_(std::move(memory)) {}

  const std::unique_ptr<PacketSocket> socket_;
  const SharedMemory memory_;
};

class TransferConnection {
 public:
  static Result<std::unique_ptr<TransferConnection>> Open(const control::DaemonAddress& address,
                                                          const std::string& command);
  ~TransferConnection();

  Result<LaneClient*> NewLane();
  // Ends the transfer, and returns the daemon's totals. The lanes have no unanswered requests.
  Result<nlohmann::json> Finish();
  // Makes all calls fail from now on, also those that wait.
  void Abort();
  // Why the daemon has ended the transfer: its own reason if it has sent one, otherwise `status`.
  Status ReasonFor(Status status);

 private:
  TransferConnection(std::unique_ptr<LocalStream> stream, std::string place)
      : stream_(std::move(stream)), place_(std::move(place)) {}

  Status Send(char kind);
  void KeepAlive();
  void StopKeepingAlive();
  Result<nlohmann::json> ReadResult();

  const std::unique_ptr<LocalStream> stream_;
  const std::string place_;
  std::list<std::unique_ptr<LaneClient>> lanes_;
  Mutex mutex_;
  CondVar ended_changed_;
  bool ended_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread alive_;
};

}  // namespace siltfs
