// Requests to one bucket: addressed, signed, and repeated until there is a usable answer, a final
// refusal, or the deadline.
//
// Thread-safety: every call from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "store/base/thread_annotations.h"
#include "store/env/env.h"
#include "store/object/object_store.h"
#include "store/s3/http_client.h"
#include "store/s3/s3_failure.h"
#include "store/s3/s3_options.h"
#include "store/s3/signature.h"

namespace siltfs {

enum class S3Operation : uint8_t { kPut, kGet, kStat, kList, kRemove };

// Keeps the body of a reply, up to a number of bytes.
class ReplyBody {
 public:
  // In the caller's memory.
  explicit ReplyBody(MutableByteView out) : out_(out), limit_(out.size()) {}
  // In memory of its own, which grows.
  explicit ReplyBody(uint64_t limit) : limit_(limit) {}

  void Reset();
  // So many bytes are announced.
  void Reserve(uint64_t bytes);
  bool Take(ByteView piece);

  uint64_t size() const { return size_; }
  uint64_t limit() const { return limit_; }
  // Whether the body had more bytes than the limit.
  bool overflowed() const { return overflowed_; }
  ByteView bytes() const { return out_.data() != nullptr ? ByteView(out_).first(size_) : own_; }
  Bytes Release() { return std::move(own_); }

 private:
  const MutableByteView out_;
  const uint64_t limit_;
  Bytes own_;
  size_t size_ = 0;
  bool overflowed_ = false;
};

struct S3Request {
  S3Operation operation = S3Operation::kGet;
  std::string key;  // with the prefix; empty: the bucket itself
  NamedValues query;
  NamedValues headers;  // names in lower case; all are signed
  // For kPut.
  const ReadableFile* content = nullptr;
  uint64_t content_size = 0;
  std::string content_sha256;  // hexadecimal
  bool conditional = false;
  bool ends_with_reads = false;  // InterruptReads ends it
  // What a reply of 412 means.
  StatusCode conflict = StatusCode::kStale;
};

// The outcome of a request.
struct S3Outcome {
  Status status;  // without a place
  // Whether an attempt whose answer was lost may have taken effect.
  bool uncertain = false;
};

// Judges a reply. If its status is 2xx, its body is in the ReplyBody, and is complete unless that
// has overflowed. For other replies, nullopt asks for the usual judgement (JudgeFailure).
using S3Judge = std::function<std::optional<S3Verdict>(const HttpReply& reply)>;

class S3Client {
 public:
  // `env` must outlive the client. Errors: those of the credentials.
  static Result<std::unique_ptr<S3Client>> Open(Env& env, S3Options options);

  // Performs the request. `body` may be null if the replies have no body of interest. kIoError
  // after the deadline; kInterrupted.
  S3Outcome Perform(const S3Request& request, ReplyBody* body, const S3Judge& judge);
  // The same for requests that may be repeated without harm.
  Status Ask(const S3Request& request, ReplyBody* body, const S3Judge& judge) {
    return Perform(request, body, judge).status;
  }
  void Interrupt() SILTFS_EXCLUDES(mutex_);
  void InterruptReads() SILTFS_EXCLUDES(mutex_);

  Env& env() { return env_; }
  const BucketAddress& address() const { return options_.address; }
  ObjectStoreCounters Counters() const;
  void CountFailure() { ++failures_; }

 private:
  class Attempts;

  S3Client(Env& env, S3Options options, Endpoint endpoint,
           std::unique_ptr<CredentialSource> credentials);

  HttpRequest Sign(const S3Request& request, const Credentials& credentials);
  HttpResult Send(const S3Request& request, const Credentials& credentials, ReplyBody* body,
                  std::chrono::nanoseconds timeout);
  S3Verdict Judge(const S3Request& request, HttpResult& result, const ReplyBody* body,
                  const S3Judge& judge);
  S3Verdict JudgeTransport(HttpResult& result);
  bool Interrupted(const S3Request& request) const;
  // Ends early if the request is interrupted.
  void Wait(const S3Request& request, std::chrono::nanoseconds time) SILTFS_EXCLUDES(mutex_);
  void Count(const S3Request& request, const HttpResult& result);

  Env& env_;
  const S3Options options_;
  const std::string origin_;  // of the service, without the bucket
  const std::string host_;    // with the bucket, if it is in the host
  const std::string base_path_;
  const std::unique_ptr<CredentialSource> credentials_;
  HttpClient http_;
  std::atomic<bool> reads_interrupted_ = false;

  Mutex mutex_;
  CondVar interruption_;

  std::atomic<uint64_t> requests_[5] = {};  // by S3Operation
  std::atomic<uint64_t> retries_ = 0;
  std::atomic<uint64_t> failures_ = 0;
  std::atomic<uint64_t> sent_bytes_ = 0;
  std::atomic<uint64_t> received_bytes_ = 0;
};

}  // namespace siltfs
