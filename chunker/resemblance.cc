#include "chunker/resemblance.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

// A window is in the sample if these bits of its fingerprint are kSampled. That of zeros is not, so
// runs of zeros, which many different chunks have, give no features.
constexpr uint64_t kSampleMask = 31;
constexpr uint64_t kSampled = 1;

// Windows are rolled in this many places of the chunk in turn, because each step waits for the
// previous one of its place.
constexpr size_t kLanes = 4;
constexpr size_t kSamples = 512;
constexpr size_t kMostMaps = ResemblanceShape::kMostSuperFeatures * ResemblanceShape::kMostFeatures;

// splitmix64 (Steele, Lea, Flood 2014).
uint64_t Mixed(uint64_t number) {
  uint64_t x = (number + 1) * 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

// Collects the fingerprints of the sample.
class Sample {
 public:
  void Add(uint64_t fingerprint) {
    fingerprints_[count_] = fingerprint;
    count_ += (fingerprint & kSampleMask) == kSampled ? 1 : 0;
  }
  bool full() const { return count_ + kLanes >= kSamples; }
  std::span<const uint64_t> fingerprints() const { return {fingerprints_.data(), count_}; }
  void Clear() { count_ = 0; }

 private:
  std::array<uint64_t, kSamples> fingerprints_;  // one more than are in the sample
  size_t count_ = 0;
};

}  // namespace

Resemblance::Resemblance(std::shared_ptr<const ChunkerTables> tables, const ResemblanceShape& shape)
    : tables_(std::move(tables)), shape_(shape) {
  for (unsigned super = 0; super < shape.super_features; ++super) {
    for (unsigned i = 0; i < shape.features; ++i) {
      const uint64_t number = super * ResemblanceShape::kMostFeatures + i;
      maps_.push_back({.factor = Mixed(2 * number) | 1, .addend = Mixed(2 * number + 1)});
    }
  }
}

Result<Resemblance> Resemblance::Create(std::shared_ptr<const ChunkerTables> tables,
                                        const ResemblanceShape& shape) {
  const bool valid = shape.super_features >= 1 &&
                     shape.super_features <= ResemblanceShape::kMostSuperFeatures &&
                     shape.features >= 1 && shape.features <= ResemblanceShape::kMostFeatures;
  if (!valid) {
    return Status(StatusCode::kInvalidArgument, "the number of super-features is out of range");
  }
  return Resemblance(std::move(tables), shape);
}

bool Resemblance::FeaturesOf(ByteView chunk, std::span<uint64_t> features) const {
  assert(features.size() == shape_.super_features);
  if (chunk.size() < kWindowSize) return false;
  const RabinTables& rabin = tables_->condition().rabin;
  std::array<uint64_t, kMostMaps> greatest = {};
  bool any = false;
  Sample sample;
  const auto take = [&] {
    for (const uint64_t fingerprint : sample.fingerprints()) {
      any = true;
      for (size_t i = 0; i < maps_.size(); ++i) {
        greatest[i] = std::max(greatest[i], fingerprint * maps_[i].factor + maps_[i].addend);
      }
    }
    sample.Clear();
  };

  const size_t windows = chunk.size() - kWindowSize + 1;
  const size_t share = windows / kLanes;  // windows of a lane
  const uint8_t* lanes[kLanes];
  uint64_t fingerprints[kLanes];
  for (size_t lane = 0; lane < kLanes && share > 0; ++lane) {
    lanes[lane] = chunk.data() + lane * share;
    fingerprints[lane] = rabin.Of({lanes[lane], kWindowSize});
    sample.Add(fingerprints[lane]);
  }
  for (size_t i = 1; i < share; ++i) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      fingerprints[lane] =
          rabin.Roll(fingerprints[lane], lanes[lane][i - 1], lanes[lane][i - 1 + kWindowSize]);
      sample.Add(fingerprints[lane]);
    }
    if (sample.full()) [[unlikely]]
      take();
  }
  // The few windows left over by the division into lanes.
  for (size_t window = share * kLanes; window < windows; ++window) {
    sample.Add(rabin.Of(chunk.subspan(window, kWindowSize)));
  }
  take();
  if (!any) return false;
  for (unsigned super = 0; super < shape_.super_features; ++super) {
    Encoder out;
    for (unsigned i = 0; i < shape_.features; ++i) out.U64(greatest[super * shape_.features + i]);
    features[super] = Checksum(out.view(), super + 1);
  }
  return true;
}

}  // namespace siltfs
