// The file STORE/bucket, which says where the sealed segments of a store are kept, if they are not
// in its directory. mkfs writes it. It has no credentials.
//
// The file is text, so that a user can read it: a line "siltfs bucket 1", lines "NAME VALUE", and a
// line with the checksum of the lines before it (docs/format.md).
//
// Thread-safety: pure functions and plain values. Errors: those of Env; kCorruption if the file is
// damaged; kNeedsNewer if another version has written it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fs/bucket/bucket_prices.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

inline constexpr uint64_t kLeastBucketCacheBytes = uint64_t{256} << 20;
inline constexpr uint64_t kDefaultBucketCacheBytes = uint64_t{2} << 30;

struct BucketConfig {
  std::string address = {};      // "s3://NAME/PREFIX"
  std::string endpoint = {};     // "https://HOST:PORT"; empty: Amazon S3 in the region
  std::string region = {};       // empty: chosen when the bucket is opened (store/s3/s3_options.h)
  std::string credentials = {};  // the path of a file; empty: store/s3/credentials.h says where
  std::string ca_file = {};      // certificates to trust; empty: those of the system
  uint64_t cache_bytes = kDefaultBucketCacheBytes;
  std::optional<BucketPrices> prices = {};  // empty: the user has given none

  bool operator==(const BucketConfig&) const = default;
};

// Whether a user means a bucket and not a directory: the text begins with "s3://".
bool NamesBucket(std::string_view text);

// kInvalidArgument with one sentence if no bucket can be reached with these values.
Status ValidateBucketConfig(const BucketConfig& config);

std::string EncodeBucketConfig(const BucketConfig& config);
Result<BucketConfig> DecodeBucketConfig(std::string_view text);

// Durable on return; replaces the file.
Status WriteBucketConfig(Env& env, const std::string& store, const BucketConfig& config);
// Empty if there is no such file.
Result<std::optional<BucketConfig>> ReadBucketConfig(Env& env, const std::string& store);

}  // namespace siltfs
