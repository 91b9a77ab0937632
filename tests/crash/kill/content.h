// The data of the writers: bytes determined by a seed. Most bytes are repeated from other places,
// so that the store deduplicates them and many rounds do not fill the disk.
#pragma once

#include <memory>

#include "store/base/bytes.h"
#include "store/base/random.h"

namespace siltfs::killtest {

// The bytes of a file. All copies of a Content share one array of bytes. The first length_ bytes of
// the array never change; Append on a copy may add bytes behind them.
class Content {
 public:
  Content() = default;
  explicit Content(Bytes bytes);

  size_t size() const { return length_; }
  ByteView view() const { return bytes_ ? ByteView(*bytes_).first(length_) : ByteView(); }

  // Returns the content with `more` appended. The result shares this object's bytes if they have
  // room for more.
  Content Append(ByteView more) const;
  Content Overwrite(size_t offset, ByteView with) const;
  Content Truncate(size_t size) const;

 private:
  std::shared_ptr<Bytes> bytes_;
  size_t length_ = 0;
};

// Makes the pool of bytes that new contents are cut from. All threads may read it.
std::shared_ptr<const Bytes> MakePool(uint64_t seed);

// Makes a content. A quarter of all contents are unique; the others are a few unique bytes followed
// by a piece of the pool.
Bytes MakeBytes(Random& random, ByteView pool, size_t size);

}  // namespace siltfs::killtest
