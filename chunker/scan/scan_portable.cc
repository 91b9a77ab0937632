// Scans six windows in parallel in plain C++. Each step waits only for the previous step of its
// window, so the processor works on six chains of table lookups at a time. The fingerprints and the
// pointers to the bytes fit in the registers of x86-64 and aarch64.
#include <bit>
#include <cstring>
#include <utility>

#include "chunker/scan/scan.h"

namespace siltfs {
namespace {

constexpr size_t kLanes = 6;
constexpr size_t kGroup = 4;  // steps

uint32_t LoadBigEndian(const uint8_t* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap32(value);
  return value;
}

// The positions of the lanes, at equal distances.
class Rows {
 public:
  Rows(const uint8_t* data, size_t stride)
      : base_(data), middle_(data + 3 * stride), stride_(stride) {}

  // The address is base_ or middle_ plus 0, 1, 2 or 4 times stride_. A load instruction of x86-64
  // can compute such an address itself.
  template <size_t kLane>
  const uint8_t* At() const {
    if constexpr (kLane == 3) return middle_;
    if constexpr (kLane == 5) return middle_ + 2 * stride_;
    return base_ + kLane * stride_;
  }
  void Advance(size_t bytes) {
    base_ += bytes;
    middle_ += bytes;
  }

 private:
  const uint8_t* base_;
  const uint8_t* middle_;
  const size_t stride_;
};

class Scan {
 public:
  Scan(const CutCondition& condition, const uint8_t* data, uint64_t* matches)
      : condition_(condition), data_(data), matches_(matches) {}

  // Scans windows [lane * stride, lane * stride + 1 + kGroup * groups) of each lane.
  template <size_t... kLane>
  void Run(size_t stride, size_t groups, std::index_sequence<kLane...>) {
    Rows rows(data_, stride);
    uint64_t fingerprints[kLanes] = {condition_.rabin.Of({rows.At<kLane>(), kWindowSize})...};
    ((condition_.Matches(fingerprints[kLane]) ? Mark(rows.At<kLane>()) : void()), ...);
    for (; groups > 0; --groups, rows.Advance(kGroup)) {
      (Step<0>(fingerprints[kLane], rows.At<kLane>()), ...);
      (Step<1>(fingerprints[kLane], rows.At<kLane>()), ...);
      (Step<2>(fingerprints[kLane], rows.At<kLane>()), ...);
      (Step<3>(fingerprints[kLane], rows.At<kLane>()), ...);
    }
  }

  void Mark(const uint8_t* window) {
    const auto begin = static_cast<size_t>(window - data_);
    matches_[begin / 64] |= uint64_t{1} << (begin % 64);
  }

 private:
  // Entering bytes are added four at a time. The steps of a group need only the highest bits, which
  // the entering bytes do not reach within the group. So after the first three steps of a group the
  // lowest 24 bits are not final.
  static constexpr uint64_t kLateBits = (uint64_t{1} << 24) - 1;

  template <size_t kStep>
  [[gnu::always_inline]] inline void Step(uint64_t& fingerprint, const uint8_t* row) {
    fingerprint = condition_.rabin.Roll(fingerprint, row[kStep], 0);
    if constexpr (kStep == kGroup - 1) {
      fingerprint ^= LoadBigEndian(row + kWindowSize);
      if (condition_.Matches(fingerprint)) [[unlikely]]
        Mark(row + kGroup);
    } else {
      if (fingerprint >= (condition_.limit & ~kLateBits)) [[unlikely]]
        Settle<kStep>(fingerprint, row);
    }
  }

  template <size_t kStep>
  void Settle(uint64_t fingerprint, const uint8_t* row) {
    const uint32_t late = LoadBigEndian(row + kWindowSize) >> (8 * (kGroup - 1 - kStep));
    if (condition_.Matches(fingerprint ^ late)) Mark(row + kStep + 1);
  }

  const CutCondition& condition_;
  const uint8_t* const data_;
  uint64_t* const matches_;
};

}  // namespace

void ScanPortable(const CutCondition& condition, const uint8_t* data, size_t windows,
                  uint64_t* matches) {
  Scan scan(condition, data, matches);
  const size_t share = (windows + kLanes - 1) / kLanes;
  const size_t groups = (share + kGroup - 2) / kGroup;
  const size_t length = groups * kGroup + 1;
  const size_t stride = (windows - length) / (kLanes - 1);
  scan.Run(stride, groups, std::make_index_sequence<kLanes>());
  // The few windows left over by the division into lanes.
  for (size_t i = stride * (kLanes - 1) + length; i < windows; ++i) {
    if (condition.Matches(condition.rabin.Of({data + i, kWindowSize}))) scan.Mark(data + i);
  }
}

}  // namespace siltfs
