#include "chunker/chunker.h"

#include <algorithm>

namespace siltfs {

ChunkerTables::ChunkerTables(const ChunkerParameters& parameters)
    : parameters_(parameters),
      condition_{.rabin = RabinTables(parameters.polynomial), .limit = parameters.MatchLimit()} {}

Result<std::shared_ptr<const ChunkerTables>> ChunkerTables::Create(
    const ChunkerParameters& parameters) {
  SILTFS_RETURN_IF_ERROR(parameters.Validate());
  return std::shared_ptr<const ChunkerTables>(new ChunkerTables(parameters));
}

std::optional<size_t> ChunkerTables::FindCut(ByteView data) const {
  const size_t last = std::min<size_t>(data.size(), parameters_.max);
  const size_t cut = FindMatchScalar(condition_, data.data(), parameters_.min, last);
  if (cut != kNoMatch) return cut;
  if (last == parameters_.max) return last;
  return std::nullopt;
}

std::vector<uint32_t> ChunkerTables::CutAll(ByteView data) const {
  std::vector<uint32_t> lengths;
  lengths.reserve(data.size() / parameters_.avg + 1);
  while (!data.empty()) {
    const size_t length = FirstCut(data);
    lengths.push_back(static_cast<uint32_t>(length));
    data = data.subspan(length);
  }
  return lengths;
}

std::optional<size_t> Chunker::Next(ByteView data) {
  const size_t room = tables_->parameters().max - pending_;
  size_t cut = FindMatch(data.first(std::min(data.size(), room)));
  if (cut == kNoMatch && data.size() >= room) cut = room;
  if (cut == kNoMatch) {
    Remember(data);
    return std::nullopt;
  }
  pending_ = 0;
  return cut;
}

// The smallest count of bytes of `data` after which there is a match. It lies within the first 64
// bytes of `data` only if the window began in an earlier piece; those windows are looked for in a
// copy of the pieces' meeting ends. No window reaches before the chunk's start, so what of tail_ is
// older is never read.
size_t Chunker::FindMatch(ByteView data) const {
  const CutCondition& condition = tables_->condition();
  const size_t min = tables_->parameters().min;
  // Not 0: whether the chunk ends where the last piece did was decided then.
  const size_t first = pending_ < min ? min - pending_ : 1;
  if (first < kWindowSize) {
    std::array<uint8_t, 2 * kWindowSize> seam;
    const ByteView head = data.first(std::min(data.size(), kWindowSize));
    std::copy(tail_.begin(), tail_.end(), seam.begin());
    std::copy(head.begin(), head.end(), seam.begin() + kWindowSize);
    const size_t end =
        FindMatchScalar(condition, seam.data(), kWindowSize + first, kWindowSize + head.size());
    if (end != kNoMatch) return end - kWindowSize;
  }
  return FindMatchScalar(condition, data.data(), std::max(first, kWindowSize), data.size());
}

void Chunker::Remember(ByteView data) {
  pending_ += data.size();
  const ByteView end = data.last(std::min(data.size(), kWindowSize));
  std::copy(tail_.begin() + static_cast<ptrdiff_t>(end.size()), tail_.end(), tail_.begin());
  std::copy(end.begin(), end.end(), tail_.end() - static_cast<ptrdiff_t>(end.size()));
}

}  // namespace siltfs
