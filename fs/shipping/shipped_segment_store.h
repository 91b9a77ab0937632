// The place of sealed segments of a store whose commits are shipped to a bucket.
//
// A change that takes a content away waits until the bucket has all commits and segments up to now:
// the intent of a replacement, the commit that frees a removed segment, and the content that is
// taken away, because commits in the bucket may refer to it. So the bucket never has commits
// without their segments, and no upload has to be cancelled or held back. Removals and replacements
// come from background jobs and from the opening of a store, for which the wait is short compared
// to their work. PrepareReplace waits before the replacement is announced, so that a bucket without
// answers leads to no announced replacement.
//
// Thread-safety and errors: segment_store.h. If the bucket does not get the commits in time,
// Replace and Remove return kNoSpace: nothing was changed, and the call may be repeated. kReadOnly
// if another writer has taken over. After Shipper::BeginClosing, no call waits. Ownership: all must
// outlive the store.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fs/shipping/shipper.h"
#include "store/segment/segment_store.h"

namespace siltfs {

class ShippedSegmentStore final : public SegmentStore {
 public:
  ShippedSegmentStore(SegmentStore& base, Shipper& shipper, std::chrono::nanoseconds timeout)
      : base_(base), shipper_(shipper), timeout_(timeout) {}

  const std::string& name() const override { return base_.name(); }
  std::string NameOf(SegmentId id) const override { return base_.NameOf(id); }
  std::optional<SegmentId> IdOf(std::string_view name) const override { return base_.IdOf(name); }
  Result<std::unique_ptr<const ReadableFile>> Open(SegmentId id) override { return base_.Open(id); }
  uint64_t UnansweredReads() const override { return base_.UnansweredReads(); }
  Status Put(SegmentId id, const SegmentSource& source) override { return base_.Put(id, source); }
  Status PrepareReplace(SegmentId id) override { return AwaitBucket(id); }
  Status Replace(SegmentId id, const SegmentSource& source) override;
  Status Remove(SegmentId id) override;
  std::optional<uint32_t> EpochOf(SegmentId id) override { return base_.EpochOf(id); }
  Result<SegmentListing> List() override { return base_.List(); }
  Result<SegmentListing> Recover() override { return base_.Recover(); }
  Status FinishPuts(const std::function<bool(SegmentId)>& is_sealed) override {
    return base_.FinishPuts(is_sealed);
  }

 private:
  Status AwaitBucket(SegmentId id);

  SegmentStore& base_;
  Shipper& shipper_;
  const std::chrono::nanoseconds timeout_;
};

}  // namespace siltfs
