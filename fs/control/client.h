// The client's side of the control socket (protocol.h).
//
// A call waits for the daemon's answer as long as `Patience` allows. Then it fails with a message
// that names the daemon's process and a remedy.
//
// Errors: kNotFound if no daemon listens for the store; kStale if the daemon was killed; kAborted
// if it ended, or began to close the store, instead of answering; kNotPermitted if the daemon does
// not serve this user; otherwise the error that the daemon reports, or the error that prevents
// finding the daemon.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "store/base/result.h"
#include "store/env/local_socket.h"

namespace siltfs::control {

// How to reach a daemon. Fields that come from the mount table are empty if the mount is not
// visible to this process.
struct DaemonAddress {
  std::string store;                             // absolute path
  std::string mountpoint = {};                   // absolute path
  std::string device = {};                       // the mount's device, such as "0:53"
  std::optional<uint32_t> owner = std::nullopt;  // the user that mounted it
};

struct Patience {
  // How long to wait for a running daemon. Unset: as long as it runs.
  std::optional<std::chrono::milliseconds> answer = std::chrono::seconds(30);
  // How long to wait for a daemon while its process stays stopped.
  std::chrono::milliseconds stopped = std::chrono::seconds(3);
  // Called after each `notice_interval` of waiting, with a message; may be empty.
  std::function<void(const std::string& sentence)> notice = {};
  std::chrono::milliseconds notice_interval = std::chrono::seconds(15);

  static Patience WhileItRuns() { return {.answer = std::nullopt}; }
};

struct Identity {
  int64_t pid = 0;         // in this process's PID namespace, or else in the daemon's
  std::string mountpoint;  // by the daemon's report
  std::string state;       // kStarting, kMounted or kClosing; empty if not reported
};

// Whether this error means that no daemon holds the store, or that the daemon soon releases it.
bool IsGone(const Status& status);

// Sends one command to the daemon and returns its result.
Result<nlohmann::json> Ask(const DaemonAddress& address, const std::string& command,
                           const Patience& patience = {});
Result<Identity> Identify(const DaemonAddress& address, const Patience& patience = {});

// Waits for the end of a daemon and returns its outcome.
class Waiter {
 public:
  // Registers for the daemon's end. After this call, Wait cannot miss that end.
  static Result<Waiter> Register(const DaemonAddress& address, const Patience& patience = {});

  const Identity& identity() const { return identity_; }

  // Returns when the daemon has closed its store and ended: OK if everything is durable. kAborted
  // if it was killed before.
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
