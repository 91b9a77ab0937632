// The protocol between `siltfs` and the daemon of a mounted store.
//
// The daemon listens on the Unix socket "control" in the store directory (mode 0600), and on a
// socket with an abstract name (AbstractName), in case that directory cannot be reached. It answers
// only the superuser and the user the daemon runs as. A client sends one line of JSON and gets one
// line of JSON back; then the connection ends.
//
// clang-format off
//   command                 "result" in the answer {"ok":true,"result":...}
//   "stat"                  the statistics; keys as in stats_json.h
//   "index stat"            the index's statistics, store by store; keys as in index_json.h
//   "settle"                the totals, when all waiting segments were recompressed; keys as in
//                           recompression_json.h. Takes long; other requests are answered
//                           meanwhile, and an unmount ends it
//   "gc", "gc dry run"      the totals, when unreferenced data was freed, or counted; keys as in
//                           gc_json.h. Takes long, like "settle"
//   "sync"                  null, when all accepted changes are durable, also those that were being
//                           sent (syncfs(2) on the mount makes the kernel send its changes)
//   "identity"              {"pid":N,"mountpoint":"...","state":"..."}, at once. The state is
//                           "starting", "mounted", or "closing" once it is unmounted everywhere
//   "wait"                  at once the answer to "identity"; a second line
//                           {"ok":true,"result":null} when the store was closed and unlocked. The
//                           connection then stays open until the daemon ends
//   any other               none: {"ok":false,"code":"invalid argument","error":"..."}
// clang-format on
//
// A request is {"command":"..."}. While the store is being closed only "identity" and "wait" are
// answered; other commands fail with "aborted". A failure carries the name of its StatusCode and
// one sentence.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "store/base/result.h"

namespace siltfs::control {

inline constexpr std::string_view kSocketName = "control";
inline constexpr size_t kMaxRequestBytes = 4096;
inline constexpr size_t kMaxResponseBytes = 16 << 20;

inline constexpr std::string_view kStarting = "starting";
inline constexpr std::string_view kMounted = "mounted";
inline constexpr std::string_view kClosing = "closing";

// The abstract socket name of the daemon that has `store` mounted as `device` ("0:53", from the
// mount table).
std::string AbstractName(const std::string& store, const std::string& device);

struct Request {
  std::string command;
};

std::string EncodeRequest(const Request& request);  // with the newline
// kInvalidArgument if `line` is not a request.
Result<Request> DecodeRequest(std::string_view line);

std::string EncodeResponse(const Result<nlohmann::json>& result);  // with the newline
// The result, or the failure that the daemon reported; kCorruption if `line` is not a response.
Result<nlohmann::json> DecodeResponse(std::string_view line);

}  // namespace siltfs::control
