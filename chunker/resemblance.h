// Super-features of chunks: chunks that share most of their windows probably share a super-feature,
// although their names differ. An index of super-features so finds the base of a delta (Broder
// 1997, "On the resemblance and containment of documents"; Shilane et al. 2012, "WAN optimized
// replication of backup datasets using stream-informed delta compression").
//
// A feature is the greatest value of a * fingerprint + b, modulo 2^64, over a sample of the chunk's
// windows. The windows and fingerprints are those of the chunker (chunker/rabin.h); the sample has
// one window in 32, chosen by the fingerprint, so equal ranges of two chunks give the same sample.
// Two chunks have a feature in common with the probability of the share of sampled windows that
// they share. A super-feature is the hash of some features, 2 by default: chunks with the
// resemblance r have one in common with the probability r^2. So one of three super-features is in
// common with the probability 1 - (1 - r^2)^3: 0.99 for r = 0.9, and 0.58 for r = 0.5. More
// features find fewer bases, and try fewer without success (docs/engines.md#slicelsh compares
// them).
//
// Thread-safety: immutable. Ownership: shares the tables. Memory: a constant amount on the stack.
// Stability: for the same polynomial, the values never change, because indexes on disk have them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "chunker/chunker.h"
#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

struct ResemblanceShape {
  static constexpr unsigned kMostSuperFeatures = 10;
  static constexpr unsigned kMostFeatures = 8;

  unsigned super_features = 3;  // of a chunk; 1 to kMostSuperFeatures
  unsigned features = 2;        // of a super-feature; 1 to kMostFeatures

  friend bool operator==(const ResemblanceShape&, const ResemblanceShape&) = default;
};

class Resemblance {
 public:
  // kInvalidArgument if the shape is out of range.
  static Result<Resemblance> Create(std::shared_ptr<const ChunkerTables> tables,
                                    const ResemblanceShape& shape = {});

  const ResemblanceShape& shape() const { return shape_; }

  // Sets the super-features of a chunk. Requires features.size() == shape().super_features. Returns
  // false, and sets nothing, if the chunk has none: it is shorter than a window, or its sample is
  // empty.
  [[nodiscard]] bool FeaturesOf(ByteView chunk, std::span<uint64_t> features) const;

 private:
  struct Map {
    uint64_t factor = 0;  // odd
    uint64_t addend = 0;
  };

  Resemblance(std::shared_ptr<const ChunkerTables> tables, const ResemblanceShape& shape);

  std::shared_ptr<const ChunkerTables> tables_;
  ResemblanceShape shape_;
  std::vector<Map> maps_;  // of all features, those of the first super-feature first
};

}  // namespace siltfs
