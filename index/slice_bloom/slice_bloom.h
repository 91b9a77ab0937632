// SliceBloom: tells which segments may hold a chunk, without the index ("Design Patterns for
// Tunable and Efficient SSD-based Indexes", section 6). An incarnation is a group of sealed
// segments: the Bloom filter of all names in them. The group that is being filled has its filter in
// memory. When it has enough names, its filter becomes a column of the slicefilters on flash
// (slice_filter.h), so that a few page reads test a name against 256 groups.
//
// Use it to search chunks when the index has lost them or is being rebuilt. It is never
// authoritative. A name may be reported for a group that does not have it, with the probability of
// the filter for each group: 0.0007 with the defaults. So with 256 groups it is no use as a
// negative filter: 17 % of absent names pass. A caller confirms each segment with its footer, and
// must search all segments before it declares a name absent, because damage or a crash can hide
// groups.
//
// When not to use it: if every lookup hits. An index then gives the place itself with one read.
//
// Names are those of footers, ChunkName::Prefix64. They are hashed with a secret, so that names
// cannot be chosen to fill a filter.
//
// Costs, with n names in a group, f bits for each, h probes and k groups in a slicefilter: memory
// f/k bits for each name of full slicefilters; reads h pages for each slicefilter at most; bytes
// written for a name f k / 16 on average, because each group writes its slicefilter again.
//
// Thread-safety: Find, Covers and stats may be called from any thread. The other calls write, and
// are serialised by the object. Ownership: `env` must outlive the object. Durability: groups that
// have ended, and everything after Close; the group in memory is lost in a crash. Covers tells
// which segments must be added again. Errors: kIoError and kNoSpace from the device; after kNoSpace
// a call may be repeated. Open returns kCorruption if the files are damaged; the caller then
// removes the directory's files and begins again. After any other error of a call that writes, such
// calls fail until the object is opened again. Memory: n f bits, at most 256 MiB; some 50 bytes for
// each segment and 130 for each group; and one slicefilter of a partition while a group ends. Each
// slicefilter of a partition is an open file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/base/location.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

// Of a new SliceBloom; an existing one keeps its own.
struct SliceBloomShape {
  unsigned partition_bits = 4;          // 2^n partitions, each with slicefilters of its own
  uint64_t names_per_group = 1U << 15;  // a group ends when it has at least this number
  unsigned bits_per_name = 32;
  unsigned probes = 3;
  uint32_t groups_per_filter = 256;  // columns of a slicefilter; at most 256

  friend bool operator==(const SliceBloomShape&, const SliceBloomShape&) = default;
};

struct SliceBloomOptions {
  std::string directory;   // must exist; the object owns the files in it
  bool read_only = false;  // calls that change something fail with kReadOnly
  SliceBloomShape shape = {};
  std::optional<uint64_t> secret = {};  // of a new one; random if it is empty
  unsigned read_depth = 64;
  // Channels of the device over which the reads of a batch are spread (channel_order.h); 0: names
  // keep their order.
  uint32_t channels = 32;
  uint32_t chunk_pages = 2;  // pages that the device puts into one channel together
};

struct SliceBloomStats {
  SliceBloomShape shape;
  uint64_t groups = 0;    // that have ended and have segments
  uint64_t filters = 0;   // slicefilters of a partition
  uint64_t segments = 0;  // covered
  uint64_t names = 0;     // added to groups that have segments, with repetitions
  uint64_t memory_bytes = 0;
  uint64_t flash_bytes = 0;
  uint64_t flash_bytes_written = 0;
  uint64_t flash_reads = 0;       // requests
  uint64_t flash_pages_read = 0;  // a request reads one page
  uint64_t damaged_pages = 0;     // met since the object was opened
};

class SliceBloom {
 public:
  // Makes a new one if the directory has none.
  static Result<std::unique_ptr<SliceBloom>> Open(Env& env, const SliceBloomOptions& options);
  virtual ~SliceBloom() = default;

  // The segments that may hold each name, the groups that ended last first. A name in a group that
  // ended before the call, or was added before it, is always found, unless its group was removed
  // meanwhile. After an error segments may be missing. The result takes 4 bytes for each name and
  // segment. Damaged or forged pages let all segments pass, so batches should be small if there are
  // many segments.
  virtual Status Find(std::span<const uint64_t> names,
                      std::vector<std::vector<SegmentId>>& segments) = 0;
  // Whether the segment's names were added.
  virtual bool Covers(SegmentId segment) const = 0;
  // All segments whose names were added, in any order.
  virtual std::vector<SegmentId> Segments() const = 0;

  // Adds the names of a sealed segment to the present group. If the segment is in an older group,
  // it leaves that group. Ends the group if it has enough names. If the segment is in the present
  // group already, only names that are missing there are added.
  virtual Status Add(SegmentId segment, std::span<const uint64_t> names) = 0;
  // Ends the present group, even if it has few names.
  virtual Status EndGroup() = 0;
  // The segment is gone.
  virtual Status Remove(SegmentId segment) = 0;
  // Segments of groups that have lost most of their names. If they are added again, such a group
  // has no segments left; slicefilters without groups are removed.
  virtual std::vector<SegmentId> Sparse() const = 0;

  // Reads all pages. Calls `report` with one sentence for each that is damaged.
  virtual Status Verify(const std::function<void(const std::string&)>& report) = 0;
  virtual SliceBloomStats stats() const = 0;
  // Makes the present group durable, too. No call that writes may follow, except another Close,
  // which does nothing. The destructor does not close.
  virtual Status Close() = 0;
};

}  // namespace siltfs
