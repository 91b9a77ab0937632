#include "store/s3/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <mutex>

#include "store/s3/http_exchange.h"

namespace siltfs {
namespace {

// Beyond this number, connections are closed after their request.
constexpr size_t kMaxIdleChannels = 16;
constexpr std::chrono::nanoseconds kLongestPoll = std::chrono::seconds(1);

// libcurl and the libraries below it must be initialised once in a process. They stay initialised,
// because other parts of the process may use them.
bool InitialiseCurl() {
  static std::once_flag once;
  static bool ready = false;
  std::call_once(once, [] { ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK; });
  return ready;
}

// Ends requests that take too long, or that hardly transfer anything for a while.
class RequestClock {
 public:
  RequestClock(Env& env, std::chrono::nanoseconds timeout, std::chrono::nanoseconds stall_timeout)
      : env_(env), timeout_(timeout), stall_timeout_(stall_timeout), begin_(Now()) {}

  // The cause for users if the request must end, else null.
  const char* Check(uint64_t transferred) {
    const std::chrono::nanoseconds now = Now();
    const std::chrono::seconds more(transferred / kSlowestBytesPerSecond);
    left_ = begin_ + timeout_ + more - now;
    if (left_.count() <= 0) return "the service did not answer in time";
    if (now - window_begin_ < stall_timeout_) return nullptr;
    if (transferred - window_bytes_ < HttpClient::kSlowestBytes) return "the connection stalled";
    window_begin_ = now;
    window_bytes_ = transferred;
    return nullptr;
  }

  int PollMilliseconds() const {
    const auto longest = std::min({kLongestPoll, stall_timeout_, left_});
    return std::max(1, static_cast<int>(longest / std::chrono::milliseconds(1)));
  }

 private:
  std::chrono::nanoseconds Now() const {
    return std::chrono::nanoseconds(env_.MonotonicNanoseconds());
  }

  Env& env_;
  const std::chrono::nanoseconds timeout_;
  const std::chrono::nanoseconds stall_timeout_;
  const std::chrono::nanoseconds begin_;
  std::chrono::nanoseconds left_{};
  std::chrono::nanoseconds window_begin_ = begin_;
  uint64_t window_bytes_ = 0;
};

}  // namespace

std::optional<int64_t> ParseHttpDate(std::string_view text) {
  const time_t time = curl_getdate(std::string(text).c_str(), nullptr);
  if (time <= 0) return {};
  return time;
}

// A multi handle owns the connection. Requests use it instead of curl_easy_perform, because only a
// multi handle can be woken by another thread.
class HttpClient::Channel {
 public:
  Channel() : multi_(curl_multi_init()), easy_(curl_easy_init()) {
    if (valid()) curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 1L);
  }
  ~Channel() {
    if (easy_ != nullptr) curl_easy_cleanup(easy_);
    if (multi_ != nullptr) curl_multi_cleanup(multi_);
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  bool valid() const { return multi_ != nullptr && easy_ != nullptr; }
  CURLM* multi() { return multi_; }
  CURL* easy() { return easy_; }
  void Wake() { curl_multi_wakeup(multi_); }

 private:
  CURLM* const multi_;
  CURL* const easy_;
};

HttpClient::HttpClient(Env& env, Options options) : env_(env), options_(std::move(options)) {}

HttpClient::~HttpClient() = default;

std::unique_ptr<HttpClient::Channel> HttpClient::TakeChannel() {
  std::unique_ptr<Channel> channel;
  MutexLock lock(mutex_);
  if (!idle_.empty()) {
    // The channel that was used last: its connection is the least likely to have been closed.
    channel = std::move(idle_.back());
    idle_.pop_back();
  } else {
    channel = std::make_unique<Channel>();
    if (!channel->valid()) return nullptr;
  }
  busy_.push_back(channel.get());
  return channel;
}

void HttpClient::ReturnChannel(std::unique_ptr<Channel> channel, bool reusable) {
  curl_easy_reset(channel->easy());
  {
    MutexLock lock(mutex_);
    std::erase(busy_, channel.get());
    if (reusable && idle_.size() < kMaxIdleChannels) idle_.push_back(std::move(channel));
  }
  // Otherwise the channel is destroyed here, without the lock.
}

void HttpClient::Interrupt() {
  interrupted_ = true;
  Wake();
}

void HttpClient::Wake() {
  MutexLock lock(mutex_);
  for (Channel* channel : busy_) channel->Wake();
}

HttpResult HttpClient::Perform(const HttpRequest& request, const HttpSink& sink) {
  Exchange exchange(request, sink);
  std::unique_ptr<Channel> channel = InitialiseCurl() ? TakeChannel() : nullptr;
  if (channel == nullptr) {
    exchange.Fail(HttpFailure::kUnusable, "libcurl cannot be initialised");
    return std::move(exchange.result());
  }
  if (!exchange.Prepare(channel->easy(), options_) ||
      curl_multi_add_handle(channel->multi(), channel->easy()) != CURLM_OK) {
    exchange.Fail(HttpFailure::kUnusable, "libcurl does not accept the request");
  } else {
    Run(*channel, exchange, request);
    long request_bytes = 0;
    const bool known =
        curl_easy_getinfo(channel->easy(), CURLINFO_REQUEST_SIZE, &request_bytes) == CURLE_OK;
    exchange.result().sent = !known || request_bytes > 0;
    curl_multi_remove_handle(channel->multi(), channel->easy());
  }
  // After a failure the connection is closed anyway, and libcurl 7.88 refuses CURLOPT_BUFFERSIZE
  // for a handle that could not resolve a name.
  ReturnChannel(std::move(channel), exchange.result().failure == HttpFailure::kNone);
  return std::move(exchange.result());
}

void HttpClient::Run(Channel& channel, Exchange& exchange, const HttpRequest& request) {
  RequestClock clock(env_, request.timeout, options_.stall_timeout);
  while (true) {
    if (interrupted_ || (request.interrupted != nullptr && *request.interrupted))
      return exchange.Fail(HttpFailure::kInterrupted, "the call was interrupted");
    int running = 0;
    if (curl_multi_perform(channel.multi(), &running) != CURLM_OK) {
      return exchange.Fail(HttpFailure::kUnreachable, "libcurl failed");
    }
    int queued = 0;
    while (const CURLMsg* message = curl_multi_info_read(channel.multi(), &queued)) {
      if (message->msg == CURLMSG_DONE) return exchange.Finish(message->data.result);
    }
    if (running == 0) return exchange.Fail(HttpFailure::kUnreachable, "libcurl lost the request");
    if (const char* late = clock.Check(exchange.transferred_bytes())) {
      return exchange.Fail(HttpFailure::kTimeout, late);
    }
    curl_multi_poll(channel.multi(), nullptr, 0, clock.PollMilliseconds(), nullptr);
  }
}

}  // namespace siltfs
