// Speeds up a single lookup that needs many pages, one after the other, such as in SILT stores
// without filters in memory (SILT, section 4: right after opening, or when memory is short). There
// the lookup needs two pages of each of dozens of stores, newest first. Here these pages are read
// in parallel and examined in order. The result is the same as with sequential reads, in the time
// of a few reads. Pages of stores older than the store with the name are read needlessly.
//
// Do not use it for many lookups at once. RunLookups keeps the device busy with reads that are all
// needed.
//
// Beyond the functions of lookup_batch.h, `Lookup` has these:
//
//     // The pages, in order and at most `most`, that the lookup will need after that of the last
//     // NextRead unless it ends earlier.
//     std::vector<PageRead> ReadsToCome(size_t most) const;
//     uint32_t pages_read() const;  // pages that were passed to Take
//
// Thread-safety: functions only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "index/flash/lookup_batch.h"

namespace siltfs {

// Gives pages in the order in which a lookup needs them. For FinishLookupAhead only.
class PagesAhead {
 public:
  explicit PagesAhead(LookupReader& reader)
      : reader_(reader), most_(std::min(kPagesAhead, reader.pages.size() / kPageSize)) {}

  // Returns the page that `lookup` waits for. If it was not read yet, reads it together with the
  // next ones.
  template <typename Lookup>
  const ReadRequest& Get(const Lookup& lookup, const PageRead& page) {
    const bool there = next_ < requests_.size() && requests_[next_].file == page.file &&
                       requests_[next_].offset == page.offset;
    if (!there) Read(page, lookup.ReadsToCome(most_ - 1));
    return requests_[next_++];
  }
  uint64_t pages_read() const { return pages_read_; }

 private:
  // Pages that are read at once. If one of the first stores has the name, the pages of the other
  // stores are read needlessly, so the number is limited.
  static constexpr size_t kPagesAhead = 64;

  void Read(const PageRead& page, const std::vector<PageRead>& to_come);
  void Add(const PageRead& page);

  LookupReader& reader_;
  const size_t most_;
  std::vector<ReadRequest> requests_;
  size_t next_ = 0;  // the request whose page the lookup needs next
  uint64_t pages_read_ = 0;
};

// Finishes a lookup. It reads pages in parallel through the reader if the lookup may need several
// reads, else one after the other. An unreadable page fails the lookup only if the lookup needs it.
// Returns the number of pages read needlessly.
template <typename Lookup>
uint64_t FinishLookupAhead(Lookup& lookup, LookupReader& reader) {
  PagesAhead pages(reader);
  while (const auto read = lookup.NextRead()) {
    const ReadRequest& page = pages.Get(lookup, *read);
    lookup.Take(page.status, ConstPageBytes(page.out.data(), kPageSize));
  }
  return pages.pages_read() - lookup.pages_read();
}

}  // namespace siltfs
