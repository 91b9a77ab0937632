#include "chunker/parameters.h"

#include <limits>
#include <string>

namespace siltfs {

namespace {

Status Invalid(std::string cause) { return {StatusCode::kInvalidArgument, std::move(cause)}; }

std::string InBytes(uint64_t size) { return std::to_string(size) + " bytes"; }

}  // namespace

ChunkerParameters ChunkerParameters::Proportional(uint32_t avg, RabinPolynomial polynomial) {
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  return {.min = avg / 4,
          .avg = avg,
          .max = avg > kMost / 8 ? kMost : avg * 8,
          .polynomial = polynomial};
}

Status ChunkerParameters::Validate() const {
  if (window != kWindowSize) {
    return Invalid("a fingerprint window of " + InBytes(window) + " is not supported, only " +
                   InBytes(kWindowSize));
  }
  if (min < kSmallestMin) {
    return Invalid("the smallest chunk of " + InBytes(min) + " is below " + InBytes(kSmallestMin));
  }
  if (max > kLargestMax) {
    return Invalid("the largest chunk of " + InBytes(max) + " is above " + InBytes(kLargestMax));
  }
  if (avg < 2 * uint64_t{min}) {
    return Invalid("the mean chunk of " + InBytes(avg) + " is less than twice the smallest of " +
                   InBytes(min));
  }
  if (max < 2 * uint64_t{avg}) {
    return Invalid("the largest chunk of " + InBytes(max) + " is less than twice the mean of " +
                   InBytes(avg));
  }
  return Status::Ok();
}

}  // namespace siltfs
