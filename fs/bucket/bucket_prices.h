// What a bucket costs: the prices of its service, and an estimate from counted requests and bytes.
//
// Services have different prices, and charge by rules of their own (free tiers, traffic within one
// region, least sizes and least times). So the prices are the user's (`siltfs tune
// --bucket-prices`), and the result is an estimate.
//
// Thread-safety: pure functions and plain values. Errors: kInvalidArgument with one sentence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/result.h"
#include "store/object/object_store.h"

namespace siltfs {

// The defaults are list prices of one well-known service in one of its regions. They give the order
// of magnitude, and nothing else.
struct BucketPrices {
  double put = 0.005;      // for 1,000 PUT or LIST requests
  double get = 0.0004;     // for 1,000 GET or HEAD requests
  double storage = 0.023;  // for 10^9 bytes that are stored for a month
  double egress = 0.09;    // for 10^9 bytes that are read from the bucket
  std::string currency = "USD";

  bool operator==(const BucketPrices&) const = default;
};

// "put=0.005,get=0.0004,storage=0.023,egress=0.09,currency=USD"
std::string FormatPrices(const BucketPrices& prices);
// `before`, with the prices in the text in the place of its own.
Result<BucketPrices> ParsePrices(std::string_view text, BucketPrices before);

// In the currency of the prices. DELETE requests and bytes that are sent count as free.
struct BucketCost {
  double storage_per_month = 0;
  double requests = 0;
  double egress = 0;
};
BucketCost EstimateCost(const BucketPrices& prices, const ObjectStoreCounters& requests,
                        uint64_t stored_bytes);

}  // namespace siltfs
