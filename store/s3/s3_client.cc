#include "store/s3/s3_client.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/s3/backoff.h"
#include "store/s3/object_headers.h"
#include "store/s3/sha256.h"

namespace siltfs {
namespace {

// A reply with wrong bytes is requested this often.
constexpr int kAttemptsForWrongBytes = 4;
constexpr int kMaxRenewals = 2;

constexpr const char* kMethods[] = {"PUT", "GET", "HEAD", "GET", "DELETE"};

BucketPlace PlaceOf(const S3Options& options) {
  const bool dotted = options.address.bucket.find('.') != std::string::npos;
  if (dotted && (!options.endpoint || options.endpoint->tls)) return BucketPlace::kPath;
  return options.place.value_or(options.endpoint ? BucketPlace::kPath : BucketPlace::kHost);
}

std::string RegionOf(const S3Options& options) {
  for (const std::string& region :
       {options.region, options.variables("AWS_REGION"), options.variables("AWS_DEFAULT_REGION")}) {
    if (!region.empty()) return region;
  }
  return "us-east-1";
}

Status CheckRegion(std::string_view region) {
  const bool valid = region.size() <= 64 && std::ranges::all_of(region, [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
                     });
  if (valid) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                "the region of the bucket has only letters, digits and \"-\"");
}

// Whether the reply is a page of HTML. Proxies and portals answer any request with a page. An empty
// body is no page, although some services declare it as one.
bool IsPage(const S3Request& request, const HttpReply& reply) {
  return reply.Header("content-type").starts_with("text/html") &&
         (reply.received_bytes > 0 || request.operation == S3Operation::kStat);
}

double SecondsOf(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void ReplyBody::Reset() {
  own_.clear();
  size_ = 0;
  overflowed_ = false;
}

void ReplyBody::Reserve(uint64_t bytes) {
  constexpr uint64_t kMaxReserved = 64 << 20;
  if (out_.data() == nullptr) own_.reserve(std::min({bytes, limit_, kMaxReserved}));
}

bool ReplyBody::Take(ByteView piece) {
  overflowed_ = overflowed_ || piece.size() > limit_ - size_;
  if (overflowed_) return false;
  if (out_.data() != nullptr) {
    std::ranges::copy(piece, out_.begin() + static_cast<ptrdiff_t>(size_));
  } else {
    own_.insert(own_.end(), piece.begin(), piece.end());
  }
  size_ += piece.size();
  return true;
}

// The attempts of one call: their number, their deadline, and the waits between them.
class S3Client::Attempts {
 public:
  explicit Attempts(S3Client& client)
      : client_(client),
        time_(client.options_.deadline),
        begin_(client.env_.MonotonicNanoseconds()),
        backoff_(client.env_, client.options_.first_wait, client.options_.longest_wait) {}

  void Begin() {
    if (count_++ > 0) ++client_.retries_;
  }
  std::chrono::nanoseconds Left() const {
    return time_ + std::chrono::seconds(transferred_ / kSlowestBytesPerSecond) -
           std::chrono::nanoseconds(client_.env_.MonotonicNanoseconds() - begin_);
  }
  // More time is granted for the largest attempt only, so that a service which breaks off each
  // transfer does not extend the deadline for ever.
  void NoteTransferred(const HttpResult& result) {
    transferred_ = std::max(transferred_, result.sent_bytes + result.reply.received_bytes);
  }
  // Waits before the next attempt. False if that one would begin after the deadline.
  bool WaitForNext(const S3Request& request, std::chrono::nanoseconds at_least) {
    const std::chrono::nanoseconds wait = std::max(backoff_.Next(), at_least);
    if (wait >= Left()) return false;
    client_.Wait(request, wait);
    return Left() > std::chrono::nanoseconds(0);
  }
  Status GivenUp(const Status& last) const {
    return Status(StatusCode::kIoError,
                  fmt::format("no usable answer from {} within {:.3g} seconds ({} attempts), at "
                              "last: {}",
                              client_.origin_, SecondsOf(time_), count_, last.ToString()));
  }

 private:
  S3Client& client_;
  const std::chrono::nanoseconds time_;
  const int64_t begin_;
  Backoff backoff_;
  int count_ = 0;
  uint64_t transferred_ = 0;
};

Result<std::unique_ptr<S3Client>> S3Client::Open(Env& env, S3Options options) {
  options.place = PlaceOf(options);
  options.region = RegionOf(options);
  SILTFS_RETURN_IF_ERROR(CheckRegion(options.region));
  SILTFS_ASSIGN_OR_RETURN(auto credentials,
                          CredentialSource::Open(options.credentials_file, options.variables));
  Endpoint endpoint = options.endpoint.value_or(AmazonEndpoint(options.region));
  if (options.place == BucketPlace::kHost && endpoint.host.starts_with('[')) {
    return Status(StatusCode::kInvalidArgument,
                  "a bucket cannot be part of the host if the host is an IPv6 address")
        .At(endpoint.Origin());
  }
  return std::unique_ptr<S3Client>(
      new S3Client(env, std::move(options), std::move(endpoint), std::move(credentials)));
}

S3Client::S3Client(Env& env, S3Options options, Endpoint endpoint,
                   std::unique_ptr<CredentialSource> credentials)
    : env_(env),
      options_(std::move(options)),
      origin_(endpoint.Origin()),
      host_((options_.place == BucketPlace::kHost ? options_.address.bucket + "." : "") +
            endpoint.Authority()),
      base_path_(options_.place == BucketPlace::kPath ? "/" + options_.address.bucket : ""),
      credentials_(std::move(credentials)),
      http_(env, {.ca_file = options_.ca_file,
                  .connect_timeout = options_.connect_timeout,
                  .stall_timeout = options_.stall_timeout}) {}

HttpRequest S3Client::Sign(const S3Request& request, const Credentials& credentials) {
  static const std::string kNothing = HexOf(Sha256Of({}));
  SignableRequest signable;
  signable.method = kMethods[static_cast<size_t>(request.operation)];
  signable.path = base_path_ + (request.key.empty() && !base_path_.empty() ? "" : "/") +
                  EncodeUri(request.key, true);
  signable.query = CanonicalQuery(request.query);
  signable.payload_sha256 = request.content_sha256.empty() ? kNothing : request.content_sha256;
  signable.headers = request.headers;
  const std::string date = SignatureDate(env_.NowNanoseconds());
  signable.headers.emplace_back("host", host_);
  signable.headers.emplace_back("x-amz-content-sha256", signable.payload_sha256);
  signable.headers.emplace_back("x-amz-date", date);
  if (!credentials.session_token.empty()) {
    signable.headers.emplace_back("x-amz-security-token", credentials.session_token);
  }
  HttpRequest http;
  http.method = signable.method;
  http.url = (origin_.starts_with("https") ? "https://" : "http://") + host_ + signable.path +
             (signable.query.empty() ? "" : "?" + signable.query);
  http.headers = signable.headers;
  http.headers.emplace_back("authorization",
                            Authorization(signable, credentials, options_.region, date));
  http.headers.emplace_back("expect", "");
  http.body = request.content;
  http.body_size = request.content_size;
  if (request.ends_with_reads) http.interrupted = &reads_interrupted_;
  // HttpResult::repeated does not show that an empty body was sent again.
  http.new_connection = request.conditional && request.content_size == 0;
  return http;
}

HttpResult S3Client::Send(const S3Request& request, const Credentials& credentials, ReplyBody* body,
                          std::chrono::nanoseconds timeout) {
  HttpRequest http = Sign(request, credentials);
  http.timeout = timeout;
  if (body != nullptr) body->Reset();
  HttpResult result = http_.Perform(http, [body](const HttpReply& head, ByteView piece) {
    if (body == nullptr) return true;
    if (body->size() == 0) {
      body->Reserve(ParseDecimal(head.Header("content-length")).value_or(0));
    }
    return body->Take(piece);
  });
  Count(request, result);
  return result;
}

void S3Client::Count(const S3Request& request, const HttpResult& result) {
  ++requests_[static_cast<size_t>(request.operation)];
  sent_bytes_ += result.sent_bytes;
  received_bytes_ += result.reply.received_bytes;
}

S3Verdict S3Client::JudgeTransport(HttpResult& result) {
  switch (result.failure) {
    case HttpFailure::kInterrupted:
      return S3Verdict::Final(StatusCode::kInterrupted, result.cause);
    case HttpFailure::kSource:
      return {S3Verdict::Kind::kFinal, std::move(*result.source_error)};
    case HttpFailure::kUnusable:
      return S3Verdict::Final(StatusCode::kIoError, origin_ + " cannot be used: " + result.cause);
    case HttpFailure::kUntrusted:
      return S3Verdict::Final(
          StatusCode::kIoError,
          fmt::format("the certificate of {} is not trusted ({}); check the address, or name a "
                      "file with the certificates to trust",
                      origin_, result.cause));
    default:
      return S3Verdict::Retry(result.cause);
  }
}

S3Verdict S3Client::Judge(const S3Request& request, HttpResult& result, const ReplyBody* body,
                          const S3Judge& judge) {
  const bool overflowed = body != nullptr && body->overflowed();
  if (result.failure != HttpFailure::kNone && !overflowed) return JudgeTransport(result);
  if (result.reply.Successful() && IsPage(request, result.reply)) {
    return S3Verdict::Retry("an HTML page came instead of an answer of the service");
  }
  if (auto verdict = judge(result.reply)) return std::move(*verdict);
  return JudgeFailure(result.reply,
                      {.bucket = options_.address.bucket,
                       .origin = origin_,
                       .region = options_.region,
                       .credentials = credentials_->origin(),
                       .now = env_.NowNanoseconds()},
                      request.conflict);
}

S3Outcome S3Client::Perform(const S3Request& request, ReplyBody* body, const S3Judge& judge) {
  Attempts attempts(*this);
  bool uncertain = false;
  int renewals = 0;
  int wrong = 0;
  while (true) {
    if (Interrupted(request)) {
      return {Status(StatusCode::kInterrupted, "the call was interrupted"), uncertain};
    }
    attempts.Begin();
    const std::shared_ptr<const Credentials> credentials = credentials_->Current();
    HttpResult result = Send(request, *credentials, body, attempts.Left());
    attempts.NoteTransferred(result);
    S3Verdict verdict = Judge(request, result, body, judge);
    uncertain = uncertain || result.repeated;
    if (verdict.kind == S3Verdict::Kind::kFinal) return {std::move(verdict.status), uncertain};
    // A refusal with a status of 4xx had no effect.
    const bool refused = result.reply.status >= 400 && result.reply.status < 500;
    uncertain = uncertain || (result.sent && !refused);
    if (verdict.kind == S3Verdict::Kind::kWrongBytes && ++wrong == kAttemptsForWrongBytes) {
      return {std::move(verdict.status), uncertain};
    }
    if (verdict.kind == S3Verdict::Kind::kRenew) {
      auto renewed = credentials_->Renew(*credentials);
      if (!renewed.ok()) return {std::move(renewed).status(), uncertain};
      if (!*renewed || renewals++ == kMaxRenewals) return {std::move(verdict.status), uncertain};
      verdict.status.IgnoreError("the new credentials may be accepted");
      continue;
    }
    if (!attempts.WaitForNext(request, RetryAfter(result.reply, env_.NowNanoseconds()))) {
      return {attempts.GivenUp(verdict.status), uncertain};
    }
    verdict.status.IgnoreError("another attempt may succeed");
  }
}

bool S3Client::Interrupted(const S3Request& request) const {
  return http_.interrupted() || (request.ends_with_reads && reads_interrupted_);
}

void S3Client::Wait(const S3Request& request, std::chrono::nanoseconds time) {
  if (options_.wait) return options_.wait(time);
  const int64_t begin = env_.MonotonicNanoseconds();
  MutexLock lock(mutex_);
  while (!Interrupted(request)) {
    const auto left = time - std::chrono::nanoseconds(env_.MonotonicNanoseconds() - begin);
    if (left <= std::chrono::nanoseconds(0)) return;
    interruption_.WaitFor(mutex_, left);
  }
}

void S3Client::Interrupt() {
  http_.Interrupt();
  MutexLock lock(mutex_);
  interruption_.NotifyAll();
}

void S3Client::InterruptReads() {
  reads_interrupted_ = true;
  http_.Wake();
  MutexLock lock(mutex_);
  interruption_.NotifyAll();
}

ObjectStoreCounters S3Client::Counters() const {
  const auto requests = [this](S3Operation operation) {
    return requests_[static_cast<size_t>(operation)].load();
  };
  ObjectStoreCounters counters;
  counters.puts = requests(S3Operation::kPut);
  counters.gets = requests(S3Operation::kGet);
  counters.stats = requests(S3Operation::kStat);
  counters.lists = requests(S3Operation::kList);
  counters.removes = requests(S3Operation::kRemove);
  counters.retries = retries_;
  counters.failures = failures_;
  counters.sent_bytes = sent_bytes_;
  counters.received_bytes = received_bytes_;
  return counters;
}

}  // namespace siltfs
