#include "fs/transfer/lane_session.h"

#include <algorithm>
#include <list>
#include <system_error>
#include <thread>
#include <utility>

#include "store/env/packet_socket.h"
#include "store/env/shared_memory.h"

namespace siltfs::transfer {
namespace {

class Lane {
 public:
  static Result<std::unique_ptr<Lane>> Start(LocalStream::Message message,
                                             std::unique_ptr<LaneHandler> handler) {
    if (message.descriptors.size() != 2)
      return Status(StatusCode::kInvalidArgument, "a lane needs a socket and memory");
    SILTFS_ASSIGN_OR_RETURN(auto socket, PacketSocket::Adopt(std::move(message.descriptors[0])));
    SILTFS_ASSIGN_OR_RETURN(SharedMemory memory,
                            SharedMemory::Adopt(message.descriptors[1], kLaneBytes, kLaneBytes));
    std::unique_ptr<Lane> lane(new Lane(std::move(socket), std::move(memory), std::move(handler)));
    try {
      lane->thread_ = std::thread([raw = lane.get()] { raw->Serve(); });
    } catch (const std::system_error&) {
      return Status(StatusCode::kIoError, "no thread is available; try again later");
    }
    return lane;
  }
  // Returns when the running request is answered.
  ~Lane() {
    socket_->Shutdown();
    if (thread_.joinable()) thread_.join();
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

 private:
  Lane(std::unique_ptr<PacketSocket> socket, SharedMemory memory,
       std::unique_ptr<LaneHandler> handler)
      : socket_(std::move(socket)), memory_(std::move(memory)), handler_(std::move(handler)) {}

  void Serve() {
    while (true) {
      const auto packet = socket_->Receive(kRequestBytes);
      if (!packet.ok()) break;  // the client has closed the lane, or the session ends
      const auto request = DecodeRequest(*packet);
      Answer answer;
      if (request.ok()) {
        const auto slot = memory_.bytes().subspan(request->slot * kSlotBytes, kSlotBytes);
        answer = handler_->Handle(*request, slot);
      } else {
        answer = FailureAnswer(request.status());
      }
      if (!socket_->Send(EncodeAnswer(answer)).ok()) break;
    }
    handler_.reset();  // on this thread, so that what the client left is gone when the lane is
    socket_->Shutdown();
  }

  const std::unique_ptr<PacketSocket> socket_;
  const SharedMemory memory_;
  std::unique_ptr<LaneHandler> handler_;  // used by thread_ only
  std::thread thread_;
};

}  // namespace

Status RunLanes(LocalStream& stream, const MakeLaneHandler& make_handler,
                const std::function<bool()>& stopped, std::chrono::milliseconds alive_limit) {
  SILTFS_RETURN_IF_ERROR(stream.SetTimeout(alive_limit));
  std::list<std::unique_ptr<Lane>> lanes;
  while (true) {
    auto message = stream.ReceiveDescriptors(kMainBytes, 2);
    if (stopped()) return {StatusCode::kAborted, "the store is being closed"};
    if (message.status().Is(StatusCode::kInterrupted))
      return {StatusCode::kAborted, "the client was silent for too long"};
    SILTFS_RETURN_IF_ERROR(message.status());
    if (!*message) return {StatusCode::kAborted, "the client has left"};
    const char kind = static_cast<char>((*message)->bytes[0]);
    if (kind == kEndMessage) break;
    if (kind == kAliveMessage) continue;
    if (kind != kLaneMessage || lanes.size() == kMaxLanes)
      return {StatusCode::kInvalidArgument, "the client's message is not understood"};
    SILTFS_ASSIGN_OR_RETURN(auto lane, Lane::Start(*std::move(*message), make_handler()));
    lanes.push_back(std::move(lane));
  }
  lanes.clear();
  return Status::Ok();
}

}  // namespace siltfs::transfer
