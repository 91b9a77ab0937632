// The protocol between `siltfs` and the daemon of a mounted store.
//
// The daemon listens on the Unix socket "control" in the store directory (mode 0600). It also
// listens on a socket with an abstract name (AbstractName), for clients that cannot reach this
// directory. It answers only the superuser and the user that it runs as. A client sends one line
// of JSON and gets one line of JSON back; then the connection ends.
//
// clang-format off
//   command                 "result" in the answer {"ok":true,"result":...}
//   "stat"                  the statistics; keys as in stats_json.h
//   "activity"              the counters of what the store is doing; keys as in activity_json.h.
//                           Cheap, so a client may ask every second
//   "index stat"            the index's statistics, store by store; keys as in index_json.h
//   "settle"                the totals, sent after all segments that await recompression were
//                           recompressed; keys as in recompression_json.h. Takes long. During the
//                           command the daemon answers other requests. An unmount interrupts the
//                           command, and so does a client that leaves, or sends the line "stop"
//                           after its request
//   "gc"                    the totals, sent after unreferenced data was freed; keys as in
//                           gc_json.h. Takes long, like "settle"
//   "gc dry run"            the totals that "gc" would probably send. Takes long, like "settle"
//   "scrub"                 the findings, sent after all stored data was verified; keys as in
//                           scrub_json.h. Takes long, like "settle"
//   "scrub stop"            null, at once; the running "scrub" is interrupted
//   "snapshot progress"     {"step":"...","done":N,"total":N}: what the command "snapshot" that runs
//                           has done. The step is empty if none runs, the total 0 if not known
//   "quota progress"        {"counted":N}: the inodes that the command "quota" has counted
//   "sync"                  null, sent when certain changes are durable: those that the daemon had
//                           received before the command, and those that the kernel was sending at
//                           that time. The kernel may hold more changes. A client that needs them
//                           durable, too, calls syncfs(2) on the mount first
//   "identity"              {"pid":N,"mountpoint":"...","state":"...","mounts":[...]}, at once. The
//                           state is "starting" or "mounted", or "closing" after the store was
//                           unmounted everywhere. "mounts" has {"mountpoint":"...","device":"0:53",
//                           "snapshot":"..."} for each mount that the daemon serves; the snapshot is
//                           empty for the live files. "mountpoint" is that of the first one
//   "wait"                  the answer to "identity", at once. After the store was closed and
//                           unlocked, a second line: {"ok":true,"result":null}, or the failure.
//                           After this line the connection stays open until the daemon ends
//   "import"                {"version":1}, at once. Then the client sends messages over the same
//                           connection (fs/transfer/lane_message.h). At the end a second line: the
//                           totals, or the failure
//   "snapshot"              the outcome; keys and arguments as in snapshot_json.h. May take long. A
//                           client interrupts the count of sizes as it interrupts "settle"
//   "quota"                 the quota, or quotas; keys as in quota_json.h. May take long, and is
//                           interrupted like "settle"
//   "snapshot diff"         {"version":1}, at once. Then as in diff_session.h
//   "report"                {"version":1}, at once. Then as in survey_session.h
//   "send", "receive"       {"version":1}, at once. Then as in transfer_session.h
//   "receive unfinished"    the list of transfers that ended early; keys as in transfer_json.h
//   "receive abandon"       the discarded transfer; keys and arguments as in transfer_json.h
//   "export"                as "import"
//   "clone"                 as "import", with other messages (fs/clone/clone_message.h)
//   "usage"                 as "import", with other messages (fs/usage/usage_message.h)
//   "attach"                as "import", with other messages (fs/attach/attach_message.h)
//   "mount"                 as "import", with other messages (fs/attach/mount_receiver.h)
//   any other               none: {"ok":false,"code":"invalid argument","error":"..."}
// clang-format on
//
// A request is {"command":"..."}, with "arguments" for a command that has some. Those of "import",
// "export", "clone" and "usage" are {"device":"0:53"}, the mount that the client's inode numbers
// belong to. Without arguments they belong to the mount that the daemon has made itself. While the
// store is being closed, the daemon answers only "identity" and "wait"; other commands fail with
// "aborted". The answer to a failed command contains the name of its StatusCode and one sentence.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "store/base/result.h"

namespace siltfs::control {

inline constexpr std::string_view kSocketName = "control";
inline constexpr std::string_view kStop = "stop\n";
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
  nlohmann::json arguments = {};  // an object, or null if the command has no arguments
};

std::string EncodeRequest(const Request& request);  // with the newline
// kInvalidArgument if `line` is not a request.
Result<Request> DecodeRequest(std::string_view line);

std::string EncodeResponse(const Result<nlohmann::json>& result);  // with the newline
// The result, or the failure that the daemon reported; kCorruption if `line` is not a response.
Result<nlohmann::json> DecodeResponse(std::string_view line);

}  // namespace siltfs::control
