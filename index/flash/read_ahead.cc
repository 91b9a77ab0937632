#include "index/flash/read_ahead.h"

namespace siltfs {

void PagesAhead::Read(const PageRead& page, const std::vector<PageRead>& to_come) {
  requests_.clear();
  next_ = 0;
  Add(page);
  for (const PageRead& later : to_come) Add(later);
  pages_read_ += requests_.size();
  reader_.queue->ReadAll(requests_);
  for (const ReadRequest& request : requests_) {
    request.status.IgnoreError("the lookup gets it if it needs the page");
    // Bytes past the file's end read as zeros, which no name has.
    std::fill(request.out.begin() + static_cast<ptrdiff_t>(request.bytes_read), request.out.end(),
              0);
  }
}

void PagesAhead::Add(const PageRead& page) {
  ReadRequest request;
  request.file = page.file;
  request.offset = page.offset;
  request.out = reader_.pages.view().subspan(requests_.size() * kPageSize, kPageSize);
  requests_.push_back(std::move(request));
}

}  // namespace siltfs
