#include "index/silt/read_ahead.h"

#include <algorithm>

namespace siltfs {
namespace {

// At once; more would be read in vain where a newer store has the name.
constexpr size_t kPagesAhead = 64;

// Pages in the order in which a lookup asks for them.
class PagesAhead {
 public:
  explicit PagesAhead(LookupReader& reader)
      : reader_(reader), most_(std::min(kPagesAhead, reader.pages.size() / kPageSize)) {}

  // The page that `lookup` waits for, of those that were read or together with what comes after it.
  const ReadRequest& Get(const Lookup& lookup, const Lookup::PageRead& page) {
    const bool there = next_ < requests_.size() && requests_[next_].file == page.file &&
                       requests_[next_].offset == page.offset;
    if (!there) Read(lookup, page);
    return requests_[next_++];
  }
  uint64_t pages_read() const { return pages_read_; }

 private:
  void Read(const Lookup& lookup, const Lookup::PageRead& page) {
    requests_.clear();
    next_ = 0;
    Add(page);
    for (const Lookup::PageRead& later : lookup.ReadsToCome(most_ - 1)) Add(later);
    pages_read_ += requests_.size();
    reader_.queue->ReadAll(requests_);
    for (const ReadRequest& request : requests_) {
      request.status.IgnoreError("for the lookup, if it comes to need the page");
      // What is missing at the file's end reads as zeros, which no name has.
      std::fill(request.out.begin() + static_cast<ptrdiff_t>(request.bytes_read), request.out.end(),
                0);
    }
  }

  void Add(const Lookup::PageRead& page) {
    ReadRequest request;
    request.file = page.file;
    request.offset = page.offset;
    request.out = reader_.pages.view().subspan(requests_.size() * kPageSize, kPageSize);
    requests_.push_back(std::move(request));
  }

  LookupReader& reader_;
  const size_t most_;
  std::vector<ReadRequest> requests_;
  size_t next_ = 0;  // to be asked for
  uint64_t pages_read_ = 0;
};

}  // namespace

uint64_t FinishLookupAhead(Lookup& lookup, LookupReader& reader) {
  PagesAhead pages(reader);
  while (const auto read = lookup.NextRead()) {
    const ReadRequest& page = pages.Get(lookup, *read);
    lookup.Take(page.status, ConstPageBytes(page.out.data(), kPageSize));
  }
  return pages.pages_read() - lookup.pages_read();
}

bool WantsReadAhead(const PartitionVersion& version) { return version.UnfilteredStores() > 1; }

}  // namespace siltfs
