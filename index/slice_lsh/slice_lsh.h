// SliceLSH: finds chunks that resemble a given chunk ("Design Patterns for Tunable and Efficient
// SSD-based Indexes", sections 6 and 7.5). It is an index for locality-sensitive hashing: a chunk
// has some super-features (chunker/resemblance.h), and there is a table on flash for each of them.
// A chunk that agrees with the given one in any table is a candidate. The tables are read at the
// same time: a lookup asks for the pages of all of them together.
//
// Chunks that are added are collected in memory. When the buffer is full, each table merges them
// into slicetables on flash. A page of a slicetable is a slice: all incarnations of one range of
// keys, the newest entry first. So a lookup reads one page of each slicetable, and needs no memory
// for it. A table has a few slicetables, each some times as large as all newer ones together
// (`growth`), so that few bytes are written for each entry.
//
// It is only a hint: a candidate may be gone, may have moved, or may resemble nothing (two keys are
// equal by chance with the probability 2^-40). A caller reads the candidate and compares. Losing
// the files loses savings, but no data. So Open makes damaged files from scratch, and the buffer is
// lost in a crash.
//
// When not to use it: to tell whether a chunk is stored. That is the task of a chunk index.
//
// Growth is bounded. A table that is full overwrites its oldest entries, slice by slice. Entries of
// segments that are gone are dropped when their slicetable is written again.
//
// Costs: 12 bytes for each chunk and table, in pages that are 7/8 full: 13.8 bytes, and at most one
// page more for each slicetable. A table with n entries reads about log(n / b) / log(growth) pages
// for a lookup, at most `most_levels`, where b is the size of the buffer. It writes about `growth`
// / 2 times 13.8 bytes for each of these levels. Entries that do not fit into their page are lost:
// fewer than 1 in 10,000 each time.
//
// Thread-safety: Find and stats may be called from any thread. The other calls write, and are
// serialised by the object. Ownership: `env` must outlive the object. Durability: everything that
// was added before a Flush that returned OK. Errors: kIoError and kNoSpace from the device; after
// kNoSpace a call may be repeated. After any other error of a call that writes, such calls fail
// until the object is opened again. Memory: the buffer, the pages of the read queue, and while the
// buffer is merged, its entries of one table (16 bytes each) and some 500 KiB more. Each
// slicetable is an open file.
#pragma once

#include <compare>
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

// Of a new SliceLSH; an existing one keeps its own.
struct SliceLshShape {
  static constexpr unsigned kMostTables = 10;

  unsigned tables = 3;            // super-features of a chunk; 1 to kMostTables
  unsigned most_per_feature = 4;  // the newest entries of a super-feature that stay; 1 to 64
  unsigned growth = 16;           // of slicetables, from each to the next older one; 2 to 64
  unsigned most_levels = 4;       // slicetables of a table; 1 to 8
  uint64_t most_entries = uint64_t{1} << 27;  // of the oldest slicetable; at most 2^32
  // Subdirectories "device-0" and so on, for tables on several devices: table t is in number t
  // modulo this number (device_directories.h). 0: all tables are in the directory itself.
  unsigned directories = 0;

  friend bool operator==(const SliceLshShape&, const SliceLshShape&) = default;
};

struct SliceLshOptions {
  std::string directory;   // must exist; the object owns the files in it
  bool read_only = false;  // calls that change something fail with kReadOnly
  SliceLshShape shape = {};
  std::optional<uint64_t> secret = {};        // of a new one; random if it is empty
  uint64_t buffer_bytes = uint64_t{1} << 20;  // memory of the buffer; 1 KiB to 256 MiB
  unsigned read_depth = 32;
  // Damaged files are removed, and an empty SliceLSH is made. Not if it is read-only.
  bool renew_if_damaged = true;
  // Whether a segment is gone. May be empty. Called by calls that write, without the lock of Find.
  // It must not call the object.
  std::function<bool(SegmentId)> is_gone = {};
};

// A chunk in a segment. The ordinal is at most Location::kMaxOrdinal.
struct SliceLshPlace {
  SegmentId segment = kNoSegment;
  uint32_t ordinal = 0;

  auto operator<=>(const SliceLshPlace&) const = default;
};

struct SliceLshCandidate {
  SliceLshPlace place;
  unsigned tables = 0;  // in which the super-features agree

  friend bool operator==(const SliceLshCandidate&, const SliceLshCandidate&) = default;
};

struct SliceLshStats {
  SliceLshShape shape;
  bool renewed = false;      // Open has found damaged files and made it from scratch
  uint64_t buffered = 0;     // chunks in memory
  uint64_t entries = 0;      // in slicetables, of all tables together
  uint64_t slicetables = 0;  // of all tables together
  uint64_t pages = 0;        // of slicetables
  uint64_t memory_bytes = 0;
  uint64_t flash_bytes = 0;
  uint64_t flash_bytes_written = 0;
  uint64_t lookups = 0;        // chunks
  uint64_t flash_reads = 0;    // requests of lookups; each reads one page
  uint64_t damaged_pages = 0;  // met since the object was opened
  // Since the object was opened, while slicetables were written:
  uint64_t gone_entries = 0;         // dropped, because their segments are gone
  uint64_t repeated_entries = 0;     // dropped, because their super-feature has enough newer ones
  uint64_t overwritten_entries = 0;  // dropped, because their page had no room
};

class SliceLsh {
 public:
  // Makes a new one if the directory has none. kCorruption if the files are damaged and are not
  // made from scratch. kNeedsNewer for a later version of the files.
  static Result<std::unique_ptr<SliceLsh>> Open(Env& env, const SliceLshOptions& options);
  virtual ~SliceLsh() = default;

  virtual const SliceLshShape& shape() const = 0;

  // `features` has the super-features of one chunk after the other, shape().tables of each; the
  // i-th belongs to the i-th table. Sets the candidates of each chunk: those that agree in the most
  // tables first, and of these the newest first. There are at most shape().most_per_feature for
  // each table and slicetable. Damaged pages have no candidates. After an error candidates may be
  // missing.
  virtual Status Find(std::span<const uint64_t> features,
                      std::vector<std::vector<SliceLshCandidate>>& candidates) = 0;

  // Adds a chunk with its super-features, shape().tables of them. Merges the buffer first if it is
  // full. A repetition adds nothing.
  virtual Status Add(std::span<const uint64_t> features, const SliceLshPlace& place) = 0;
  // Merges the buffer into slicetables, and makes them durable.
  virtual Status Flush() = 0;

  // Reads all pages. Calls `report` with one sentence for each fault.
  virtual Status Verify(const std::function<void(const std::string&)>& report) = 0;
  virtual SliceLshStats stats() const = 0;
  // Flushes. No call that writes may follow, except another Close, which does nothing. The
  // destructor does not close.
  virtual Status Close() = 0;
};

}  // namespace siltfs
