// The data of the writers: bytes determined by a seed, mostly repeated from other places, so that
// the store deduplicates and many rounds do not fill the disk.
#pragma once

#include <memory>

#include "store/base/bytes.h"
#include "store/base/random.h"

namespace siltfs::killtest {

// A file's bytes. They never change, except that a log's bytes grow behind `length`; all copies of
// a Content share them.
class Content {
 public:
  Content() = default;
  explicit Content(Bytes bytes);

  size_t size() const { return length_; }
  ByteView view() const { return bytes_ ? ByteView(*bytes_).first(length_) : ByteView(); }

  // Returns the content with `more` appended. Shares the bytes if they have room for more.
  Content Append(ByteView more) const;
  Content Overwrite(size_t offset, ByteView with) const;
  Content Truncate(size_t size) const;

 private:
  std::shared_ptr<Bytes> bytes_;
  size_t length_ = 0;
};

// The pool that new contents are cut from. Read-only, for all threads.
std::shared_ptr<const Bytes> MakePool(uint64_t seed);

// A quarter of all contents is unique; the others are pieces of the pool behind a few unique bytes.
Bytes MakeBytes(Random& random, ByteView pool, size_t size);

}  // namespace siltfs::killtest
