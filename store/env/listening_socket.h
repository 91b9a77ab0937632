// Sockets on which a library accepts connections itself (an HTTP server).
//
// Thread-safety: pure functions and plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "store/base/result.h"
#include "store/env/local_socket.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

// "ADDRESS:PORT" with a numeric address or "localhost", "[ADDRESS]:PORT" for IPv6, or "unix:PATH".
struct ListenAddress {
  std::string host = {};
  uint16_t port = 0;      // 0: the system chooses one
  std::string path = {};  // absolute; empty: host and port are used

  // kInvalidArgument with one sentence that says what is expected.
  static Result<ListenAddress> Parse(std::string_view text);
};

class ListeningSocket {
 public:
  // Any user can connect to a port. Only the user and the group of this process can connect to a
  // path (mode 0660); a socket there without a listener is replaced. kInUse if another process
  // listens on this address.
  static Result<ListeningSocket> Open(const ListenAddress& address);

  // A copy of the socket, which does not block. The caller or its library closes it.
  Result<Descriptor> Duplicate() const;
  // The address with the port that is really used, as in an URL; or the path.
  const std::string& name() const { return name_; }

 private:
  ListeningSocket(std::string name, Descriptor fd, std::unique_ptr<LocalListener> listener)
      : name_(std::move(name)), fd_(std::move(fd)), listener_(std::move(listener)) {}

  std::string name_;
  Descriptor fd_;                            // of a port
  std::unique_ptr<LocalListener> listener_;  // of a path, which its destructor removes
};

// Ends a connection, also for a thread that waits for it. The descriptor stays open.
void EndConnection(int descriptor);

}  // namespace siltfs
