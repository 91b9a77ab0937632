// What an engine with page files implements: the partitions of its index. FlashIndex
// (flash_index.h) does the rest, which is the same for all of these engines: it finds the partition
// of a hash, keeps the log of puts, makes checkpoints, splits partitions, lists and verifies the
// index, and keeps memory below its limit.
//
// A partition holds all entries whose hashes begin with its prefix: the newest in a buffer in
// memory, and all others in its structure on flash. A version is the structure at one moment; it
// never changes. A put goes into the buffer. When the buffer refuses it, WriteBuffer makes a new
// version with the buffer's entries. When there is no room for that (WantsRewrite), FlashIndex
// lists the partition's entries and fills new partitions with them: one of the same prefix, or
// several of longer prefixes.
//
// Thread-safety: Begin, TakeSnapshot, AddStats and the counters may be called from any thread, as
// may all calls of a version. The other calls of a partition write, and are made one at a time.
// Errors: kIoError and kNoSpace from the device. After an error a partition is as before the call;
// pages that it has appended are released again.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "index/flash/channel_order.h"
#include "index/flash/flash_page.h"
#include "index/flash/page_files.h"

namespace siltfs {

// The leading bits of the hashes of a partition.
struct HashPrefix {
  static constexpr unsigned kMostDepth = 24;

  uint64_t first = 0;  // the least hash with this prefix
  unsigned depth = 0;  // number of leading bits

  uint64_t last() const { return depth == 0 ? UINT64_MAX : first | (UINT64_MAX >> depth); }
  bool Has(uint64_t hash) const { return hash >= first && hash <= last(); }
  HashPrefix Child(bool second) const {
    return {first | (second ? uint64_t{1} << (63 - depth) : 0), depth + 1};
  }
  friend bool operator==(const HashPrefix&, const HashPrefix&) = default;
};

// What all partitions of an index share.
struct FlashContext {
  PageFiles& files;
  const bool read_only;
  const std::function<std::function<bool(SegmentId)>()> present_gone = {};
  // Sums over all partitions. Each partition adds what it allocates and subtracts what it frees.
  std::atomic<uint64_t> buffer_bytes{0};
  std::atomic<uint64_t> filter_bytes{0};
  std::atomic<uint64_t> table_bytes{0};  // what lookups cannot do without
  std::atomic<uint64_t> damaged_filters{0};
  // Damaged pages that partitions have met while they wrote; their entries are lost. FlashIndex
  // counts those that it meets itself.
  std::atomic<uint64_t> damaged_pages{0};

  // The function that SetGone was given last (chunk_index.h); may be empty. A partition that writes
  // entries again leaves out those of gone segments, unless they hide older entries.
  std::function<bool(SegmentId)> gone() const {
    return present_gone ? present_gone() : std::function<bool(SegmentId)>();
  }
};

// A part of one of the sums of FlashContext. Belongs to one thread at a time.
class MemoryShare {
 public:
  explicit MemoryShare(std::atomic<uint64_t>& sum) : sum_(sum) {}
  ~MemoryShare() { Set(0); }
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;

  void Set(uint64_t bytes) {
    sum_.fetch_add(bytes - bytes_, std::memory_order_relaxed);
    bytes_ = bytes;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  std::atomic<uint64_t>& sum_;
  uint64_t bytes_ = 0;
};

// The state of a lookup in a version. The version uses the fields from `step` on as it likes.
struct LookupState {
  uint64_t hash = 0;
  // Set by the version, or by the buffer; may be a tombstone.
  std::optional<FlashEntry> found;
  // Set by NextPage if damage of this page loses no entry, because the lookup finds all entries
  // without it. FlashIndex does not count such damage.
  bool page_is_spare = false;

  uint32_t step = 0;
  uint32_t part = 0;
  std::array<uint64_t, 2> words = {};
  PageAddress page;
  std::vector<PageAddress> pages;
};

// A fault that a version has found in its own structure. Damaged pages are found and reported by
// FlashIndex.
using ReportFault = std::function<void(const std::string& code, const std::string& text)>;

class FlashVersion {
 public:
  virtual ~FlashVersion() = default;

  // The page that the lookup must read next; nothing if it has ended. Not called again after
  // `found` was set.
  virtual std::optional<PageAddress> NextPage(LookupState& state) const = 0;
  // Passes in the page of the last NextPage; nothing if it is damaged.
  virtual void Take(LookupState& state, std::optional<ConstPageBytes> page) const = 0;

  // Calls `add` with all entries, tombstones included; a newer entry of a hash comes before an
  // older one. Counts damaged pages, whose entries are left out.
  using Add = std::function<void(const FlashEntry& entry)>;
  virtual Status Collect(const Add& add, uint64_t& damaged_pages) const = 0;
  // Checks what checksums do not show, such as entries that lookups do not find.
  virtual Status Verify(const ReportFault& report) const = 0;
};

struct PartitionSnapshot {
  std::vector<FlashEntry> buffered;             // each hash once
  std::shared_ptr<const FlashVersion> version;  // null: nothing on flash
};

class FlashPartition {
 public:
  FlashPartition(FlashContext& context, uint64_t id, const HashPrefix& prefix)
      : context_(context), id_(id), prefix_(prefix) {}
  virtual ~FlashPartition() = default;
  FlashPartition(const FlashPartition&) = delete;
  FlashPartition& operator=(const FlashPartition&) = delete;

  uint64_t id() const { return id_; }  // never used again in an index
  const HashPrefix& prefix() const { return prefix_; }

  // --- Reading ---

  // Searches the buffer. Returns the version to continue with; null if the hash was found or cannot
  // be in a version.
  virtual std::shared_ptr<const FlashVersion> Begin(LookupState& state) const = 0;
  // The device channel that a lookup of this hash probably reads from first, below
  // FlashEngine::channels(), or kNoChannel (channel_order.h). Called only if there are channels.
  virtual uint32_t ChannelOf(uint64_t /*hash*/) const { return kNoChannel; }
  virtual PartitionSnapshot TakeSnapshot() const = 0;
  virtual void AddStats(std::vector<IndexComponentStats>& stats) const = 0;
  virtual uint64_t buffered_entries() const = 0;

  // --- Writing ---

  // Inserts or replaces an entry in the buffer. Returns false if the buffer is full.
  virtual bool Insert(const FlashEntry& entry) = 0;
  // The same for an entry of the log of puts. The buffer may become larger than usual.
  virtual void InsertReplayed(const FlashEntry& entry) = 0;
  // Whether the version has no room for the buffer.
  virtual bool WantsRewrite() const = 0;
  // Moves the buffer to flash. Requires !WantsRewrite().
  virtual Status WriteBuffer() = 0;
  // Fills a new partition with entries, in order of their hashes, each hash once, without
  // tombstones. Called once, before any other call. There may be more entries than MostEntries.
  virtual Status Fill(std::span<const FlashEntry> entries) = 0;
  // A rewrite splits the partition if it has more entries than this.
  virtual uint64_t MostEntries() const = 0;
  // Calls `visit` with the files in which the partition has pages, and how many. May name a file
  // more than once.
  using VisitFile = std::function<void(uint64_t file, uint64_t pages)>;
  virtual void ForEachFile(const VisitFile& visit) const = 0;
  // Moves the partition's pages out of a file, if that is possible without a rewrite. Returns false
  // if it is not.
  virtual Result<bool> MoveOut(uint64_t /*file*/) { return false; }
  // Releases all pages. The partition is no longer part of the index; readers may still have it.
  virtual void ReleaseAll() = 0;
  // The partition's state for the manifest, without the buffer.
  virtual std::string Encode() const = 0;

  // --- Memory ---

  // Filters and other structures that lookups can do without. Their memory is part of
  // FlashContext::filter_bytes.
  virtual void DropFilters() {}
  virtual bool HasDroppedFilters() const { return false; }
  // An upper bound of the memory that LoadFilters allocates.
  virtual uint64_t DroppedFilterBytes() const { return 0; }
  virtual Status LoadFilters() { return Status::Ok(); }
  // Writes filters that were dropped and are not on flash, if lookups would read more pages than
  // with filters on flash. Returns whether the version has changed.
  virtual Result<bool> WriteDroppedFilters() { return false; }

  // Structures that save fewer reads for their memory than the filters. FlashIndex drops them
  // before any filter, and loads them after all filters. Their memory, too, is part of
  // FlashContext::filter_bytes.
  virtual void DropExtras() {}
  virtual bool HasDroppedExtras() const { return false; }
  virtual uint64_t DroppedExtraBytes() const { return 0; }
  virtual Status LoadExtras() { return Status::Ok(); }

  // Lookups that a filter can help. FlashIndex keeps the filters of partitions with many lookups in
  // memory. An engine that does not count them has its filters kept in the order of the partitions.
  mutable std::atomic<uint64_t> lookups{0};

  // --- For FlashIndex ---

  // Entries of the log of puts from this number on may be in the buffer only.
  uint64_t log_from = 0;
  bool changed = true;  // since the last checkpoint

 protected:
  FlashContext& context() const { return context_; }
  PageFiles& files() const { return context_.files; }

 private:
  FlashContext& context_;
  const uint64_t id_;
  const HashPrefix prefix_;
};

// Makes the partitions of one index.
class FlashEngine {
 public:
  virtual ~FlashEngine() = default;

  virtual std::string_view name() const = 0;
  // The engine's logs; FlashIndex appends the log of puts. `directory` is the index's. The logs
  // must not depend on the parameters: they are needed before these are known.
  virtual std::vector<PageLogSpec> Logs(const std::string& directory) const = 0;
  // The parameters that the index was made with, for the manifest, and back. kCorruption if the
  // bytes are not as EncodeParameters writes them.
  virtual std::string EncodeParameters() const = 0;
  virtual Status DecodeParameters(ByteView bytes) = 0;
  // The number of subdirectories (index/device_directories.h) that the logs use, with these
  // parameters. FlashIndex makes missing ones.
  virtual unsigned DeviceDirectories() const { return 0; }
  // A new, empty partition.
  virtual std::unique_ptr<FlashPartition> Make(FlashContext& context, uint64_t id,
                                               const HashPrefix& prefix) const = 0;
  // The partition whose state is `state`. Loads no filters: a partition that has filters on flash
  // begins without them. kCorruption if the state is invalid.
  virtual Result<std::unique_ptr<FlashPartition>> Open(FlashContext& context, uint64_t id,
                                                       const HashPrefix& prefix,
                                                       ByteView state) const = 0;
  // The memory of a partition's buffer when it is full.
  virtual uint64_t BufferBytes() const = 0;
  // The number of device channels over which the lookups of a batch are spread; 0: the lookups keep
  // their order.
  virtual uint32_t channels() const { return 0; }
};

}  // namespace siltfs
