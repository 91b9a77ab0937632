#include "index/flash/page_bounds.h"

#include <algorithm>
#include <bit>

namespace siltfs {
namespace {

constexpr uint8_t kFormat = 2;  // a trie's first byte is 1
constexpr unsigned kMaxSkipBits = 32;
constexpr unsigned kMaxLowWidth = 32;
constexpr uint64_t kSampled = 64;  // zeros for each sample
constexpr unsigned kWordBits = 64;
constexpr size_t kWordBytes = 8;
constexpr size_t kReadAhead = 8;  // bytes behind the last one that BitReader may touch

size_t BytesFor(uint64_t bits) { return (bits + 7) / 8; }

// Returns the position of the one with this number, counted from 0. The word must have it.
unsigned OneOfWord(uint64_t word, unsigned number) {
  unsigned position = 0;
  for (unsigned width = kWordBits / 2; width > 0; width /= 2) {
    const uint64_t low = word & ((uint64_t{1} << width) - 1);
    const auto ones = static_cast<unsigned>(std::popcount(low));
    if (number < ones) {
      word = low;
    } else {
      number -= ones;
      word >>= width;
      position += width;
    }
  }
  return position;
}

Status Damaged(const char* what) { return {StatusCode::kCorruption, what}; }

}  // namespace

uint64_t PageBounds::LowBits(uint32_t start) const {
  const BitReader reader(low_.data(), uint64_t{start} * low_width_);
  return reader.Peek() & ((uint64_t{1} << low_width_) - 1);
}

uint64_t PageBounds::HighWord(uint64_t word) const {
  return Decoder(ByteView(high_).subspan(word * kWordBytes, kWordBytes)).U64();
}

uint64_t PageBounds::ZeroAt(uint64_t number) const {
  uint64_t position = zero_samples_[number / kSampled];
  auto left = static_cast<unsigned>(number % kSampled);
  uint64_t word = position / kWordBits;
  // Zeros from the sampled one on.
  uint64_t zeros = ~HighWord(word) >> (position % kWordBits) << (position % kWordBits);
  for (;;) {
    const auto count = static_cast<unsigned>(std::popcount(zeros));
    if (left < count) return word * kWordBits + OneOfWord(zeros, left);
    left -= count;
    zeros = ~HighWord(++word);
  }
}

PageBounds::Range PageBounds::PagesOf(uint64_t hash) const {
  const uint64_t bin = bins_.Of(hash);
  const uint64_t high = bin >> low_width_;
  const uint64_t low = bin & ((uint64_t{1} << low_width_) - 1);
  // The ones before this zero are the starts with lower high bits.
  uint64_t position = high == 0 ? 0 : ZeroAt(high - 1) + 1;
  auto start = static_cast<uint32_t>(position - high);
  uint32_t equal = 0;
  for (; HighBit(position); ++position, ++start) {
    const uint64_t start_low = LowBits(start);
    if (start_low > low) break;
    equal += start_low == low ? 1 : 0;
  }
  // `start` is the number of starts up to this bin, and so the last page that may have it. If
  // several pages begin with the bin, it began in the first of them.
  return {.first = start - std::max(equal, 1U) + 1, .last = start};
}

size_t PageBounds::memory_bytes() const {
  return low_.capacity() + high_.capacity() + zero_samples_.capacity() * sizeof(uint32_t);
}

bool PageBounds::IndexZeros() {
  zero_samples_.clear();
  zero_samples_.reserve((zeros() + kSampled - 1) / kSampled);
  uint64_t ones = 0;
  uint64_t number = 0;
  for (uint64_t word = 0; word * kWordBits < high_bits(); ++word) {
    const auto bits =
        static_cast<unsigned>(std::min<uint64_t>(kWordBits, high_bits() - word * kWordBits));
    const uint64_t mask = bits == kWordBits ? UINT64_MAX : (uint64_t{1} << bits) - 1;
    const uint64_t set = HighWord(word) & mask;
    const auto zeros = static_cast<uint64_t>(bits - static_cast<unsigned>(std::popcount(set)));
    const uint64_t next = (number + kSampled - 1) / kSampled * kSampled;  // to be sampled
    if (next < number + zeros) {
      const unsigned place = OneOfWord(~set & mask, static_cast<unsigned>(next - number));
      zero_samples_.push_back(static_cast<uint32_t>(word * kWordBits + place));
    }
    number += zeros;
    ones += static_cast<uint64_t>(std::popcount(set));
  }
  return ones == starts() && number == zeros();
}

// Whether `holds` is true for each page's first bin and the one before it, except for page 0, which
// begins with bin 0.
template <typename Holds>
bool PageBounds::EachStart(const Holds& holds) const {
  uint64_t high = 0;
  uint64_t last = 0;
  uint32_t start = 0;
  for (uint64_t position = 0; position < high_bits(); ++position) {
    if (!HighBit(position)) {
      ++high;
      continue;
    }
    const uint64_t bin = high << low_width_ | LowBits(start++);
    if (!holds(last, bin)) return false;
    last = bin;
  }
  return true;
}

bool PageBounds::Ascends() const {
  return EachStart([&](uint64_t last, uint64_t bin) { return last <= bin && bin < bins_.count; });
}

bool PageBounds::EachBinInOnePage() const {
  return EachStart([](uint64_t last, uint64_t bin) { return last != bin; });
}

void PageBounds::Encode(Encoder& out) const {
  out.U8(kFormat).U8(static_cast<uint8_t>(bins_.skip_bits)).U8(static_cast<uint8_t>(low_width_));
  out.U64(bins_.count).U32(pages_);
  out.Raw(ByteView(low_).first(BytesFor(uint64_t{starts()} * low_width_)));
  out.Raw(ByteView(high_).first(BytesFor(high_bits())));
}

Result<PageBounds> PageBounds::Decode(ByteView bytes) {
  Decoder in(bytes);
  PageBounds bounds;
  const uint8_t format = in.U8();
  bounds.bins_.skip_bits = in.U8();
  bounds.low_width_ = in.U8();
  bounds.bins_.count = in.U64();
  bounds.pages_ = in.U32();
  if (!in.ok() || format != kFormat) return Damaged("has no page boundaries");
  if (bounds.bins_.skip_bits > kMaxSkipBits || bounds.low_width_ > kMaxLowWidth ||
      bounds.bins_.count == 0 || bounds.pages_ == 0) {
    return Damaged("has page boundaries with an invalid header");
  }
  const uint64_t most_bits = uint64_t{8} * in.remaining();
  // These checks come first, because the sums could overflow.
  if (bounds.zeros() > most_bits || bounds.starts() > most_bits) {
    return Damaged("has page boundaries that end early");
  }
  const size_t low = BytesFor(uint64_t{bounds.starts()} * bounds.low_width_);
  const size_t high = BytesFor(bounds.high_bits());
  const ByteView low_bytes = in.Raw(low);
  const ByteView high_bytes = in.Raw(high);
  if (!in.Done()) return Damaged("has page boundaries of another length");
  // 32 bits have room for every position.
  if (bounds.high_bits() > UINT32_MAX) return Damaged("has too many page boundaries");
  bounds.low_.reserve(low + kReadAhead);
  bounds.low_.assign(low_bytes.begin(), low_bytes.end());
  bounds.low_.resize(low + kReadAhead);
  bounds.high_.reserve((high + kWordBytes - 1) / kWordBytes * kWordBytes);
  bounds.high_.assign(high_bytes.begin(), high_bytes.end());
  bounds.high_.resize(bounds.high_.capacity());
  if (!bounds.IndexZeros() || !bounds.Ascends()) {
    return Damaged("has page boundaries that do not ascend");
  }
  return bounds;
}

// --- Building ---

PageBoundsBuilder::PageBoundsBuilder(const HashBins& bins, size_t entries_per_page) {
  bounds_.bins_ = bins;
  // With as many bins as entries, a page begins every `entries_per_page` bins.
  const auto width = static_cast<unsigned>(std::bit_width(std::max<size_t>(entries_per_page, 1)));
  bounds_.low_width_ = std::min(width - 1, kMaxLowWidth);
}

void PageBoundsBuilder::WriteZeros(uint64_t until) {
  while (zeros_ < until) {
    const auto count = static_cast<unsigned>(std::min<uint64_t>(until - zeros_, 32));
    high_.Write(0, count);
    zeros_ += count;
  }
}

void PageBoundsBuilder::AddPage(uint64_t first_bin) {
  if (pages_++ == 0) return;
  const unsigned width = bounds_.low_width_;
  WriteZeros(first_bin >> width);
  high_.Write(1, 1);
  low_.Write(first_bin & ((uint64_t{1} << width) - 1), width);
}

PageBounds PageBoundsBuilder::Finish() {
  bounds_.pages_ = pages_;
  WriteZeros(bounds_.zeros());
  bounds_.low_ = low_.Take(kReadAhead);
  bounds_.high_ = high_.Take(kWordBytes);
  bounds_.high_.resize(bounds_.high_.size() / kWordBytes * kWordBytes);
  bounds_.IndexZeros();
  return std::move(bounds_);
}

}  // namespace siltfs
