#include "store/s3/s3_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "store/s3/s3_xml.h"

namespace siltfs {
namespace {

constexpr std::chrono::seconds kLongestRetryAfter(3600);

bool IsOneOf(std::string_view code, std::initializer_list<std::string_view> codes) {
  return std::ranges::find(codes, code) != codes.end();
}

bool IsRegionCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

// "403 AccessDenied".
std::string Describe(const HttpReply& reply, const std::string& code) {
  return fmt::format("{}{}{}", reply.status, code.empty() ? "" : " ", code);
}

std::string SkewSentence(const HttpReply& reply, const S3FailureContext& context) {
  const auto date = ParseHttpDate(reply.Header("date"));
  if (!date) return "the clock of this machine is wrong; set it";
  const int64_t skew = context.now / 1'000'000'000 - *date;
  return fmt::format("the clock of this machine is {} seconds {} that of {}; set it",
                     std::abs(skew), skew < 0 ? "behind" : "ahead of", context.origin);
}

// Refusals that have to do with credentials and permissions.
S3Verdict JudgeAccess(const HttpReply& reply, const S3Error& error,
                      const S3FailureContext& context) {
  const auto denied = [](std::string cause, S3Verdict::Kind kind = S3Verdict::Kind::kFinal) {
    return S3Verdict{kind, Status(StatusCode::kAccessDenied, std::move(cause))};
  };
  if (IsOneOf(error.code, {"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"})) {
    return denied(SkewSentence(reply, context));
  }
  if (IsOneOf(error.code, {"ExpiredToken", "TokenRefreshRequired", "ExpiredTokenException"})) {
    return denied("the session token has expired; get new credentials (they come from " +
                      context.credentials + ")",
                  S3Verdict::Kind::kRenew);
  }
  if (IsOneOf(error.code, {"InvalidToken", "InvalidTokenId"})) {
    return denied(
        "the service does not accept the session token; get new credentials (they come "
        "from " +
            context.credentials + ")",
        S3Verdict::Kind::kRenew);
  }
  if (IsOneOf(error.code, {"InvalidAccessKeyId", "InvalidClientTokenId"})) {
    return denied(
        "the service does not know the access key; check the credentials (they come "
        "from " +
            context.credentials + ")",
        S3Verdict::Kind::kRenew);
  }
  if (error.code == "SignatureDoesNotMatch") {
    return denied(
        "the secret access key does not belong to the access key id; check the "
        "credentials (they come from " +
            context.credentials + ")",
        S3Verdict::Kind::kRenew);
  }
  if (IsOneOf(error.code, {"AuthorizationHeaderMalformed", "PermanentRedirect",
                           "IllegalLocationConstraintException"})) {
    std::string_view region = reply.Header("x-amz-bucket-region");
    if (region.empty()) region = error.region;
    if (!std::ranges::all_of(region, IsRegionCharacter) || region.size() > 64) region = {};
    return denied(fmt::format("the bucket is not in the region {}{}{}; set AWS_REGION",
                              context.region, region.empty() ? "" : " but in ", region));
  }
  return denied(fmt::format("the credentials from {} lack the permission (the service answered {})",
                            context.credentials, Describe(reply, error.code)));
}

bool ConcernsAccess(int status, std::string_view code) {
  return status == 401 || status == 403 || status == 301 ||
         IsOneOf(code,
                 {"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture", "ExpiredToken",
                  "TokenRefreshRequired", "ExpiredTokenException", "InvalidAccessKeyId",
                  "InvalidToken", "InvalidTokenId", "InvalidClientTokenId", "SignatureDoesNotMatch",
                  "AuthorizationHeaderMalformed", "PermanentRedirect",
                  "IllegalLocationConstraintException", "AccessDenied"});
}

bool IsFull(int status, std::string_view code) {
  return status == 507 ||
         IsOneOf(code, {"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded",
                        "XMinioAdminQuotaExceeded", "InsufficientStorage"});
}

// The service found that a body was changed on its way.
bool IsDamaged(std::string_view code) {
  return IsOneOf(code, {"BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch"});
}

}  // namespace

bool IsTransient(int status, std::string_view code) {
  return status == 307 || status == 408 || status == 425 || status == 429 ||
         (status >= 500 && status != 501 && status != 505 && status != 507) ||
         IsOneOf(code, {"RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable",
                        "OperationAborted", "ConditionalRequestConflict", "IncompleteBody",
                        "TooManyRequests"});
}

S3Verdict S3Verdict::Final(StatusCode code, std::string cause) {
  return {Kind::kFinal, Status(code, std::move(cause))};
}

S3Verdict S3Verdict::Retry(std::string cause) {
  return {Kind::kRetry, Status(StatusCode::kIoError, std::move(cause))};
}

S3Verdict S3Verdict::WrongBytes(StatusCode code, std::string cause) {
  return {Kind::kWrongBytes, Status(code, std::move(cause))};
}

S3Verdict JudgeFailure(const HttpReply& reply, const S3FailureContext& context,
                       StatusCode conflict) {
  const S3Error error = ParseError(reply.error_body).value_or(S3Error{});
  const std::string description = Describe(reply, error.code);
  if (error.code == "NoSuchBucket") {
    return S3Verdict::Final(StatusCode::kNotFound,
                            fmt::format("there is no bucket \"{}\" at {}; create it, or check the "
                                        "address",
                                        context.bucket, context.origin));
  }
  if (error.code == "NoSuchKey") {
    return S3Verdict::Final(StatusCode::kNotFound, "there is no such object in the bucket");
  }
  if (reply.status == 412) {
    return S3Verdict::Final(conflict, conflict == StatusCode::kAlreadyExists
                                          ? "the object exists already"
                                          : "the object has another version");
  }
  if (IsFull(reply.status, error.code)) {
    return S3Verdict::Final(StatusCode::kNoSpace,
                            "the bucket is full (the service answered " + description + ")");
  }
  if (IsDamaged(error.code)) {
    return S3Verdict::WrongBytes(
        StatusCode::kIoError, "the service got other bytes than were sent (" + description + ")");
  }
  if (IsTransient(reply.status, error.code)) {
    return S3Verdict::Retry("the service answered " + description);
  }
  // Such a reply comes from a proxy or another server.
  if (error.code.empty() && reply.status != 401 && reply.status != 403) {
    return S3Verdict::Retry(
        fmt::format("{} answered {}, but not in the way of S3", context.origin, description));
  }
  if (ConcernsAccess(reply.status, error.code)) return JudgeAccess(reply, error, context);
  return S3Verdict::Final(StatusCode::kIoError,
                          fmt::format("the service refused the request: {}{}{}", description,
                                      error.message.empty() ? "" : ": ", error.message));
}

std::string S3ErrorCode(const HttpReply& reply) {
  return ParseError(reply.error_body).value_or(S3Error{}).code;
}

std::chrono::nanoseconds RetryAfter(const HttpReply& reply, int64_t now) {
  const std::string_view text = reply.Header("retry-after");
  int64_t wait = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), wait);
  if (failed != std::errc() || end != text.data() + text.size()) {
    const auto date = text.empty() ? std::nullopt : ParseHttpDate(text);
    wait = date ? *date - now / 1'000'000'000 : 0;
  }
  return std::clamp<std::chrono::seconds>(std::chrono::seconds(wait), std::chrono::seconds(0),
                                          kLongestRetryAfter);
}

}  // namespace siltfs
