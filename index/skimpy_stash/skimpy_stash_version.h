// What readers of a SkimpyStash partition see: its log up to some page, and for listings also the
// directory of that moment. A lookup needs no directory: Begin gives it the pointers to the chains
// that the filters let pass, and pages on flash never change.
//
// Thread-safety, errors: flash_partition.h.
#pragma once

#include <optional>

#include "index/flash/flash_partition.h"
#include "index/skimpy_stash/bucket_directory.h"
#include "index/skimpy_stash/chain_log.h"

namespace siltfs {

class SkimpyStashVersion final : public FlashVersion {
 public:
  // Collect and Verify require a directory.
  SkimpyStashVersion(const PageFiles& files, const SkimpyStashShape& shape, ChainLog log,
                     std::optional<BucketDirectory> directory = std::nullopt)
      : files_(files), shape_(shape), log_(std::move(log)), directory_(std::move(directory)) {}

  const ChainLog& log() const { return log_; }
  // Begins a lookup: chooses the chains to search.
  void Begin(LookupState& state, const BucketDirectory& directory) const;

  std::optional<PageAddress> NextPage(LookupState& state) const override;
  void Take(LookupState& state, std::optional<ConstPageBytes> page) const override;
  Status Collect(const Add& add, uint64_t& damaged_pages) const override;
  Status Verify(const ReportFault& report) const override;

 private:
  const PageFiles& files_;
  const SkimpyStashShape shape_;
  const ChainLog log_;
  const std::optional<BucketDirectory> directory_;
};

}  // namespace siltfs
