#include "fs/control/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fs/control/protocol.h"
#include "store/env/process.h"

namespace siltfs::control {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

// How long to wait for the end of the daemon's process after the daemon has closed the connection.
// The daemon may have reported its process number from the PID namespace of its container. Then
// another process may have the same number here, so the wait must have a limit.
constexpr std::chrono::seconds kGrace{5};
// The interval between checks whether a daemon that does not answer is stopped or too late.
constexpr std::chrono::milliseconds kSlice{100};

struct Connection {
  std::unique_ptr<LocalStream> stream;
  int64_t pid = 0;  // 0 if the daemon has no number in this PID namespace
};

const std::string& Place(const DaemonAddress& address) {
  return address.mountpoint.empty() ? address.store : address.mountpoint;
}

std::string Named(int64_t pid) { return pid > 0 ? fmt::format(" (process {})", pid) : ""; }

Status Stopped(const DaemonAddress& address, int64_t pid) {
  return Status(StatusCode::kIoError,
                fmt::format("its daemon, process {}, is stopped and does not answer; "
                            "\"kill -CONT {}\" continues it",
                            pid, pid))
      .At(Place(address));
}

Status Silent(const DaemonAddress& address, int64_t pid, std::chrono::milliseconds waited) {
  std::string cause =
      fmt::format("its daemon{} has not answered for {} s; its log may say why", Named(pid),
                  std::chrono::duration_cast<std::chrono::seconds>(waited).count());
  if (pid > 0) {
    cause +=
        fmt::format(", and \"kill -KILL {}\" ends it and loses changes that were not synced", pid);
  }
  return Status(StatusCode::kIoError, std::move(cause)).At(Place(address));
}

Status Ended(const DaemonAddress& address, int64_t pid) {
  return Status(StatusCode::kAborted,
                fmt::format("its daemon{} ended before it answered", Named(pid)))
      .At(Place(address));
}

// Whether the listening process runs as the expected user. This is checked because any user can
// listen on an abstract name.
bool IsTrusted(const LocalStream& stream, const DaemonAddress& address) {
  const auto uid = stream.PeerUid();
  if (!uid.ok()) return false;
  return address.owner ? *uid == *address.owner : *uid == 0 || *uid == CurrentUserId();
}

Result<std::unique_ptr<LocalStream>> ConnectStream(const DaemonAddress& address,
                                                   const Patience& patience) {
  const std::chrono::milliseconds limit = patience.answer.value_or(*Patience().answer);
  auto stream = LocalStream::Connect(address.store, std::string(kSocketName), limit);
  if (stream.ok()) return stream;
  const Status cause = std::move(stream).status();
  if (cause.Is(StatusCode::kInterrupted)) return Silent(address, 0, limit);
  if (cause.Is(StatusCode::kAccessDenied)) {
    return Status(StatusCode::kNotPermitted,
                  "permission denied; only the superuser and the user that mounted the store may "
                  "ask its daemon")
        .At(cause.path());
  }
  if (!address.device.empty()) {
    auto abstract =
        LocalStream::ConnectAbstract(AbstractName(address.store, address.device), limit);
    if (abstract.ok() && IsTrusted(**abstract, address)) return abstract;
    if (abstract.status().Is(StatusCode::kInterrupted)) return Silent(address, 0, limit);
  }
  if (cause.Is(StatusCode::kStale)) {
    const std::string remedy =
        address.mountpoint.empty()
            ? ""
            : fmt::format("; siltfs umount {} removes the mount", address.mountpoint);
    return Status(StatusCode::kStale, "its daemon was killed or crashed" + remedy)
        .At(Place(address));
  }
  if (cause.Is(StatusCode::kNotFound) || cause.Is(StatusCode::kNotADirectory)) {
    return Status(StatusCode::kNotFound, "is not mounted").At(address.store);
  }
  return cause;
}

Result<Connection> Send(const DaemonAddress& address, const Request& request,
                        const Patience& patience) {
  Connection connection;
  SILTFS_ASSIGN_OR_RETURN(connection.stream, ConnectStream(address, patience));
  SILTFS_ASSIGN_OR_RETURN(connection.pid, connection.stream->PeerPid());
  const Status sent = connection.stream->WriteAll(EncodeRequest(request));
  if (!sent.ok()) return Ended(address, connection.pid);
  return connection;
}

// Returns the next line; nullopt if the daemon has closed the connection.
Result<std::optional<std::string>> ReadPatiently(LocalStream& stream, int64_t pid,
                                                 const DaemonAddress& address,
                                                 const Patience& patience) {
  SILTFS_RETURN_IF_ERROR(stream.SetTimeout(kSlice));
  const Clock::time_point begin = Clock::now();
  Clock::time_point ran_last = begin;
  Clock::time_point noticed = begin;
  std::optional<Clock::time_point> unwanted;
  while (true) {
    auto line = stream.ReadLine(kMaxResponseBytes);
    if (line.ok() || !line.status().Is(StatusCode::kInterrupted)) return line;
    const Clock::time_point now = Clock::now();
    if (!unwanted && patience.interrupted && patience.interrupted()) {
      unwanted = now;
      stream.WriteAll(kStop).IgnoreError("the daemon has ended the connection");
    }
    if (unwanted && now - *unwanted >= patience.unwanted) {
      return Status(StatusCode::kInterrupted, "was interrupted; " + patience.afterwards)
          .At(Place(address));
    }
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - begin);
    if (pid <= 0 || StateOfProcess(pid) != ProcessState::kStopped) ran_last = now;
    if (now - ran_last >= patience.stopped) return Stopped(address, pid);
    if (patience.answer && waited >= *patience.answer) return Silent(address, pid, waited);
    if (patience.notice && now - noticed >= patience.notice_interval) {
      noticed = now;
      patience.notice(
          fmt::format("{}: still waiting for its daemon{}", Place(address), Named(pid)));
    }
  }
}

Result<Json> Receive(const Connection& connection, const DaemonAddress& address,
                     const Patience& patience) {
  SILTFS_ASSIGN_OR_RETURN(const std::optional<std::string> line,
                          ReadPatiently(*connection.stream, connection.pid, address, patience));
  if (!line) return Ended(address, connection.pid);
  return DecodeResponse(*line);
}

// The text of this key; empty if there is none.
std::string TextOf(const Json& json, const char* key) {
  if (!json.is_object()) return "";
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<std::vector<ServedMount>> MountsOf(const Json& identity) {
  const auto found = identity.find("mounts");
  if (found == identity.end() || !found->is_array()) return std::nullopt;
  std::vector<ServedMount> mounts;
  for (const Json& mount : *found) {
    mounts.push_back({.mountpoint = TextOf(mount, "mountpoint"),
                      .device = TextOf(mount, "device"),
                      .snapshot = TextOf(mount, "snapshot")});
  }
  return mounts;
}

Result<Identity> ToIdentity(const Json& json, int64_t pid, const DaemonAddress& address) {
  const auto own_pid = json.is_object() ? json.find("pid") : json.end();
  if (own_pid == json.end() || !own_pid->is_number_integer()) {
    return Status(StatusCode::kCorruption, "the daemon's answer is not understood")
        .At(Place(address));
  }
  return Identity{.pid = pid > 0 ? pid : own_pid->get<int64_t>(),
                  .mountpoint = TextOf(json, "mountpoint"),
                  .state = TextOf(json, "state"),
                  .mounts = MountsOf(json)};
}

}  // namespace

bool IsGone(const Status& status) {
  return status.Is(StatusCode::kNotFound) || status.Is(StatusCode::kStale) ||
         status.Is(StatusCode::kAborted);
}

Result<Json> Ask(const DaemonAddress& address, const std::string& command,
                 const Patience& patience) {
  return AskWith(address, {.command = command}, patience);
}

Result<Json> AskWith(const DaemonAddress& address, const Request& request,
                     const Patience& patience) {
  SILTFS_ASSIGN_OR_RETURN(const Connection connection, Send(address, request, patience));
  return Receive(connection, address, patience);
}

Result<Identity> Identify(const DaemonAddress& address, const Patience& patience) {
  SILTFS_ASSIGN_OR_RETURN(const Connection connection,
                          Send(address, {.command = "identity"}, patience));
  SILTFS_ASSIGN_OR_RETURN(const Json answer, Receive(connection, address, patience));
  return ToIdentity(answer, connection.pid, address);
}

Result<OpenedSession> OpenSession(const DaemonAddress& address, const std::string& command,
                                  const Patience& patience) {
  Request request{.command = command};
  if (!address.device.empty()) request.arguments = {{"device", address.device}};
  SILTFS_ASSIGN_OR_RETURN(Connection connection, Send(address, request, patience));
  SILTFS_ASSIGN_OR_RETURN(Json greeting, Receive(connection, address, patience));
  return OpenedSession{std::move(connection.stream), std::move(greeting)};
}

Result<Waiter> Waiter::Register(const DaemonAddress& address, const Patience& patience) {
  SILTFS_ASSIGN_OR_RETURN(Connection connection, Send(address, {.command = "wait"}, patience));
  SILTFS_ASSIGN_OR_RETURN(const Json answer, Receive(connection, address, patience));
  SILTFS_ASSIGN_OR_RETURN(Identity identity, ToIdentity(answer, connection.pid, address));
  return Waiter(address, std::move(connection.stream), std::move(identity));
}

Status Waiter::Wait(const Patience& patience) {
  const auto died = [&] {
    return Status(
               StatusCode::kAborted,
               fmt::format("its daemon{} was killed or crashed before it closed the store; changes "
                           "that were not synced are lost, and the next mount recovers the rest",
                           Named(identity_.pid)))
        .At(Place(address_));
  };
  const auto outcome = ReadPatiently(*stream_, identity_.pid, address_, patience);
  if (!outcome.ok()) return outcome.status();
  if (!*outcome) {
    ended_ = true;
    return died();
  }
  // The daemon sends nothing more, and the connection closes when the daemon ends.
  const auto end = ReadPatiently(*stream_, identity_.pid, address_, patience);
  if (!end.ok()) return end.status();
  ended_ = true;
  if (identity_.pid != CurrentProcessId()) WaitForProcessEnd(identity_.pid, kGrace);
  return DecodeResponse(**outcome).status();
}

}  // namespace siltfs::control
