#include "fs/interface/store_survey.h"

#include <algorithm>
#include <bit>

namespace siltfs {

size_t LengthClassOf(uint64_t length) {
  if (length < 4) return static_cast<size_t>(length);
  const auto exponent = static_cast<size_t>(std::bit_width(length)) - 1;
  const auto quarter = static_cast<size_t>(length >> (exponent - 2)) & 3;
  return std::min(4 + 4 * (exponent - 2) + quarter, kLengthClasses - 1);
}

uint64_t FirstLengthOf(size_t length_class) {
  if (length_class < 4) return length_class;
  return (4 + uint64_t{length_class} % 4) << (length_class / 4 - 1);
}

size_t ReferenceClassOf(uint64_t references) {
  if (references <= 4) return static_cast<size_t>(std::max<uint64_t>(references, 1)) - 1;
  return std::min(static_cast<size_t>(std::bit_width(references - 1)) + 1, kReferenceClasses - 1);
}

uint64_t FirstReferencesOf(size_t reference_class) {
  if (reference_class < 4) return reference_class + 1;
  return (uint64_t{1} << (reference_class - 2)) + 1;
}

// The index leads only to one copy of a chunk. So a segment that it does not lead into has no live
// chunk, unless the index lacks entries.
std::optional<double> ChunkSurvey::LiveShare(const SegmentUse& segment) const {
  if (segment.indexed == 0 && not_indexed > 0) return std::nullopt;
  const uint64_t of = sample_bits == 0 ? segment.chunks : segment.indexed;
  if (of == 0) return std::nullopt;
  return std::min(1.0, static_cast<double>(segment.live) / static_cast<double>(of));
}

}  // namespace siltfs
