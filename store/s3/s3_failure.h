// What a reply that reports a failure means: whether another attempt may succeed, and the Status
// for users.
//
// Thread-safety: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/status.h"
#include "store/s3/http_client.h"

namespace siltfs {

struct S3Verdict {
  enum class Kind : uint8_t {
    kFinal,       // the status is the outcome, OK included
    kRetry,       // another attempt may succeed, until the deadline
    kWrongBytes,  // the same, but after a few attempts the status is the outcome
    kRenew,       // new credentials may help; without them the status is the outcome
  };
  Kind kind = Kind::kFinal;
  Status status;

  static S3Verdict Done() { return {}; }
  static S3Verdict Final(StatusCode code, std::string cause);
  static S3Verdict Retry(std::string cause);
  static S3Verdict WrongBytes(StatusCode code, std::string cause);
};

// What the sentences for users name.
struct S3FailureContext {
  std::string bucket;
  std::string origin;  // of the service
  std::string region;
  std::string credentials;  // where they come from
  int64_t now = 0;          // nanoseconds since 1970
};

// For replies with a status other than 2xx. `conflict` is the code for an unfulfilled condition.
S3Verdict JudgeFailure(const HttpReply& reply, const S3FailureContext& context,
                       StatusCode conflict);

// Whether a reply with this status, and with this code in its error document, may differ at the
// next attempt.
bool IsTransient(int status, std::string_view code);

// The code in the error document ("NoSuchKey"), or nothing.
std::string S3ErrorCode(const HttpReply& reply);

// What the header Retry-After asks for; zero if there is none. `now` is in nanoseconds since 1970.
std::chrono::nanoseconds RetryAfter(const HttpReply& reply, int64_t now);

}  // namespace siltfs
