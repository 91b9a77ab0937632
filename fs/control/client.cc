#include "fs/control/client.h"

#include "fs/control/protocol.h"
#include "store/env/process.h"

namespace siltfs::control {
namespace {

using Json = nlohmann::json;

// For a daemon that has hung up to be gone. (A longer wait would be for another process: that of
// its number in another container.)
constexpr std::chrono::seconds kGrace{5};

Result<std::unique_ptr<LocalStream>> Send(const std::string& store, const std::string& command) {
  auto stream = LocalStream::Connect(store, std::string(kSocketName));
  if (!stream.ok()) {
    // A socket that nobody listens on was left by a daemon that died.
    if (stream.status().Is(StatusCode::kIoError))
      return Status(StatusCode::kNotFound, "is not mounted").At(store);
    return std::move(stream).status();
  }
  SILTFS_RETURN_IF_ERROR((*stream)->WriteAll(EncodeRequest({.command = command})));
  return stream;
}

Result<Json> Receive(LocalStream& stream, const std::string& store) {
  SILTFS_ASSIGN_OR_RETURN(const std::optional<std::string> line,
                          stream.ReadLine(kMaxResponseBytes));
  if (!line) return Status(StatusCode::kAborted, "the daemon ended before it answered").At(store);
  return DecodeResponse(*line);
}

}  // namespace

Result<Json> Ask(const std::string& store, const std::string& command) {
  SILTFS_ASSIGN_OR_RETURN(const auto stream, Send(store, command));
  return Receive(*stream, store);
}

Result<Waiter> Waiter::Register(const std::string& store) {
  SILTFS_ASSIGN_OR_RETURN(auto stream, Send(store, "wait"));
  SILTFS_ASSIGN_OR_RETURN(const Json identity, Receive(*stream, store));
  const auto pid = identity.is_object() ? identity.find("pid") : identity.end();
  if (pid == identity.end() || !pid->is_number_integer()) {
    return Status(StatusCode::kCorruption, "the daemon's answer is not understood").At(store);
  }
  return Waiter(std::move(stream), pid->get<int64_t>());
}

Status Waiter::Wait() {
  const auto outcome = stream_->ReadLine(kMaxResponseBytes);
  if (!outcome.ok()) return outcome.status();
  stream_->ReadLine(kMaxResponseBytes)
      .status()
      .IgnoreError("only the end of the connection counts: the daemon's");
  WaitForProcessEnd(pid_, kGrace);
  if (!*outcome) {
    return {StatusCode::kAborted, "the daemon died before it had closed the store"};
  }
  return DecodeResponse(**outcome).status();
}

}  // namespace siltfs::control
