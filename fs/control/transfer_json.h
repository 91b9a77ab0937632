// Sends and receives snapshots on request, and returns the outcome as JSON. Only this code defines
// the keys of `siltfs send --json` and `siltfs receive --json`, a stable interface.
//
//   RunSend        {"snapshot","base","records","chunks","plain_bytes","stream_bytes"}
//   RunReceive     the same without "base"
//   ListUnfinished [{"name","token","running"},...]
//   RunAbandon     the arguments are {"name":N}; {"name":N}
//
// "snapshot" and "base" are names; "base" is null if the whole snapshot was sent. "stream_bytes"
// are those of the stream from the sender to the receiver.
//
// Thread-safety: every call from any thread. Errors: those of SnapshotTransfers, but kAborted
// instead of kNotFound and kInUse, because a missing snapshot is no missing store; kAborted, too,
// if the stream ends early; kInvalidArgument for malformed arguments.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "fs/interface/file_system.h"
#include "fs/interface/kernel_cache.h"
#include "store/base/byte_stream.h"
#include "store/base/result.h"

namespace siltfs {

inline constexpr const char* kUnfinishedCommand = "receive unfinished";
inline constexpr const char* kAbandonCommand = "receive abandon";

struct WantedSend {
  std::string snapshot;
  std::optional<std::string> base = {};
  std::string resume = {};
  bool two_way = false;
  bool operator==(const WantedSend&) const = default;
};

struct WantedReceive {
  std::string name = {};
  bool two_way = false;
  bool operator==(const WantedReceive&) const = default;
};

// `answers` are used in a two-way transfer only, and may be null in others.
Result<nlohmann::json> RunSend(FileSystem& file_system, const WantedSend& wanted, ByteSink& out,
                               ByteSource* answers, const std::function<Status()>& check);
// `cache`: as for RunSnapshotCommand.
Result<nlohmann::json> RunReceive(FileSystem& file_system, KernelCache* cache,
                                  const WantedReceive& wanted, ByteSource& in, ByteSink* answers,
                                  const std::function<Status()>& check);
nlohmann::json ListUnfinished(FileSystem& file_system);
Result<nlohmann::json> RunAbandon(FileSystem& file_system, const nlohmann::json& arguments);

}  // namespace siltfs
