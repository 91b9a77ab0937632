// Tells the service manager that has started this process how far it is, by the protocol of
// sd_notify(3): datagrams to the socket that the environment variable NOTIFY_SOCKET names. systemd
// sets this variable for services with Type=notify.
//
// Thread-safety: every call from any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "store/base/status.h"

namespace siltfs {

class ServiceManager {
 public:
  // The manager that NOTIFY_SOCKET names. Without the variable, all calls do nothing.
  static ServiceManager FromEnvironment();

  // `address`: the absolute path of a socket, or "@" and an abstract name; empty: there is no
  // manager.
  explicit ServiceManager(std::string address) : address_(std::move(address)) {}

  // Each call also sends `text`, one line about the state for people; line breaks in it become
  // spaces. kInvalidArgument for an address of another kind. A call waits at most a few seconds for
  // a manager that does not receive.
  Status Report(std::string_view text) const;    // still starting
  Status Ready(std::string_view text) const;     // the start has ended
  Status Stopping(std::string_view text) const;  // the process has begun to end

 private:
  Status Send(std::string_view state, std::string_view text) const;

  std::string address_;
};

}  // namespace siltfs
