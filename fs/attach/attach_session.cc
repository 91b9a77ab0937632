#include "fs/attach/attach_session.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "fs/attach/attach_message.h"
#include "fs/control/protocol.h"
#include "fs/interface/snapshots.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

// How long the client may take for its next message. It runs fusermount3 meanwhile.
constexpr std::chrono::seconds kPatience{30};

Status Left() {
  return {StatusCode::kInterrupted, "the client has left or was silent for too long"};
}

// kInterrupted if the client has left or is silent.
template <typename T>
Result<T> FromClient(Result<std::optional<T>> received) {
  if (received.status().Is(StatusCode::kInterrupted) || received.status().Is(StatusCode::kAborted))
    return Left();
  SILTFS_RETURN_IF_ERROR(received.status());
  if (!*received) return Left();
  return **std::move(received);
}

}  // namespace

Result<Json> ServeAttach(FileSystem& file_system, AttachedMounts& mounts, LocalStream& stream,
                         const std::function<bool()>& stopped) {
  SILTFS_RETURN_IF_ERROR(stream.SetTimeout(kPatience));
  SILTFS_ASSIGN_OR_RETURN(const std::string line,
                          FromClient(stream.ReadLine(attach::kMaxLineBytes)));
  SILTFS_ASSIGN_OR_RETURN(const attach::Wanted wanted, attach::DecodeWanted(line));
  SILTFS_RETURN_IF_ERROR(mounts.CheckRoom());
  // From here on the snapshot cannot be deleted.
  SILTFS_ASSIGN_OR_RETURN(std::unique_ptr<FileSystem> shown,
                          file_system.snapshots().Show(wanted.snapshot));
  SILTFS_RETURN_IF_ERROR(stream.WriteAll(control::EncodeResponse(Json())));

  SILTFS_ASSIGN_OR_RETURN(LocalStream::Message message,
                          FromClient(stream.ReceiveDescriptors(attach::kMountBytes, 1)));
  if (stopped()) return Status(StatusCode::kAborted, "the store is being closed");
  SILTFS_ASSIGN_OR_RETURN(const uint64_t device, attach::DecodeDevice(message.bytes));
  if (message.descriptors.size() != 1)
    return Status(StatusCode::kInvalidArgument, "the client sent no connection of a mount");
  SILTFS_RETURN_IF_ERROR(mounts.Add(
      {.mount = {.mountpoint = wanted.mountpoint, .device = device, .snapshot = wanted.snapshot},
       .shown = std::move(shown),
       .connection = std::move(message.descriptors[0]),
       .no_xattrs = !wanted.xattrs,
       .max_read = wanted.max_read,
       .owners = wanted.owners},
      stopped));
  return Json();
}

}  // namespace siltfs
