// Addresses of buckets, and of the services that keep them, as users write them:
//
//   s3://NAME/PREFIX                 a bucket, and what all keys begin with
//   http://HOST:PORT, https://HOST   a service
//
// Errors: kInvalidArgument with one sentence that says what to change.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/result.h"

namespace siltfs {

struct BucketAddress {
  std::string bucket;
  std::string prefix;  // without a slash at its ends; may be empty

  // "s3://NAME" or "s3://NAME/PREFIX".
  std::string ToUrl() const;
  // The prefix with a slash behind it, or nothing: what keys begin with.
  std::string KeyPrefix() const;

  bool operator==(const BucketAddress&) const = default;
};

inline constexpr size_t kMaxBucketPrefixBytes = 448;

// Whether a user means a bucket and not a directory: the text begins with "s3://".
bool LooksLikeBucketUrl(std::string_view text);

// The prefix is taken literally: "%20" is three characters. One slash at its end is ignored.
Result<BucketAddress> ParseBucketUrl(std::string_view url);

struct Endpoint {
  bool tls = true;
  std::string host;   // a name, an IPv4 address, or an IPv6 address in brackets
  uint16_t port = 0;  // 0: the default of the scheme

  // "HOST" or "HOST:PORT", as in the Host header of a request.
  std::string Authority() const;
  // "https://HOST:PORT".
  std::string Origin() const;

  bool operator==(const Endpoint&) const = default;
};

// One slash at the end is ignored; any other path, a query and credentials are refused.
Result<Endpoint> ParseEndpoint(std::string_view url);

// The endpoint of Amazon S3 in a region: "https://s3.REGION.amazonaws.com".
Endpoint AmazonEndpoint(std::string_view region);

}  // namespace siltfs
