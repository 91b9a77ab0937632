// The contents of one simulated file: the image that readers see, the durable image that a power
// cut leaves, and the changes in between. Part of SimEnv (sim_env.h specifies the model); not
// thread-safe, SimDisk's mutex guards it.
//
// Both images share a page of 4 KiB until one of the images changes it. So synced bytes are held
// once, and unsynced bytes at most three times (in both images and in the journal of changes).
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/random.h"
#include "store/env/sim_env.h"

namespace siltfs {

class SimImage {
 public:
  static constexpr uint64_t kPageSize = 4096;

  uint64_t size() const { return size_; }
  size_t page_count() const { return pages_.size(); }
  // Number of present pages from page `first` on.
  uint64_t PagesFrom(uint64_t first) const {
    return static_cast<uint64_t>(std::distance(pages_.lower_bound(first), pages_.end()));
  }
  bool HasPage(uint64_t index) const { return pages_.contains(index); }

  size_t Read(uint64_t offset, MutableByteView out) const;
  void Write(uint64_t offset, ByteView data);
  void Truncate(uint64_t size);
  void ExtendTo(uint64_t size) { size_ = size > size_ ? size : size_; }
  // Replaces page `index` by that of `from`; both images then share it. Removes the page if `from`
  // has none.
  void TakePage(uint64_t index, const SimImage& from);

 private:
  using Page = std::array<uint8_t, kPageSize>;
  Page& WritablePage(uint64_t index);

  std::map<uint64_t, std::shared_ptr<Page>> pages_;  // absent pages read as zeros
  uint64_t size_ = 0;
};

class SimContent {
 public:
  const SimImage& current() const { return current_; }

  void Write(uint64_t offset, ByteView data);
  void Truncate(uint64_t size);
  void Sync();
  // Records a failed sync: bytes written since the last sync never reach the device, even if a
  // later Sync succeeds.
  void LoseUnsynced();
  void Crash(const CrashPolicy& policy, Random& random);

  // Disk space: the number of pages that are present or claimed.
  uint64_t ChargedPages() const { return charged_pages_; }
  // Whether a write to this page takes a new page of the disk.
  bool NeedsPage(uint64_t index) const;
  uint64_t PagesToClaim(uint64_t size) const;
  void Claim(uint64_t size);

 private:
  struct Change {
    bool truncates = false;
    uint64_t offset = 0;  // or the new size
    Bytes data;
  };

  void CountCharge();
  // Applies some 512-byte sectors of the change to durable_: the first sectors under kPrefix,
  // otherwise any of them.
  void ApplyTorn(const Change& change, CrashPolicy::Unsynced unsynced, Random& random);

  SimImage current_;
  SimImage durable_;
  uint64_t claimed_pages_ = 0;
  uint64_t durable_claimed_pages_ = 0;
  uint64_t charged_pages_ = 0;
  // Changes since the last sync:
  std::vector<Change> journal_;
  std::set<uint64_t> dirty_pages_;
  std::optional<uint64_t> cut_down_to_;  // the smallest size since the last sync
};

}  // namespace siltfs
