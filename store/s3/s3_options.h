// The choices of an S3ObjectStore.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "store/s3/bucket_address.h"
#include "store/s3/credentials.h"

namespace siltfs {

// Where a URL names the bucket.
enum class BucketPlace : uint8_t {
  kPath,  // https://HOST/BUCKET/KEY
  kHost,  // https://BUCKET.HOST/KEY
};

struct S3Options {
  BucketAddress address;
  // Without an endpoint: Amazon S3 in the region.
  std::optional<Endpoint> endpoint;
  // By default in the path if an endpoint is given, else in the host. A bucket with a dot in its
  // name is always in the path with TLS, because its host would fit no certificate.
  std::optional<BucketPlace> place;
  // Empty: the variable AWS_REGION or AWS_DEFAULT_REGION, or else "us-east-1".
  std::string region;
  // Certificates to trust; empty: those of the system.
  std::string ca_file;
  // Empty: store/s3/credentials.h says where credentials come from.
  std::string credentials_file;
  VariableLookup variables = VariableOfProcess;

  // A call fails if it has no usable answer after this time. It gets a second more for each
  // 256 KiB that it transfers, so that large objects succeed on slow lines.
  std::chrono::nanoseconds deadline = std::chrono::seconds(60);
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(10);
  // A request ends if fewer than 4 KiB are transferred in this time.
  std::chrono::nanoseconds stall_timeout = std::chrono::seconds(30);
  // The bounds of the first wait between attempts, and of the later ones.
  std::chrono::nanoseconds first_wait = std::chrono::milliseconds(100);
  std::chrono::nanoseconds longest_wait = std::chrono::seconds(10);
  // Replaces the waits between attempts, for tests.
  std::function<void(std::chrono::nanoseconds)> wait;
};

}  // namespace siltfs
