// A RunStore, or sorted run: a LogStore's newest entries, tombstones included, in the order of
// their hashes, with page boundaries and a ribbon filter (run_filter.h). It takes the place of a
// HashStore. Not in the SILT paper, which sorts HashStores only when they are merged (section 3.3).
//
// A conversion sorts the entries of one log in memory, so a merge reads each run once, with a
// cursor of a few pages (run_store_merge.h). The filter takes 1.1 bits of memory per entry and
// slice, and slots need no free places. Without the filter in memory a lookup reads one page, which
// the boundaries name; a HashStore needs two. The boundaries take some ten bits a page and are
// always in memory.
//
// Thread-safety: const, so any thread may call. Memory: the boundaries, and the filter if loaded.
// Durability: frozen_file.h. Format: docs/format.md, "SILT RunStore".
#pragma once

#include <memory>
#include <optional>

#include "index/flash/page_bounds.h"
#include "index/silt/converted_store.h"
#include "index/silt/log_store.h"
#include "index/silt/run_filter.h"

namespace siltfs {

// Whether the file of a converted log is a sorted run, and no HashStore.
inline bool IsRunStore(const FrozenFileInfo& info) {
  return info.page_index == PageIndexKind::kBounds;
}

class RunStore final : public ConvertedStore {
 public:
  // Gets the opened file and reads the boundaries, without the filter. kCorruption if the file is
  // no sorted run of a partition of this size; kIoError.
  static Result<std::shared_ptr<const RunStore>> Of(std::shared_ptr<const FrozenFile> file,
                                                    unsigned partition_bits);

  struct WriteOptions {
    unsigned partition_bits = 0;
    double runs_per_partition = 0;  // on average
  };
  // Writes the file of a run with all entries in the table of `log`, which must be frozen and have
  // hashed slots. Returns nothing if the log has no entries, or if so many of its hashes are
  // neighbours that a page has no room for them. Memory: the log's pages, 16 bytes for each entry,
  // and that of RunFilter.
  static Result<std::optional<ConvertedFile>> WriteFrom(const LogStore& log, Env& env,
                                                        const std::string& directory,
                                                        const StoreFileId& id, Throttle& throttle,
                                                        const WriteOptions& options);

  Places PlacesOf(uint64_t hash) const override;
  void Prefetch(uint64_t hash) const override {
    if (filter_) filter_->Prefetch(hash);
  }
  bool has_filter() const override { return filter_ != nullptr; }
  Result<std::shared_ptr<const ConvertedStore>> WithFilter() const override;
  std::shared_ptr<const ConvertedStore> WithoutFilter() const override;
  uint64_t filter_bytes() const override { return filter_bytes_; }
  bool sorted() const override { return true; }
  Result<Finder> ReadFinder() const override;
  IndexComponentStats Stats() const override;

  // The filter; null if it was left out of memory.
  const RunFilter* filter() const { return filter_.get(); }
  const PageBounds& bounds() const { return *bounds_; }

 private:
  RunStore(std::shared_ptr<const FrozenFile> file, std::shared_ptr<const PageBounds> bounds,
           uint64_t filter_bytes, std::shared_ptr<const RunFilter> filter,
           std::shared_ptr<StoreCounters> counters)
      : ConvertedStore(std::move(file), std::move(counters)),
        bounds_(std::move(bounds)),
        filter_bytes_(filter_bytes),
        filter_(std::move(filter)) {}
  Result<RunFilter> ReadFilter() const;

  const std::shared_ptr<const PageBounds> bounds_;  // shared by the copies
  const uint64_t filter_bytes_;                     // in memory
  const std::shared_ptr<const RunFilter> filter_;
};

}  // namespace siltfs
