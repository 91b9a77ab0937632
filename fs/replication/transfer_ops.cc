#include "fs/replication/transfer_ops.h"

namespace siltfs {

Result<SendOutcome> TransferOps::Send(const SendRequest&, ByteSink&,
                                      const std::function<Status()>&) {
  return Status(StatusCode::kUnsupported, "snapshots cannot be sent yet");
}

Result<ReceiveOutcome> TransferOps::Receive(const ReceiveRequest&, ByteSource&,
                                            const std::function<Status()>&) {
  return Status(StatusCode::kUnsupported, "snapshots cannot be received yet");
}

std::vector<UnfinishedReceive> TransferOps::Unfinished() const { return {}; }

Status TransferOps::Abandon(std::string_view) {
  return {StatusCode::kNotFound, "there is no unfinished transfer"};
}

}  // namespace siltfs
