// How `siltfs` talks to the daemon of a mounted store.
//
// The daemon listens on the Unix socket "control" in the store directory (mode 0600), and on a
// socket with an abstract name (AbstractName) for the time when that directory cannot be reached;
// only the superuser and the user the daemon runs as are answered. A client sends one line of JSON
// and gets one line of JSON back; then the connection ends.
//
//   {"command":"stat"}  ->  {"ok":true,"result":{...}}   the figures, keys as in stats_json.h
//   {"command":"index stat"}  ->  {"ok":true,"result":{...}}  those of index_json.h, store by store
//   {"command":"settle"}  ->  {"ok":true,"result":{...}}  when all that awaits it was recompressed;
//   keys as in settle_json.h. Takes long; others are answered meanwhile, and an unmount ends it
//   {"command":"gc"}, {"command":"gc dry run"}  ->  {"ok":true,"result":{...}}  when what nothing
//   refers to was given back, or counted; keys as in gc_json.h. As settle
//   {"command":"sync"}  ->  {"ok":true,"result":null}    everything accepted so far is durable, and
//   what the kernel was sending (syncfs(2) of the mount makes the kernel send what it holds)
//   {"command":"identity"}  ->  {"ok":true,"result":{"pid":N,"mountpoint":"...","state":"..."}} at
//   once; the state is "starting", "mounted", or "closing" from the moment it is unmounted
//   everywhere
//   {"command":"wait"}  ->  the same at once, and a second line
//                           {"ok":true,"result":null} when the store was closed and unlocked; the
//                           connection then stays open until the daemon ends
//   anything else       ->  {"ok":false,"code":"invalid argument","error":"..."}
//
// While the store is being closed only the last two are answered; the others fail with "aborted".
// A failure carries the name of its StatusCode and one sentence.
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

// Where the daemon that has `store` mounted as `device` ("0:53", as the mount table has it) listens
// besides.
std::string AbstractName(const std::string& store, const std::string& device);

struct Request {
  std::string command;
};

std::string EncodeRequest(const Request& request);  // with the newline
// kInvalidArgument for whatever is not a request.
Result<Request> DecodeRequest(std::string_view line);

std::string EncodeResponse(const Result<nlohmann::json>& result);  // with the newline
// The result, or the failure that the daemon reported; kCorruption for whatever is not a response.
Result<nlohmann::json> DecodeResponse(std::string_view line);

}  // namespace siltfs::control
