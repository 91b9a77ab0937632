// The names below given paths, by the inodes that have them.
//
// Not thread-safe. Memory: as passed to the sorters. Errors: those of reference_sorter.h.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "fs/mark/reference_sorter.h"
#include "fs/space/report_tree.h"
#include "store/base/result.h"

namespace siltfs {

class CountedNames {
 public:
  explicit CountedNames(std::unique_ptr<RecordSorter<TwoWords>> sorter)
      : sorter_(std::move(sorter)) {}

  Status Add(uint64_t inode, ReportTree::Place place) {
    return sorter_->Add({inode, uint64_t{place} << kNumberBits | added_++});
  }
  uint64_t added() const { return added_; }

  struct Inode {
    uint64_t number = 0;
    uint64_t names = 0;
    std::vector<ReportTree::Place> places;  // of the names, ascending, each once
  };
  // After the last Add. Then Next moves through the inodes, ascending; false at the end.
  Status Sort() { return sorter_->Sort(); }
  Result<bool> Next(Inode& inode) {
    if (sorter_->AtEnd()) return false;
    inode = {.number = sorter_->record()[0], .names = 0, .places = {}};
    while (!sorter_->AtEnd() && sorter_->record()[0] == inode.number) {
      const auto place = static_cast<ReportTree::Place>(sorter_->record()[1] >> kNumberBits);
      if (inode.places.empty() || inode.places.back() != place) inode.places.push_back(place);
      ++inode.names;
      SILTFS_RETURN_IF_ERROR(sorter_->Next());
    }
    return true;
  }

 private:
  // The sorter drops repeated records, so each name has a number.
  static constexpr unsigned kNumberBits = 40;

  const std::unique_ptr<RecordSorter<TwoWords>> sorter_;
  uint64_t added_ = 0;
};

// Whether inodes belong to a set of them. Both are asked in ascending order.
class CountedInodes {
 public:
  explicit CountedInodes(std::unique_ptr<ReferenceSorter> sorter) : sorter_(std::move(sorter)) {}

  Status Add(uint64_t inode) { return sorter_->Add(inode); }
  Status Sort() { return sorter_->Sort(); }
  Result<bool> Contains(uint64_t inode) {
    while (!sorter_->AtEnd() && sorter_->record() < inode) SILTFS_RETURN_IF_ERROR(sorter_->Next());
    return !sorter_->AtEnd() && sorter_->record() == inode;
  }

 private:
  const std::unique_ptr<ReferenceSorter> sorter_;
};

}  // namespace siltfs
