// The filter of a sorted run (run_store.h): the homogeneous ribbon filter of ribbon_filter.h with
// 8 to 14 slices. A run is small and its filter is in memory as a whole or not at all, so the
// slices are interleaved: the words of all slices for one place are neighbours, and a lookup reads
// one or two cache lines. Not in the SILT paper.
//
// Thread-safety: a filter never changes, so any thread may call. Memory: memory_bytes().
#pragma once

#include <cstdint>
#include <span>

#include "index/flash/ribbon_filter.h"
#include "store/base/bytes.h"
#include "store/base/coding.h"
#include "store/base/result.h"

namespace siltfs {

inline constexpr unsigned kLeastRunFilterSlices = 8;
inline constexpr unsigned kMostRunFilterSlices = 14;
// Reads that the runs of a partition may cost a lookup that finds its name in none of them. With
// the 2^-12 of a LogStore's tags, and the names that pass because slices are not perfect, a lookup
// then takes at most 1.01 reads.
inline constexpr double kExtraReadsOfRuns = 0.009;
// Filters of this size or more have memory pages of their own.
inline constexpr size_t kLeastPagedFilterBytes = 8U << 10;

// Bytes of an encoded filter before its words.
inline constexpr uint64_t kRunFilterHeaderBytes = 16;
// Size of a filter for `keys` keys, and its memory: a large filter has memory pages of its own.
uint64_t RunFilterBytes(unsigned slices, uint64_t keys);
uint64_t RunFilterMemory(uint64_t bytes);

// How many slices the filters of a partition's runs have. The number that is needed is seldom
// whole, and a filter that takes whole pages of memory has as many slices as fit them. So some of
// the runs get `fewer` slices and the others `more`, in such shares that they all together cost a
// lookup kExtraReadsOfRuns.
struct RunFilterSlices {
  unsigned fewer = kLeastRunFilterSlices;
  unsigned more = kLeastRunFilterSlices;
  double share_of_more = 1;

  // For runs of this number of entries. A partition has `runs_per_partition` of them on average and
  // gets one more.
  static RunFilterSlices For(double runs_per_partition, uint64_t keys);

  // The slices of one run. Runs with successive numbers have both kinds in their shares.
  unsigned Of(uint64_t run) const;
  // Averages, for models: the share of absent names that pass a run, and its filter's memory.
  double PassingShare() const;
  double MemoryBytes(uint64_t keys) const;
};

class RunFilter {
 public:
  // The filter of these hashes, which rise and share the `skip_bits` leading bits.
  static RunFilter Of(std::span<const uint64_t> hashes, unsigned skip_bits, unsigned slices);

  unsigned slices() const { return slices_; }
  const RibbonShape& shape() const { return shape_; }
  uint64_t memory_bytes() const { return words_.size() * sizeof(uint64_t); }

  // Returns false only if no key has this hash.
  bool MayContain(uint64_t hash) const;
  // Prefetches the words that MayContain reads first.
  void Prefetch(uint64_t hash) const;

  // Format: docs/format.md, "SILT RunStore".
  void Encode(Encoder& out) const;
  // Reads what Encode wrote; kCorruption for other bytes. A filter that is accepted is safe to look
  // up in, even a crafted one.
  static Result<RunFilter> Decode(ByteView bytes);

  friend bool operator==(const RunFilter&, const RunFilter&) = default;

 private:
  friend class RunFilterBuilder;
  RunFilter() = default;
  size_t PlaceOf(const RibbonRow& row) const;

  unsigned slices_ = 0;
  RibbonShape shape_;
  std::vector<uint64_t, PageAllocator<uint64_t, kLeastPagedFilterBytes>> words_;
};

// Builds a filter from hashes in rising order. Memory: 8 bytes for each bit of a slice, about 9 for
// each key, besides the result.
class RunFilterBuilder {
 public:
  RunFilterBuilder(uint64_t keys, unsigned skip_bits, unsigned slices);

  // Call `keys` times.
  void Add(uint64_t hash);
  RunFilter Finish();

 private:
  void EndBlock();

  RunFilter filter_;
  RibbonBlock rows_;  // of the block that is being filled
  uint32_t block_ = 0;
};

}  // namespace siltfs
