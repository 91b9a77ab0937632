// The references of one commit in the order of an index. While the index is listed in this order,
// the caller asks for each entry whether there is a reference to it.
//
// There are two ways to order references in bounded memory. SortedReferences sorts them in files
// (reference_sorter.h), and metadata is walked once. RangedReferences divides the order into ranges
// whose references fit into memory, walks metadata once for each range, and writes nothing.
//
// Thread-safety: one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fs/mark/reference_sorter.h"
#include "store/env/page_allocator.h"

namespace siltfs {

class OrderedReferences {
 public:
  virtual ~OrderedReferences() = default;
  // Whether there is a reference at this place in the order. Each call must have the same `order`
  // as the call before, or a higher one.
  virtual Result<bool> Contains(uint64_t order) = 0;
};

class SortedReferences final : public OrderedReferences {
 public:
  // `sorter` has been sorted, and must outlive this object. `missed` is called once for every
  // reference for which Contains was not called; it may be empty.
  explicit SortedReferences(ReferenceSorter& sorter,
                            std::function<void(uint64_t order)> missed = {})
      : sorter_(sorter), missed_(std::move(missed)) {}
  Result<bool> Contains(uint64_t order) override;
  // Call after the last Contains: reports the remaining references as missed.
  Status Finish();

 private:
  Status Skip();

  ReferenceSorter& sorter_;
  const std::function<void(uint64_t order)> missed_;
  std::optional<uint64_t> told_;  // the last reference found by Contains or passed to `missed`
};

class RangedReferences final : public OrderedReferences {
 public:
  // Calls `add` with the place of every reference. Every walk adds the same places.
  using Walk = std::function<Status(const std::function<void(uint64_t order)>& add)>;
  RangedReferences(Walk walk, size_t memory_bytes);

  // Walks metadata at the beginning of each range.
  Result<bool> Contains(uint64_t order) override;
  uint64_t walks() const { return walks_; }

 private:
  Status Load(uint64_t first);
  void Add(uint64_t order);
  void SortAndDropRepeated();
  uint64_t GuessLast(uint64_t first) const;

  const Walk walk_;
  const size_t capacity_;
  // The range that is in memory: all references in [first_, last_].
  uint64_t first_ = 0;
  uint64_t last_ = 0;
  PageVector<uint64_t> orders_;
  size_t at_ = 0;
  uint64_t walks_ = 0;
};

}  // namespace siltfs
