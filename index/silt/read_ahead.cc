#include "index/silt/read_ahead.h"

#include <algorithm>

namespace siltfs {
namespace {

// Pages that are read at once. If one of the first stores has the name, the pages of the other
// stores are read needlessly, so the number is limited.
constexpr size_t kPagesAhead = 64;

// Gives pages in the order in which a lookup needs them.
class PagesAhead {
 public:
  explicit PagesAhead(LookupReader& reader)
      : reader_(reader), most_(std::min(kPagesAhead, reader.pages.size() / kPageSize)) {}

  // Returns the page that `lookup` waits for. If it was not read yet, reads it together with the
  // next ones.
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
      request.status.IgnoreError("the lookup gets it if it needs the page");
      // Bytes past the file's end read as zeros, which no name has.
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
  size_t next_ = 0;  // the request whose page the lookup needs next
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

bool WantsReadAhead(const PartitionVersion& version) {
  return std::count_if(version.hashes.begin(), version.hashes.end(),
                       [](const auto& store) { return !store->has_filter(); }) > 1;
}

}  // namespace siltfs
