#include "chunker/chunker.h"

#include <algorithm>

namespace siltfs {

ChunkerTables::ChunkerTables(const ChunkerParameters& parameters, const ChunkerKernel& kernel)
    : parameters_(parameters),
      condition_(RabinTables(parameters.polynomial), parameters.MatchLimit()),
      kernel_(kernel) {}

Result<std::shared_ptr<const ChunkerTables>> ChunkerTables::Create(
    const ChunkerParameters& parameters) {
  SILTFS_ASSIGN_OR_RETURN(const ChunkerKernel* kernel, ChosenKernel());
  return Create(parameters, *kernel);
}

Result<std::shared_ptr<const ChunkerTables>> ChunkerTables::Create(
    const ChunkerParameters& parameters, const ChunkerKernel& kernel) {
  SILTFS_RETURN_IF_ERROR(parameters.Validate());
  return std::shared_ptr<const ChunkerTables>(new ChunkerTables(parameters, kernel));
}

std::optional<size_t> ChunkerTables::FindCut(ByteView data) const {
  const size_t last = std::min<size_t>(data.size(), parameters_.max);
  const size_t cut = FindMatch(kernel_, condition_, data.data(), parameters_.min, last);
  if (cut != kNoMatch) return cut;
  if (last == parameters_.max) return last;
  return std::nullopt;
}

std::vector<uint32_t> ChunkerTables::CutAll(ByteView data) const {
  std::vector<uint32_t> lengths;
  lengths.reserve(data.size() / parameters_.avg + 1);
  CutSequence cuts(*this, data);
  size_t rest = data.size();
  while (rest > 0) {
    const size_t length = cuts.Next().value_or(rest);
    lengths.push_back(static_cast<uint32_t>(length));
    rest -= length;
  }
  return lengths;
}

std::optional<size_t> CutSequence::Next() {
  const std::optional<size_t> length =
      tables_.kernel().scan == nullptr ? tables_.FindCut(data_.subspan(begin_)) : FindNext();
  if (length) begin_ += *length;
  return length;
}

// Windows are numbered by their start offsets here; a chunk can end where a window ends.
std::optional<size_t> CutSequence::FindNext() {
  const ChunkerParameters& parameters = tables_.parameters();
  const size_t longest = std::min<size_t>(data_.size() - begin_, parameters.max);
  const size_t stop = begin_ + longest + 1 - std::min(longest + 1, kWindowSize);
  for (size_t from = begin_ + parameters.min - kWindowSize; from < stop;) {
    if (from >= matches_begin_ + matches_.windows()) {
      matches_begin_ = from;
      const size_t windows = data_.size() + 1 - kWindowSize - from;
      matches_.Scan(tables_.kernel().scan, tables_.condition(), data_.data() + from,
                    std::min(windows, MatchMap::kMaxWindows));
    }
    const size_t match = matches_.FirstFrom(from - matches_begin_);
    from = matches_begin_ + std::min(match, matches_.windows());
    if (match != kNoMatch && from < stop) return from + kWindowSize - begin_;
  }
  if (longest == parameters.max) return longest;
  return std::nullopt;
}

std::optional<size_t> Chunker::Next(ByteView data) {
  const size_t room = tables_->parameters().max - pending_;
  size_t cut = FindEnd(data.first(std::min(data.size(), room)));
  if (cut == kNoMatch && data.size() >= room) cut = room;
  if (cut == kNoMatch) {
    Remember(data);
    return std::nullopt;
  }
  pending_ = 0;
  return cut;
}

// Returns the smallest n such that a matching window ends after the first n bytes of `data`, or
// kNoMatch. If n is below 64, the window began in an earlier piece of the stream. So such windows
// are searched in a copy of the bytes on both sides of the border. No window begins before the
// chunk, so bytes in tail_ that are older than the chunk are never read.
size_t Chunker::FindEnd(ByteView data) const {
  const CutCondition& condition = tables_->condition();
  const size_t min = tables_->parameters().min;
  // At least 1, because the previous call would have found a chunk end at the end of its piece.
  const size_t first = pending_ < min ? min - pending_ : 1;
  if (first < kWindowSize) {
    std::array<uint8_t, 2 * kWindowSize> seam;
    const ByteView head = data.first(std::min(data.size(), kWindowSize));
    std::copy(tail_.begin(), tail_.end(), seam.begin());
    std::copy(head.begin(), head.end(), seam.begin() + kWindowSize);
    const size_t end = FindMatch(tables_->kernel(), condition, seam.data(), kWindowSize + first,
                                 kWindowSize + head.size());
    if (end != kNoMatch) return end - kWindowSize;
  }
  return FindMatch(tables_->kernel(), condition, data.data(), std::max(first, kWindowSize),
                   data.size());
}

void Chunker::Remember(ByteView data) {
  pending_ += data.size();
  const ByteView end = data.last(std::min(data.size(), kWindowSize));
  std::copy(tail_.begin() + static_cast<ptrdiff_t>(end.size()), tail_.end(), tail_.begin());
  std::copy(end.begin(), end.end(), tail_.end() - static_cast<ptrdiff_t>(end.size()));
}

}  // namespace siltfs
