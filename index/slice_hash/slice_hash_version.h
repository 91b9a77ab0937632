// The slicetables of a partition of a SliceHash index at one moment. There is one, or one on each
// device (SliceHashOptions::spread).
//
// Thread-safety, errors: flash_partition.h.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "index/flash/flash_partition.h"
#include "index/slice_hash/slice_table.h"

namespace siltfs {

class SliceHashVersion final : public FlashVersion {
 public:
  SliceHashVersion(const FlashContext& context, const SliceShape& shape,
                   std::vector<SliceTable> tables)
      : files_(context.files), shape_(shape), tables_(std::move(tables)) {}

  std::optional<PageAddress> NextPage(LookupState& state) const override;
  void Take(LookupState& state, std::optional<ConstPageBytes> page) const override;
  Status Collect(const Add& add, uint64_t& damaged_pages) const override;
  Status Verify(const ReportFault& report) const override;

  // Oldest first. An entry in a later one hides entries of its hash in earlier ones.
  const std::vector<SliceTable>& tables() const { return tables_; }
  uint64_t filter_bytes() const;
  // The page that a lookup reads first, as its number in the newest slicetable; nothing if it
  // probably reads no page.
  std::optional<uint32_t> FirstPageOf(uint64_t hash) const;

 private:
  Status VerifyOne(const SliceTable& table, const ReportFault& report) const;

  const PageFiles& files_;
  const SliceShape shape_;
  const std::vector<SliceTable> tables_;
};

}  // namespace siltfs
