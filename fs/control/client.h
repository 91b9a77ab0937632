// The client's side of the control socket (protocol.h).
//
// A call waits for the daemon's answer as long as `Patience` allows, and then fails with kIoError.
// The error's message names the daemon's process, if its number is known, and a remedy.
//
// Other errors: kNotFound if no daemon listens for the store; kStale if the daemon was killed or
// crashed; kAborted if the daemon ended, or began to close the store, before it answered;
// kNotPermitted if the daemon does not serve this user; the error that the daemon reports; the
// error that prevents finding the daemon.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "fs/control/protocol.h"
#include "store/base/result.h"
#include "store/env/local_socket.h"

namespace siltfs::control {

// How to reach a daemon. All fields except `store` come from the mount table. They are empty if
// this process does not see the mount.
struct DaemonAddress {
  std::string store;                             // absolute path
  std::string mountpoint = {};                   // absolute path
  std::string device = {};                       // the mount's device, such as "0:53"
  std::optional<uint32_t> owner = std::nullopt;  // the user that mounted it
};

struct Patience {
  // How long to wait for a running daemon. Unset: as long as it runs.
  std::optional<std::chrono::milliseconds> answer = std::chrono::seconds(30);
  // How long to wait while the process of the daemon is stopped by a signal (SIGSTOP).
  std::chrono::milliseconds stopped = std::chrono::seconds(3);
  // Called after each `notice_interval` of waiting, with a message; may be empty.
  std::function<void(const std::string& sentence)> notice = {};
  std::chrono::milliseconds notice_interval = std::chrono::seconds(15);
  // Whether the caller no longer wants the answer; polled while a call waits; may be empty. Once it
  // has returned true, the call tells the daemon, which ends a command that can be interrupted; its
  // answer says how. After `unwanted` without an answer, the call fails with kInterrupted.
  // `afterwards` then ends the message: what the daemon does.
  std::function<bool()> interrupted = {};
  std::chrono::milliseconds unwanted = std::chrono::seconds(10);
  std::string afterwards = "its daemon goes on with the command, and nothing is lost";

  static Patience WhileItRuns() { return {.answer = std::nullopt}; }
};

// One of the mounts that a daemon serves, by its report.
struct ServedMount {
  std::string mountpoint;
  std::string device;    // "0:53"; empty if unknown
  std::string snapshot;  // the snapshot that it shows alone; empty: the live files
};

struct Identity {
  // The number of the daemon's process in this process's PID namespace. If the daemon has no number
  // there, its number in its own PID namespace.
  int64_t pid = 0;
  std::string mountpoint;  // by the daemon's report
  std::string state;       // kStarting, kMounted or kClosing; empty if not reported
  // Unset if not reported, as by older daemons.
  std::optional<std::vector<ServedMount>> mounts = std::nullopt;
};

// Whether this error means that no daemon holds the store, or that the daemon soon releases it.
bool IsGone(const Status& status);

// Sends one command to the daemon and returns its result.
Result<nlohmann::json> Ask(const DaemonAddress& address, const std::string& command,
                           const Patience& patience = {});
// Like Ask, for a command with arguments.
Result<nlohmann::json> AskWith(const DaemonAddress& address, const Request& request,
                               const Patience& patience = {});
Result<Identity> Identify(const DaemonAddress& address, const Patience& patience = {});

// Begins a session (server.h) and returns its connection, after the first answer. The caller reads
// the second answer with DecodeResponse. The request names the mount of the address, because inode
// numbers of one mount mean other files in another one.
struct OpenedSession {
  std::unique_ptr<LocalStream> stream;
  nlohmann::json greeting;
};
Result<OpenedSession> OpenSession(const DaemonAddress& address, const std::string& command,
                                  const Patience& patience = {});

// Waits for the end of a daemon and returns its outcome.
class Waiter {
 public:
  // Registers for the daemon's end. After this call, Wait cannot miss that end.
  static Result<Waiter> Register(const DaemonAddress& address, const Patience& patience = {});

  const Identity& identity() const { return identity_; }

  // Returns when the daemon has closed its store and ended: OK if everything is durable, or the
  // error of closing the store. kAborted if the daemon was killed or crashed before it closed the
  // store.
  Status Wait(const Patience& patience = Patience::WhileItRuns());
  // Whether the daemon ended. False if Wait returned because the daemon did not answer.
  bool ended() const { return ended_; }

 private:
  Waiter(DaemonAddress address, std::unique_ptr<LocalStream> stream, Identity identity)
      : address_(std::move(address)), stream_(std::move(stream)), identity_(std::move(identity)) {}

  DaemonAddress address_;
  std::unique_ptr<LocalStream> stream_;
  Identity identity_;
  bool ended_ = false;
};

}  // namespace siltfs::control
