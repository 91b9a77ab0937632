// The sessions "send" and "receive" (protocol.h).
//
// The client sends one line:
//
//   "send"     {"snapshot":NAME,"base":NAME,"resume":TOKEN,"two_way":B}; "base" and "resume" may be
//              left out
//   "receive"  {"name":NAME,"two_way":B}; "name" may be left out
//
// Then both sides send pieces (byte_pieces.h): the sender of a snapshot its stream, the receiver of
// a two-way transfer its answers. The daemon's last piece says that the result follows. The client
// answers with its last piece, so that no piece is on the way when the daemon sends the result
// (transfer_json.h), or the failure.
//
// A client that leaves, or that finishes writing before its last piece, ends the transfer.
//
// Thread-safety: pure functions, and every call from any thread. Errors: those of
// fs/control/transfer_json.h; kInvalidArgument for lines that are no such messages.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "fs/control/transfer_json.h"
#include "fs/interface/file_system.h"
#include "fs/interface/kernel_cache.h"
#include "store/base/result.h"
#include "store/env/local_socket.h"
#include "store/env/piped_streams.h"

namespace siltfs {

inline constexpr const char* kSendSession = "send";
inline constexpr const char* kReceiveSession = "receive";
inline constexpr uint64_t kTransferVersion = 1;
inline constexpr size_t kMaxTransferRequestBytes = 16384;

// Lines without the newline.
std::string EncodeWantedSend(const WantedSend& wanted);  // the texts must be UTF-8
Result<WantedSend> DecodeWantedSend(std::string_view line);
std::string EncodeWantedReceive(const WantedReceive& wanted);
Result<WantedReceive> DecodeWantedReceive(std::string_view line);

Result<nlohmann::json> ServeSend(FileSystem& file_system, LocalStream& stream,
                                 const std::function<bool()>& stopped);
Result<nlohmann::json> ServeReceive(FileSystem& file_system, KernelCache* cache,
                                    LocalStream& stream, const std::function<bool()>& stopped);

// The client's side, after the greeting. Return the result. `check` is called at intervals; if it
// fails, the transfer ends, and the failure is returned. SendThrough writes the stream to the
// output of `pipes`, ReceiveThrough reads it from the input. In a two-way transfer the answers
// take the other one.
Result<nlohmann::json> SendThrough(LocalStream& stream, const WantedSend& wanted,
                                   PipedStreams& pipes, const std::function<Status()>& check);
Result<nlohmann::json> ReceiveThrough(LocalStream& stream, const WantedReceive& wanted,
                                      PipedStreams& pipes, const std::function<Status()>& check);

}  // namespace siltfs
