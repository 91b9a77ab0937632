// The daemon's side of the control socket (protocol.h).
//
// Each connection is served by a thread of its own, of which there are at most kMaxConnections. A
// client that sends nothing, too slowly or too much keeps neither others nor the shutdown waiting:
// when all places are taken, the one that has been read from for longest is cut off in favour of
// the newcomer. What takes long may have kMaxLongCommands of the places: whoever asks for it goes
// on taking one when he has left, and the others must still be served.
//
// Thread-safety: one thread starts, listens, stops and destroys; AnswerWaiters from any. Ownership:
// borrows what the handlers borrow; no handler is called after StopCommands or Stop returned.
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

// What a command does; its result goes to the client.
using Handler = std::function<Result<nlohmann::json>()>;

struct ServerOptions {
  std::string store;     // the directory for the socket; empty if there is to be none
  uint32_t own_uid = 0;  // this user is served, besides the superuser
  std::function<nlohmann::json()> identity;  // the answer to "identity", and the first to "wait"
  std::map<std::string, Handler> handlers;   // by command, "identity" and "wait" excepted
  std::set<std::string> long_commands = {};
};

class Server {
 public:
  static constexpr size_t kMaxConnections = 16;
  static constexpr size_t kMaxLongCommands = 8;
  static constexpr size_t kMaxWaiters = 64;
  static constexpr std::chrono::milliseconds kPatience{2000};  // with a client that stalls

  // Listens and serves from now on. kInUse if another daemon listens there.
  static Result<std::unique_ptr<Server>> Start(ServerOptions options);
  ~Server();

  // Listens on this abstract name, too. kInUse if another process does.
  Status ListenAbstract(const std::string& name);

  // Calls no handler any more, and returns when those under way have returned. To be called before
  // the store is closed. Clients can still ask which daemon this is, and wait for its end.
  void StopCommands();

  // Takes no new request, removes the sockets and returns when the requests under way are answered.
  // Clients that wait stay connected. To be called before the store is unlocked.
  void Stop();

  // Tells those who sent "wait" how closing the store went; after Stop. Their connections end with
  // the Server, which should be destroyed last of all.
  void AnswerWaiters(const Status& outcome);

 private:
  enum class Phase : uint8_t { kReading, kRunning, kWriting, kDone };
  struct Connection {
    std::unique_ptr<LocalStream> stream;  // null once it waits
    std::thread thread;
    Phase phase = Phase::kReading;  // guarded by the server's mutex
  };

  struct Entrance {
    std::unique_ptr<LocalListener> listener;
    std::thread acceptor;
  };

  explicit Server(ServerOptions options) : options_(std::move(options)) {}

  void Open(std::unique_ptr<LocalListener> listener);
  void AcceptLoop(LocalListener& listener);
  // Gives the stream a thread, if need be in place of the slowest client, or turns it away.
  void Admit(std::unique_ptr<LocalStream> stream);
  // On the connection's thread.
  void Serve(Connection& connection);
  Result<nlohmann::json> Respond(Connection& connection);
  // False once commands were stopped.
  bool BeginRunning(Connection& connection);
  // kInUse while as many as may are under way.
  Result<nlohmann::json> RunLong(const Handler& handler);
  void BecomeWaiter(Connection& connection);
  void Enter(Connection& connection, Phase phase);
  // Joins the threads that are done; how many are left.
  size_t Sweep() SILTFS_REQUIRES(mutex_);
  bool CutOffSlowest() SILTFS_REQUIRES(mutex_);
  void CutOff(Phase phase) SILTFS_REQUIRES(mutex_);
  bool AnyIn(Phase phase) const SILTFS_REQUIRES(mutex_);

  const ServerOptions options_;
  std::list<Entrance> entrances_;  // of the thread that starts and stops; empty after Stop

  Mutex mutex_;
  CondVar phase_changed_;
  std::list<Connection> connections_ SILTFS_GUARDED_BY(mutex_);  // oldest first
  bool commands_stopped_ SILTFS_GUARDED_BY(mutex_) = false;
  size_t long_commands_ SILTFS_GUARDED_BY(mutex_) = 0;  // under way
  std::list<std::unique_ptr<LocalStream>> waiters_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs::control
