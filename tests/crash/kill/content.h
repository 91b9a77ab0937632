// What the writers write: bytes that a seed determines, most of them seen before in other places,
// so that the store deduplicates and many rounds do not fill the disk.
#pragma once

#include <memory>

#include "store/base/bytes.h"
#include "store/base/random.h"

namespace siltfs::killtest {

// A file's bytes. Never changed, but that those of a log grow behind `length`; shared by all who
// remember them.
class Content {
 public:
  Content() = default;
  explicit Content(Bytes bytes);

  size_t size() const { return length_; }
  ByteView view() const { return bytes_ ? ByteView(*bytes_).first(length_) : ByteView(); }

  // With `more` behind it. Shares the bytes if there is room for more in them.
  Content Append(ByteView more) const;
  Content Overwrite(size_t offset, ByteView with) const;
  Content Truncate(size_t size) const;

 private:
  std::shared_ptr<Bytes> bytes_;
  size_t length_ = 0;
};

// What new contents are cut from. Read-only, for all threads.
std::shared_ptr<const Bytes> MakePool(uint64_t seed);

// A quarter of all contents is unlike any other; the others are pieces of the pool behind a few
// unlike bytes.
Bytes MakeBytes(Random& random, ByteView pool, size_t size);

}  // namespace siltfs::killtest
