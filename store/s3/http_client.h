// HTTP requests through libcurl: one request and its reply at a time on each connection, any number
// of connections in parallel, which are kept for later requests. Only
// the implementation of this class includes libcurl.
//
// It follows no redirects, and repeats no requests, except that libcurl repeats a request once if a
// connection that was kept turns out to be closed. It uses proxies only as the environment says
// (http_proxy, https_proxy, no_proxy). The certificates of services are verified.
//
// Thread-safety: every call from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"

namespace siltfs {

struct HttpRequest {
  std::string method;  // GET, HEAD, PUT or DELETE
  std::string url;
  // A header without a value is left out, also if libcurl would send it.
  std::vector<std::pair<std::string, std::string>> headers;
  const ReadableFile* body = nullptr;  // for PUT; read in order, perhaps from the begin again
  uint64_t body_size = 0;
  // libcurl repeats no request on a connection that is new.
  bool new_connection = false;
  // For the whole request. A second more is granted for each kSlowestBytesPerSecond transferred.
  std::chrono::nanoseconds timeout{};
  // Ends the request when it becomes true and Wake is called. May be null.
  const std::atomic<bool>* interrupted = nullptr;
};

inline constexpr uint64_t kSlowestBytesPerSecond = 256 << 10;

struct HttpReply {
  int status = 0;
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case
  std::string error_body;       // of replies with other statuses than 2xx; its first 64 KiB
  uint64_t received_bytes = 0;  // of the body

  // Empty if there is no such header.
  std::string_view Header(std::string_view name) const;
  bool Successful() const { return status >= 200 && status < 300; }
};

// Receives the body of a reply with a status of 2xx. Returns false to end the request.
using HttpSink = std::function<bool(const HttpReply& head, ByteView piece)>;

enum class HttpFailure : uint8_t {
  kNone,         // there is a reply, of any status
  kUnreachable,  // no connection, or the connection broke, or the reply is incomplete
  kTimeout,      // the timeout has passed, or too few bytes came for a while
  kUntrusted,    // the certificate of the service is not valid
  kRefused,      // the sink returned false
  kSource,       // the body could not be read
  kInterrupted,
  kUnusable,  // libcurl does not accept the request or an option
};

struct HttpResult {
  HttpFailure failure = HttpFailure::kNone;
  std::string cause;                   // for users
  std::optional<Status> source_error;  // for kSource
  HttpReply reply;                     // complete only with kNone
  uint64_t sent_bytes = 0;             // of the body
  bool sent = false;                   // the service may have got the request
  bool repeated = false;               // libcurl sent the body again on another connection
};

// Seconds since 1970; nullopt if the text is no date of HTTP.
std::optional<int64_t> ParseHttpDate(std::string_view text);

class HttpClient {
 public:
  struct Options {
    std::string ca_file;  // certificates to trust; empty: those of the system
    std::chrono::nanoseconds connect_timeout = std::chrono::seconds(10);
    // A request ends if fewer than kSlowestBytes are transferred in this time.
    std::chrono::nanoseconds stall_timeout = std::chrono::seconds(30);
  };
  static constexpr uint64_t kSlowestBytes = 4096;

  // `env` gives the time, and must outlive the client.
  HttpClient(Env& env, Options options);
  ~HttpClient();

  HttpResult Perform(const HttpRequest& request, const HttpSink& sink) SILTFS_EXCLUDES(mutex_);
  // Ends all requests, and fails later ones, with kInterrupted.
  void Interrupt() SILTFS_EXCLUDES(mutex_);
  // Lets all requests look at HttpRequest::interrupted.
  void Wake() SILTFS_EXCLUDES(mutex_);
  bool interrupted() const { return interrupted_; }

 private:
  class Channel;  // a handle of libcurl with its connection
  class Exchange;

  std::unique_ptr<Channel> TakeChannel() SILTFS_EXCLUDES(mutex_);
  void ReturnChannel(std::unique_ptr<Channel> channel, bool reusable) SILTFS_EXCLUDES(mutex_);
  void Run(Channel& channel, Exchange& exchange, const HttpRequest& request);

  Env& env_;
  const Options options_;
  std::atomic<bool> interrupted_ = false;
  Mutex mutex_;
  std::vector<std::unique_ptr<Channel>> idle_ SILTFS_GUARDED_BY(mutex_);
  std::vector<Channel*> busy_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
