// The signature of requests to S3: AWS Signature Version 4 with HMAC-SHA256, in the Authorization
// header. libcurl can sign, too, but before version 8.1 it signs query strings as they are, and it
// always takes the time from the system's clock, which tests cannot set.
//
// Thread-safety: functions only, safe to call from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/bytes.h"
#include "store/s3/credentials.h"

namespace siltfs {

// Names and values, of headers or of a query.
using NamedValues = std::vector<std::pair<std::string, std::string>>;

struct SignableRequest {
  std::string method;
  std::string path;            // encoded; begins with "/"
  std::string query;           // as CanonicalQuery returns it
  NamedValues headers;         // all are signed; names in lower case; "host" must be there
  std::string payload_sha256;  // of the body, in hexadecimal digits
};

// Encodes all bytes but letters, digits, "-", ".", "_" and "~"; with keep_slashes also not "/".
std::string EncodeUri(std::string_view text, bool keep_slashes);
// "a=1&b=x%20y", sorted by name.
std::string CanonicalQuery(NamedValues query);
// The value of the header x-amz-date: "20130524T000000Z". `now` is in nanoseconds since 1970.
std::string SignatureDate(int64_t now);
// The value of the header Authorization. `date` is that of the header x-amz-date.
std::string Authorization(const SignableRequest& request, const Credentials& credentials,
                          std::string_view region, std::string_view date);

}  // namespace siltfs
