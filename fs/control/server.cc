#include "fs/control/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <system_error>

#include "fs/control/protocol.h"

namespace siltfs::control {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kIdentity = "identity";
constexpr std::string_view kWait = "wait";
constexpr std::chrono::milliseconds kRetryAfter{100};

Status CheckCaller(const LocalStream& stream, uint32_t own_uid) {
  SILTFS_ASSIGN_OR_RETURN(const uint32_t uid, stream.PeerUid());
  if (uid == 0 || uid == own_uid) return {};
  return {StatusCode::kNotPermitted,
          "only the superuser and the owner of the mount may control it"};
}

Status TooMany() { return {StatusCode::kInUse, "too many requests at once"}; }

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  std::unique_ptr<LocalListener> listener;
  if (!options.store.empty()) {
    SILTFS_ASSIGN_OR_RETURN(listener,
                            LocalListener::Listen(options.store, std::string(kSocketName)));
  }
  std::unique_ptr<Server> server(new Server(std::move(options)));
  if (listener) server->Open("", std::move(listener));
  return server;
}

Server::~Server() { Stop(); }

Status Server::ListenAbstract(const std::string& name) {
  SILTFS_ASSIGN_OR_RETURN(auto listener, LocalListener::ListenAbstract(name));
  Open(name, std::move(listener));
  return Status::Ok();
}

void Server::Open(std::string name, std::unique_ptr<LocalListener> listener) {
  const MutexLock lock(entrances_mutex_);
  Entrance& entrance = entrances_.emplace_back();
  entrance.name = std::move(name);
  entrance.listener = std::move(listener);
  entrance.acceptor = std::thread([this, raw = entrance.listener.get()] { AcceptLoop(*raw); });
}

void Server::StopListening(const std::string& name) {
  std::list<Entrance> shut;
  {
    const MutexLock lock(entrances_mutex_);
    for (auto entrance = entrances_.begin(); entrance != entrances_.end();) {
      const auto next = std::next(entrance);
      if (entrance->name == name) shut.splice(shut.end(), entrances_, entrance);
      entrance = next;
    }
  }
  for (Entrance& entrance : shut) Shut(entrance);
}

void Server::Shut(Entrance& entrance) {
  entrance.listener->Shutdown();
  entrance.acceptor.join();
}

void Server::StopCommands() {
  const MutexLock lock(mutex_);
  commands_stopped_ = true;
  EndSessions();
  while (AnyIn(Phase::kRunning)) phase_changed_.Wait(mutex_);
}

void Server::Stop() {
  std::list<Entrance> shut;  // destroyed, with the names of the sockets, when all are answered
  {
    const MutexLock lock(entrances_mutex_);
    shut.swap(entrances_);
  }
  for (Entrance& entrance : shut) Shut(entrance);
  {
    const MutexLock lock(mutex_);
    CutOff(Phase::kReading);
    commands_stopped_ = true;
    EndSessions();
    while (AnyIn(Phase::kRunning)) phase_changed_.Wait(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (AnyIn(Phase::kWriting) && std::chrono::steady_clock::now() < deadline) {
      phase_changed_.WaitFor(mutex_, deadline - std::chrono::steady_clock::now());
    }
    CutOff(Phase::kWriting);
    while (Sweep() > 0) phase_changed_.Wait(mutex_);
  }
}

void Server::AnswerWaiters(const Status& outcome) {
  const Result<Json> result = outcome.ok() ? Result<Json>(Json()) : Result<Json>(outcome);
  const std::string line = EncodeResponse(result);
  const MutexLock lock(mutex_);
  for (const auto& waiter : waiters_) waiter->WriteAll(line).IgnoreError("the client has left");
}

void Server::AcceptLoop(LocalListener& listener) {
  while (true) {
    auto stream = listener.Accept();
    if (stream.ok()) {
      Admit(std::move(*stream));
    } else if (stream.status().Is(StatusCode::kAborted)) {
      return;
    } else {  // for example, no descriptor is free: wait for the end of a connection
      const MutexLock lock(mutex_);
      phase_changed_.WaitFor(mutex_, kRetryAfter);
    }
  }
}

void Server::Admit(std::unique_ptr<LocalStream> stream) {
  const Status limited = stream->SetTimeout(kPatience);
  if (!limited.ok()) return;
  const MutexLock lock(mutex_);
  while (Sweep() >= kMaxConnections) {
    if (!CutOffSlowest()) {
      stream->WriteAll(EncodeResponse(TooMany())).IgnoreError("the client has left");
      return;
    }
    phase_changed_.Wait(mutex_);
  }
  Connection& connection = connections_.emplace_back();
  connection.stream = std::move(stream);
  try {
    connection.thread = std::thread([this, &connection] { Serve(connection); });
  } catch (const std::system_error&) {
    const Result<Json> busy(
        Status(StatusCode::kIoError, "no thread is available for an answer; try again later"));
    connection.stream->WriteAll(EncodeResponse(busy)).IgnoreError("the client has left");
    connections_.pop_back();
  }
}

void Server::Serve(Connection& connection) {
  const Result<Json> response = Respond(connection);
  if (connection.stream) {
    Enter(connection, Phase::kWriting);
    connection.stream->WriteAll(EncodeResponse(response)).IgnoreError("the client has left");
    connection.stream->Shutdown();
  }
  Enter(connection, Phase::kDone);
}

Result<Json> Server::Respond(Connection& connection) {
  SILTFS_RETURN_IF_ERROR(CheckCaller(*connection.stream, options_.own_uid));
  SILTFS_ASSIGN_OR_RETURN(const std::optional<std::string> line,
                          connection.stream->ReadLine(kMaxRequestBytes));
  if (!line) return Status(StatusCode::kAborted, "the client has left");
  SILTFS_ASSIGN_OR_RETURN(const Request request, DecodeRequest(*line));
  if (request.command == kIdentity) return options_.identity();
  if (request.command == kWait) {
    BecomeWaiter(connection);
    return Json();
  }
  if (const auto session = options_.sessions.find(request.command);
      session != options_.sessions.end()) {
    return RunSession(connection, session->second, request.arguments);
  }
  if (const auto command = options_.with_arguments.find(request.command);
      command != options_.with_arguments.end()) {
    if (!BeginRunning(connection)) return Status(StatusCode::kAborted, "the store is being closed");
    return RunLong([&] {
      return command->second(request.arguments, [&] { return CheckWanted(*connection.stream); });
    });
  }
  const auto handler = options_.handlers.find(request.command);
  if (handler == options_.handlers.end()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("there is no command \"{}\"", request.command));
  }
  if (!BeginRunning(connection)) {
    return Status(StatusCode::kAborted, "the store is being closed");
  }
  if (options_.long_commands.contains(request.command)) return RunLong(handler->second);
  return handler->second();
}

Result<Json> Server::RunSession(Connection& connection, const Session& session,
                                const Json& arguments) {
  if (!BeginRunning(connection)) {
    return Status(StatusCode::kAborted, "the store is being closed");
  }
  return RunLong([&]() -> Result<Json> {
    SILTFS_RETURN_IF_ERROR(session.check(arguments));
    SILTFS_RETURN_IF_ERROR(connection.stream->WriteAll(EncodeResponse(session.greeting)));
    {
      const MutexLock lock(mutex_);
      connection.in_session = true;
      if (commands_stopped_) EndSessions();  // StopCommands was called before this
    }
    auto outcome = session.run(*connection.stream, arguments, [this] { return CommandsStopped(); });
    const MutexLock lock(mutex_);
    connection.in_session = false;
    return outcome;
  });
}

Status Server::CheckWanted(const LocalStream& stream) {
  if (CommandsStopped()) return {StatusCode::kAborted, "the store is being closed"};
  if (stream.PeerHasLeft() || stream.PeerHasSentMore())
    return {StatusCode::kInterrupted, "was interrupted"};
  return Status::Ok();
}

bool Server::CommandsStopped() {
  const MutexLock lock(mutex_);
  return commands_stopped_;
}

void Server::EndSessions() {
  for (const Connection& connection : connections_) {
    if (connection.in_session) connection.stream->FinishReading();
  }
}

bool Server::BeginRunning(Connection& connection) {
  const MutexLock lock(mutex_);
  if (commands_stopped_) return false;
  connection.phase = Phase::kRunning;
  return true;
}

Result<Json> Server::RunLong(const Handler& handler) {
  {
    const MutexLock lock(mutex_);
    if (long_commands_ == kMaxLongCommands) return TooMany();
    ++long_commands_;
  }
  Result<Json> result = handler();
  const MutexLock lock(mutex_);
  --long_commands_;
  return result;
}

void Server::BecomeWaiter(Connection& connection) {
  // Stop waits while a connection is in this phase. So a client that has read this first answer is
  // in waiters_ when Stop returns, and AnswerWaiters sends the second answer to it.
  Enter(connection, Phase::kWriting);
  connection.stream->WriteAll(EncodeResponse(options_.identity()))
      .IgnoreError("the client has left");
  const MutexLock lock(mutex_);
  // The server does not learn when a waiting client leaves. If there are too many such clients, it
  // drops the oldest one, which has most probably left.
  if (waiters_.size() >= kMaxWaiters) waiters_.pop_front();
  waiters_.push_back(std::move(connection.stream));
}

void Server::Enter(Connection& connection, Phase phase) {
  const MutexLock lock(mutex_);
  connection.phase = phase;
  phase_changed_.NotifyAll();
}

size_t Server::Sweep() {
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    if (connection->phase != Phase::kDone) {
      ++connection;
      continue;
    }
    connection->thread.join();  // the thread no longer needs the mutex
    connection = connections_.erase(connection);
  }
  return connections_.size();
}

bool Server::CutOffSlowest() {
  const auto slowest =
      std::find_if(connections_.begin(), connections_.end(), [](const Connection& connection) {
        return connection.phase == Phase::kReading && connection.stream;
      });
  if (slowest == connections_.end()) return false;
  slowest->stream->Shutdown();
  return true;
}

void Server::CutOff(Phase phase) {
  for (const Connection& connection : connections_) {
    if (connection.phase == phase && connection.stream) connection.stream->Shutdown();
  }
}

bool Server::AnyIn(Phase phase) const {
  return std::any_of(connections_.begin(), connections_.end(),
                     [&](const Connection& connection) { return connection.phase == phase; });
}

}  // namespace siltfs::control
