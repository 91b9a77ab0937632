// The daemon's side of the control socket (protocol.h).
//
// Each connection has its own thread; there are at most kMaxConnections connections. A client that
// sends nothing, or sends too slowly or too much, delays neither other clients nor the shutdown. If
// all connections are in use, a new client replaces the client that has let the server wait longest
// for a request. Long commands may use at most kMaxLongCommands connections, so that other clients
// are still served. A long command without arguments occupies its connection even after the client
// has left.
//
// Thread-safety: one thread calls Start, StopCommands, Stop and the destructor; any thread may call
// ListenAbstract and StopListening before Stop, and AnswerWaiters. Lifetime: objects used by the
// handlers must live until
// StopCommands or Stop has returned; no handler is called afterwards.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/local_socket.h"

namespace siltfs::control {

// Runs a command; the result is sent to the client.
using Handler = std::function<Result<nlohmann::json>()>;
// As Handler, for a command with arguments, which the client may have made wrongly. A handler that
// may run long calls `check` at intervals, and ends when it fails: with kInterrupted after the
// client has left or has sent another line (kStop), with kAborted after StopCommands was called.
using HandlerWithArguments = std::function<Result<nlohmann::json>(
    const nlohmann::json& arguments, const std::function<Status()>& check)>;

// A command that goes on over the same connection after its first answer, such as "import".
struct Session {
  // `arguments` are those of the request, which the client may have made wrongly. Returns why the
  // session cannot begin; OK if it can.
  std::function<Status(const nlohmann::json& arguments)> check;
  nlohmann::json greeting;  // the first answer
  // Uses the connection; the result is sent to the client as a second answer. After StopCommands
  // was called, reading from the stream finds its end and `stopped` returns true. The session must
  // return soon then.
  std::function<Result<nlohmann::json>(LocalStream& stream, const nlohmann::json& arguments,
                                       const std::function<bool()>& stopped)>
      run;
};

struct ServerOptions {
  std::string store;                         // the directory for the socket; empty: no socket there
  uint32_t own_uid = 0;                      // this user is served, besides the superuser
  std::function<nlohmann::json()> identity;  // the answer to "identity", the first one to "wait"
  std::map<std::string, Handler> handlers;   // by command, without "identity" and "wait"
  std::set<std::string> long_commands = {};
  std::map<std::string, HandlerWithArguments> with_arguments = {};  // by command; they are long
  std::map<std::string, Session> sessions = {};                     // by command; they are long
};

class Server {
 public:
  static constexpr size_t kMaxConnections = 16;
  static constexpr size_t kMaxLongCommands = 8;
  static constexpr size_t kMaxWaiters = 64;
  static constexpr std::chrono::milliseconds kPatience{2000};  // time limit for a stalled client

  // Starts to listen and serve. kInUse if another daemon listens there.
  static Result<std::unique_ptr<Server>> Start(ServerOptions options);
  ~Server();

  // Also listens on this abstract name. kInUse if another process does.
  Status ListenAbstract(const std::string& name) SILTFS_EXCLUDES(entrances_mutex_);
  // Ends this. Does nothing if the server does not listen on the name.
  void StopListening(const std::string& name) SILTFS_EXCLUDES(entrances_mutex_);

  // Calls no more handlers, ends sessions, and returns when running handlers have returned. Call
  // before the store is closed. Clients can still send "identity" and "wait".
  void StopCommands();

  // Accepts no new requests, removes the sockets, and returns when running requests are answered.
  // Clients that sent "wait" stay connected. Call before the store is unlocked.
  void Stop();

  // Sends the outcome of closing the store to the clients that sent "wait". Call after Stop. The
  // connections of these clients end when the Server is destroyed, which should be the daemon's
  // last step.
  void AnswerWaiters(const Status& outcome);

 private:
  enum class Phase : uint8_t { kReading, kRunning, kWriting, kDone };
  struct Connection {
    std::unique_ptr<LocalStream> stream;  // null once it is in waiters_
    std::thread thread;
    Phase phase = Phase::kReading;  // guarded by the server's mutex
    bool in_session = false;        // as well
  };

  struct Entrance {
    std::string name;  // empty: the socket in the store's directory
    std::unique_ptr<LocalListener> listener;
    std::thread acceptor;
  };

  explicit Server(ServerOptions options) : options_(std::move(options)) {}

  void Open(std::string name, std::unique_ptr<LocalListener> listener)
      SILTFS_EXCLUDES(entrances_mutex_);
  static void Shut(Entrance& entrance);
  void AcceptLoop(LocalListener& listener);
  // Starts a thread for the stream, or refuses the stream. If all connections are in use, cuts off
  // the slowest client first.
  void Admit(std::unique_ptr<LocalStream> stream);
  // Runs on the connection's thread.
  void Serve(Connection& connection);
  Result<nlohmann::json> Respond(Connection& connection);
  Result<nlohmann::json> RunSession(Connection& connection, const Session& session,
                                    const nlohmann::json& arguments);
  bool CommandsStopped();
  // The `check` of HandlerWithArguments.
  Status CheckWanted(const LocalStream& stream);
  // Enters kRunning and returns true. After StopCommands, only returns false.
  bool BeginRunning(Connection& connection);
  // Runs the handler. kInUse while kMaxLongCommands long commands are running.
  Result<nlohmann::json> RunLong(const Handler& handler);
  // Makes reads of sessions find the end of the stream.
  void EndSessions() SILTFS_REQUIRES(mutex_);
  void BecomeWaiter(Connection& connection);
  void Enter(Connection& connection, Phase phase);
  // Joins finished threads; returns the number of connections left.
  size_t Sweep() SILTFS_REQUIRES(mutex_);
  bool CutOffSlowest() SILTFS_REQUIRES(mutex_);
  void CutOff(Phase phase) SILTFS_REQUIRES(mutex_);
  bool AnyIn(Phase phase) const SILTFS_REQUIRES(mutex_);

  const ServerOptions options_;
  Mutex entrances_mutex_;  // not held while mutex_ is taken
  std::list<Entrance> entrances_ SILTFS_GUARDED_BY(entrances_mutex_);  // empty after Stop

  Mutex mutex_;
  CondVar phase_changed_;
  std::list<Connection> connections_ SILTFS_GUARDED_BY(mutex_);  // oldest first
  bool commands_stopped_ SILTFS_GUARDED_BY(mutex_) = false;
  size_t long_commands_ SILTFS_GUARDED_BY(mutex_) = 0;  // running now
  std::list<std::unique_ptr<LocalStream>> waiters_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs::control
