#include "tools/import/transfer_connection.h"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "fs/control/protocol.h"

namespace siltfs {
namespace {

// How long the daemon may take for its totals.
constexpr std::chrono::seconds kResultPatience{60};
// After the lanes have failed, the daemon's reason is there at once or not at all.
constexpr std::chrono::milliseconds kReasonPatience{2000};

Bytes MainMessage(char kind) {
  Bytes message(transfer::kMainBytes);
  message[0] = static_cast<uint8_t>(kind);
  return message;
}

}  // namespace

Result<std::unique_ptr<LaneClient>> LaneClient::Make(LocalStream& main) {
  SILTFS_ASSIGN_OR_RETURN(auto pair, PacketSocket::MakePair());
  SILTFS_ASSIGN_OR_RETURN(auto memory, SharedMemory::Make(transfer::kLaneBytes));
  SILTFS_RETURN_IF_ERROR(main.SendDescriptors(MainMessage(transfer::kLaneMessage),
                                              {&pair.other, &memory.descriptor()}));
  return std::unique_ptr<LaneClient>(new LaneClient(std::move(pair.own), std::move(memory)));
}

Status LaneClient::Post(const transfer::Request& request) {
  return socket_->Send(transfer::EncodeRequest(request));
}

Result<transfer::Answer> LaneClient::Await() {
  SILTFS_ASSIGN_OR_RETURN(const Bytes packet, socket_->Receive(transfer::kMaxAnswerBytes));
  return transfer::DecodeAnswer(packet);
}

Result<std::unique_ptr<TransferConnection>> TransferConnection::Open(
    const control::DaemonAddress& address, const std::string& command) {
  SILTFS_ASSIGN_OR_RETURN(control::OpenedSession session, control::OpenSession(address, command));
  const auto version = session.greeting.find("version");
  if (version == session.greeting.end() || *version != transfer::kVersion) {
    return Status(StatusCode::kNeedsNewer,
                  "its daemon is another version of siltfs; mount it again with this one")
        .At(address.mountpoint);
  }
  std::unique_ptr<TransferConnection> connection(
      new TransferConnection(std::move(session.stream), address.mountpoint));
  connection->alive_ = std::thread([raw = connection.get()] { raw->KeepAlive(); });
  return connection;
}

TransferConnection::~TransferConnection() {
  Abort();
  StopKeepingAlive();
}

Result<LaneClient*> TransferConnection::NewLane() {
  auto lane = LaneClient::Make(*stream_);
  if (!lane.ok()) return ReasonFor(std::move(lane).status());
  lanes_.push_back(*std::move(lane));
  return lanes_.back().get();
}

Status TransferConnection::Send(char kind) { return stream_->WriteAll(AsText(MainMessage(kind))); }

void TransferConnection::KeepAlive() {
  const MutexLock lock(mutex_);
  while (!ended_) {
    ended_changed_.WaitFor(mutex_, transfer::kAliveInterval);
    if (ended_) return;
    Send(transfer::kAliveMessage).IgnoreError("the lanes notice the end of the daemon");
  }
}

void TransferConnection::StopKeepingAlive() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    ended_changed_.NotifyAll();
  }
  if (alive_.joinable()) alive_.join();
}

Result<nlohmann::json> TransferConnection::ReadResult() {
  SILTFS_ASSIGN_OR_RETURN(const std::optional<std::string> line,
                          stream_->ReadLine(control::kMaxResponseBytes));
  if (!line) return Status(StatusCode::kAborted, "its daemon ended during the transfer").At(place_);
  return control::DecodeResponse(*line);
}

Result<nlohmann::json> TransferConnection::Finish() {
  StopKeepingAlive();
  const Status sent = Send(transfer::kEndMessage);
  if (!sent.ok()) return ReasonFor(sent);
  SILTFS_RETURN_IF_ERROR(stream_->SetTimeout(kResultPatience));
  return ReadResult();
}

void TransferConnection::Abort() {
  for (const auto& lane : lanes_) lane->Shutdown();
  stream_->FinishWriting().IgnoreError("the daemon has ended the connection");
}

Status TransferConnection::ReasonFor(Status status) {
  if (!status.Is(StatusCode::kAborted) && !status.Is(StatusCode::kIoError)) return status;
  const Status limited = stream_->SetTimeout(kReasonPatience);
  if (!limited.ok()) return status;
  const auto result = ReadResult();
  if (result.ok() || result.status().Is(StatusCode::kInterrupted)) return status;
  return Status(result.status().code(), std::string(result.status().cause())).At(place_);
}

}  // namespace siltfs
