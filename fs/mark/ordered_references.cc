#include "fs/mark/ordered_references.h"

#include <algorithm>
#include <utility>

namespace siltfs {
namespace {

constexpr size_t kLeastCapacity = 64;

}  // namespace

Result<bool> SortedReferences::Contains(uint64_t order) {
  while (!sorter_.AtEnd() && sorter_.record() < order) SILTFS_RETURN_IF_ERROR(Skip());
  const bool found = !sorter_.AtEnd() && sorter_.record() == order;
  if (found) told_ = order;
  return found;
}

Status SortedReferences::Finish() {
  while (!sorter_.AtEnd()) SILTFS_RETURN_IF_ERROR(Skip());
  return Status::Ok();
}

Status SortedReferences::Skip() {
  const uint64_t order = sorter_.record();
  if (told_ != order) {
    told_ = order;
    if (missed_) missed_(order);
  }
  return sorter_.Next();
}

RangedReferences::RangedReferences(Walk walk, size_t memory_bytes)
    : walk_(std::move(walk)), capacity_(std::max(memory_bytes / sizeof(uint64_t), kLeastCapacity)) {
  orders_.reserve(capacity_);
}

Result<bool> RangedReferences::Contains(uint64_t order) {
  if (walks_ == 0 || order > last_) SILTFS_RETURN_IF_ERROR(Load(order));
  while (at_ < orders_.size() && orders_[at_] < order) ++at_;
  return at_ < orders_.size() && orders_[at_] == order;
}

// Returns the end of the next range. The end is chosen so that the references of the range fill
// nine tenths of the memory, if they are as dense as those of the last range.
uint64_t RangedReferences::GuessLast(uint64_t first) const {
  if (walks_ == 0 || orders_.empty()) return UINT64_MAX;
  const uint64_t wanted = capacity_ / 10 * 9;
  const uint64_t step = (last_ - first_) / orders_.size() + 1;
  if (step > UINT64_MAX / wanted || step * wanted > UINT64_MAX - first) return UINT64_MAX;
  return first + step * wanted;
}

Status RangedReferences::Load(uint64_t first) {
  const uint64_t last = GuessLast(first);
  first_ = first;
  last_ = last;
  orders_.clear();
  at_ = 0;
  ++walks_;
  SILTFS_RETURN_IF_ERROR(walk_([this](uint64_t order) { Add(order); }));
  SortAndDropRepeated();
  return Status::Ok();
}

void RangedReferences::Add(uint64_t order) {
  if (order < first_ || order > last_) return;
  if (orders_.size() == capacity_) {
    SortAndDropRepeated();
    if (orders_.size() > capacity_ / 4 * 3) {
      // The range was too wide. Make it shorter; the next range will include the references that
      // are dropped here.
      orders_.resize(capacity_ / 2);
      last_ = orders_.back();
      if (order > last_) return;
    }
  }
  orders_.push_back(order);
}

void RangedReferences::SortAndDropRepeated() {
  std::sort(orders_.begin(), orders_.end());
  orders_.erase(std::unique(orders_.begin(), orders_.end()), orders_.end());
}

}  // namespace siltfs
