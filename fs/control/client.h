// The client's side of the control socket (protocol.h).
//
// A daemon that does not answer is waited for as long as `Patience` says, then given up with a
// sentence that names its process and what can be done.
//
// Errors: kNotFound if no daemon listens for the store; kStale if one did and has died; kAborted if
// it ended, or began to close the store, instead of answering; kNotPermitted if this user may not
// ask it; otherwise what the daemon reports, or why it is not known whether there is one.
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

// Where a daemon is to be found. What only the mount table knows is empty for a store that is not
// mounted where this process sees it.
struct DaemonAddress {
  std::string store;                             // absolute path
  std::string mountpoint = {};                   // absolute path
  std::string device = {};                       // of the mount, "0:53"
  std::optional<uint32_t> owner = std::nullopt;  // the user that mounted it
};

struct Patience {
  // With a daemon that runs. Empty: for as long as it runs.
  std::optional<std::chrono::milliseconds> answer = std::chrono::seconds(30);
  // With one that was stopped, without interruption.
  std::chrono::milliseconds stopped = std::chrono::seconds(3);
  // Called after each `notice_interval` of waiting with what is waited for; may be empty.
  std::function<void(const std::string& sentence)> notice = {};
  std::chrono::milliseconds notice_interval = std::chrono::seconds(15);

  static Patience WhileItRuns() { return {.answer = std::nullopt}; }
};

struct Identity {
  int64_t pid = 0;         // as this process sees it, or else as the daemon sees itself
  std::string mountpoint;  // as the daemon sees it
  std::string state;       // kStarting, kMounted or kClosing; empty if it does not say
};

// True of the errors after which no daemon keeps others from the store, or soon will not.
bool IsGone(const Status& status);

// Sends one command to the daemon and returns its result.
Result<nlohmann::json> Ask(const DaemonAddress& address, const std::string& command,
                           const Patience& patience = {});
Result<Identity> Identify(const DaemonAddress& address, const Patience& patience = {});

// A client that wants to know when a daemon has ended, and how.
class Waiter {
 public:
  // From its return on the daemon's end is not missed.
  static Result<Waiter> Register(const DaemonAddress& address, const Patience& patience = {});

  const Identity& identity() const { return identity_; }

  // Returns when the daemon has closed its store and ended: OK if everything is durable. kAborted
  // if it died before.
  Status Wait(const Patience& patience = Patience::WhileItRuns());
  // False if Wait returned because the daemon did not answer.
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
