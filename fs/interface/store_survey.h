// What `siltfs report` shows of a store, besides its statistics (stats.h): all chunks by length and
// by number of references, the segments, and how the store has developed.
//
// Thread-safety: plain values and pure functions. Units: bytes and counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "store/base/result.h"

namespace siltfs {

struct SurveyProgress {
  unsigned step = 1;  // 1, 2, ...
  std::string_view name = {};
  uint64_t done = 0;
  uint64_t total = 0;  // 0: not known
};
using SurveyProgressFunction = std::function<Status(const SurveyProgress&)>;

// A class of chunks.
struct ChunkClass {
  uint64_t chunks = 0;
  uint64_t bytes = 0;  // uncompressed
  bool operator==(const ChunkClass&) const = default;
};

// Classes of lengths: four for each power of two. A class begins at 4, 5, 6 or 7 quarters of a
// power of two; lengths below 4 have classes of their own.
inline constexpr size_t kLengthClasses = 4 * 22 + 4;  // for lengths below 2^24
size_t LengthClassOf(uint64_t length);
uint64_t FirstLengthOf(size_t length_class);

// Classes of numbers of references: 1, 2, 3, 4, and then each from a power of two, exclusive, to
// the next one, inclusive: 5 to 8, 9 to 16, ...
inline constexpr size_t kReferenceClasses = 44;
size_t ReferenceClassOf(uint64_t references);  // of at least 1
uint64_t FirstReferencesOf(size_t reference_class);

struct SegmentUse {
  uint32_t id = 0;
  bool nodes = false;  // it has recipe nodes instead of content
  bool sealed = false;
  bool recompressed = false;
  uint64_t bytes = 0;    // of its file
  uint64_t chunks = 0;   // stored in it
  uint64_t indexed = 0;  // sampled chunks to which the index leads
  uint64_t live = 0;     // those of them that are in use
  bool operator==(const SegmentUse&) const = default;
};

struct ChunkSurvey {
  // The share of the chunks that was examined is 1 / 2^sample_bits.
  unsigned sample_bits = 0;
  uint64_t Scale() const { return uint64_t{1} << sample_bits; }
  // The numbers below are those of the sample, except the segments' `bytes` and `chunks`.

  // The distinct chunks of present files, and the references to them from present files.
  ChunkClass files;
  uint64_t references = 0;
  std::array<ChunkClass, kLengthClasses> lengths;
  std::array<ChunkClass, kReferenceClasses> shared;
  ChunkClass snapshots;  // chunks that only snapshots use
  ChunkClass nodes;      // recipe nodes
  // Chunks in use that the index did not find. They are missing in the counts of segments.
  uint64_t not_indexed = 0;
  std::vector<SegmentUse> segments;  // ascending by id
  uint64_t nodes_read = 0;
  uint64_t spilled_bytes = 0;  // written for sorting

  // The share of a segment's chunks that are in use, 0 to 1; nullopt if it is not known. A sample
  // only estimates it.
  std::optional<double> LiveShare(const SegmentUse& segment) const;
};

// A store's sizes at some time; the fields as in FileSystemStats.
struct PastSizes {
  int64_t taken_ns = 0;  // nanoseconds since 1970, UTC
  uint64_t logical_bytes = 0;
  uint64_t unique_bytes = 0;
  uint64_t stored_bytes = 0;
  uint64_t dead_bytes = 0;
  uint64_t metadata_bytes = 0;
  uint64_t index_bytes = 0;
  uint64_t files = 0;
  uint64_t chunks_logical = 0;
  uint64_t chunks_unique = 0;
  uint64_t index_memory_bytes = 0;
  uint64_t index_entries = 0;
  uint64_t damaged_chunks = 0;

  bool operator==(const PastSizes&) const = default;
};

// A complete scrub, and what it found.
struct ScrubResult {
  int64_t ended_ns = 0;  // nanoseconds since 1970, UTC
  uint64_t damaged_blocks = 0;
  uint64_t damaged_chunks = 0;
  uint64_t damaged_footers = 0;
  uint64_t chunks = 0;  // verified
  uint64_t bytes = 0;   // of segment files, read
  bool operator==(const ScrubResult&) const = default;
};

struct StoreSurvey {
  ChunkSurvey chunks;
  std::vector<PastSizes> sizes;     // ascending by time; at most some hundred
  std::vector<ScrubResult> scrubs;  // ascending by time; at most some hundred
};

}  // namespace siltfs
