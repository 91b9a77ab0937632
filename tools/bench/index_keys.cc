#include "tools/bench/index_keys.h"

namespace siltfs {
namespace {

constexpr uint64_t kFirstFactor = 0xbf58476d1ce4e5b9U;
constexpr uint64_t kSecondFactor = 0x94d049bb133111ebU;
constexpr unsigned kOrdinalBits = 16;
// A segment id consists of a version and the upper bits of a number.
constexpr unsigned kVersionShift = 24;

void Store(uint64_t word, uint8_t* out, size_t size) {
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(word >> (8 * i));
}

}  // namespace

uint64_t MixNumber(uint64_t number) {
  number = (number ^ (number >> 30)) * kFirstFactor;
  number = (number ^ (number >> 27)) * kSecondFactor;
  return number ^ (number >> 31);
}

ChunkName IndexKeys::NameOf(uint64_t number) const {
  const uint64_t first = MixNumber(number ^ seed_);
  const uint64_t second = MixNumber(first + seed_ + 0x9e3779b97f4a7c15U);
  const uint64_t third = MixNumber(second + 0x9e3779b97f4a7c15U);
  ChunkName name;
  Store(first, name.bytes.data(), 8);
  Store(second, name.bytes.data() + 8, 8);
  Store(third, name.bytes.data() + 16, 4);
  return name;
}

Location IndexKeys::LocationOf(uint64_t number, uint32_t version) const {
  const uint64_t mixed = MixNumber(number + seed_ + version * kFirstFactor);
  const uint64_t segment = uint64_t{version} << kVersionShift | number >> kOrdinalBits;
  return {.segment = static_cast<SegmentId>(segment + 1),
          .ordinal = static_cast<uint32_t>(number & ((1U << kOrdinalBits) - 1)),
          .block_offset = static_cast<uint32_t>(mixed) & Location::kMaxBlockOffset};
}

std::optional<uint64_t> IndexKeys::NumberOf(const Location& location) const {
  if (location.segment == kNoSegment) return std::nullopt;
  const uint64_t segment = uint64_t{location.segment} - 1;
  const auto version = static_cast<uint32_t>(segment >> kVersionShift);
  const uint64_t upper = segment & ((uint64_t{1} << kVersionShift) - 1);
  const uint64_t number = upper << kOrdinalBits | location.ordinal;
  if (LocationOf(number, version) != location) return std::nullopt;
  return number;
}

bool NumberTally::IsFirst(uint64_t count) const {
  uint64_t sum = 0;
  for (uint64_t number = 0; number < count; ++number) sum += MixNumber(number);
  return count_ == count && sum_ == sum;
}

}  // namespace siltfs
