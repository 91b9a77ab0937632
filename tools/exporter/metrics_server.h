// Serves one page of metrics over HTTP, with libmicrohttpd. Only GET and HEAD of /metrics are
// answered with it; / has a short text that leads there.
//
// A client can hold little: requests have no body and at most some 8 KiB of headers, and a
// connection ends if its client is silent for `silence`. If there are more than `most_connections`,
// the one that has had no answer for the longest time ends (open_connections.h). Each connection
// has a thread.
//
// Thread-safety: one thread makes and destroys it. Errors: kIoError if the library cannot start.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "store/base/result.h"
#include "store/env/listening_socket.h"
#include "tools/siltfs/metrics_text.h"

namespace siltfs {

class MetricsServer {
 public:
  struct Options {
    // Returns the page in this format. Called from any thread of the server, from several at the
    // same time. A failure is answered with 503 and its sentence.
    std::function<Result<std::string>(MetricsFormat)> metrics;
    unsigned most_connections = 32;
    std::chrono::seconds silence{20};
  };
  // Serves until the object is destroyed.
  static Result<std::unique_ptr<MetricsServer>> Start(const ListeningSocket& socket,
                                                      Options options);
  // Ends all connections, and waits for their threads.
  virtual ~MetricsServer() = default;
};

}  // namespace siltfs
