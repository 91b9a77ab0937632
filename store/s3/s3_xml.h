// The two XML documents of S3 that this program reads: the page of a listing, and the description
// of an error. They come from the network, so nothing in them is trusted: documents with a
// DOCTYPE, deep nesting, long texts or missing elements are refused.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/result.h"

namespace siltfs {

inline constexpr size_t kMaxListingBytes = 8 << 20;
inline constexpr size_t kMaxErrorBytes = 64 << 10;

struct S3ListedObject {
  std::string key;  // decoded
  uint64_t size = 0;
  std::string etag;  // without quotes
};

struct S3Listing {
  std::vector<S3ListedObject> objects;
  bool truncated = false;
  std::string next_token;  // not empty if truncated
};

// A ListBucketResult of ListObjectsV2. kCorruption with the cause if the document is anything else.
Result<S3Listing> ParseListing(std::string_view document);

struct S3Error {
  std::string code;     // "NoSuchKey"; letters and digits
  std::string message;  // printable characters, at most 200
  std::string region;   // of the bucket, if the request named a wrong one
};

// nullopt if the document is no Error of S3.
std::optional<S3Error> ParseError(std::string_view document);

}  // namespace siltfs
