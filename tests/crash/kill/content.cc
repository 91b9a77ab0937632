#include "tests/crash/kill/content.h"

#include <algorithm>

namespace siltfs::killtest {
namespace {

constexpr size_t kPoolBytes = 16u << 20;
constexpr size_t kUnlikeBytes = 32;
constexpr size_t kLongestPiece = 512u << 10;
constexpr size_t kRoomToGrow = 256u << 10;

}  // namespace

Content::Content(Bytes bytes)
    : bytes_(std::make_shared<Bytes>(std::move(bytes))), length_(bytes_->size()) {}

Content Content::Append(ByteView more) const {
  Content grown = *this;
  const size_t wanted = length_ + more.size();
  // Only the newest copy may grow in place. It is the copy whose length is that of the shared
  // bytes.
  if (!bytes_ || bytes_->size() != length_ || bytes_->capacity() < wanted) {
    grown.bytes_ = std::make_shared<Bytes>();
    grown.bytes_->reserve(wanted + kRoomToGrow);
    grown.bytes_->assign(view().begin(), view().end());
  }
  grown.bytes_->insert(grown.bytes_->end(), more.begin(), more.end());
  grown.length_ = wanted;
  return grown;
}

Content Content::Overwrite(size_t offset, ByteView with) const {
  Bytes bytes(view().begin(), view().end());
  bytes.resize(std::max(bytes.size(), offset + with.size()));
  std::copy(with.begin(), with.end(), bytes.begin() + static_cast<ptrdiff_t>(offset));
  return Content(std::move(bytes));
}

Content Content::Truncate(size_t size) const {
  const ByteView kept = view().first(std::min(size, length_));
  return Content(Bytes(kept.begin(), kept.end()));
}

std::shared_ptr<const Bytes> MakePool(uint64_t seed) {
  auto pool = std::make_shared<Bytes>(kPoolBytes);
  Random(seed).Fill(*pool);
  return pool;
}

Bytes MakeBytes(Random& random, ByteView pool, size_t size) {
  Bytes bytes(size);
  if (random.OneIn(4)) {
    random.Fill(bytes);
    return bytes;
  }
  size_t filled = std::min(size, kUnlikeBytes);
  random.Fill(MutableByteView(bytes).first(filled));
  while (filled < size) {
    const size_t piece = std::min(size - filled, kLongestPiece);
    const ByteView from = pool.subspan(random.Below(pool.size() - piece + 1), piece);
    std::copy(from.begin(), from.end(), bytes.begin() + static_cast<ptrdiff_t>(filled));
    filled += piece;
  }
  return bytes;
}

}  // namespace siltfs::killtest
