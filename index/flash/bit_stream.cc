#include "index/flash/bit_stream.h"

namespace siltfs {

void BitWriter::Flush() {
  const auto word = static_cast<uint32_t>(pending_);
  const size_t size = bytes_.size();
  bytes_.resize(size + 4);
  for (unsigned i = 0; i < 4; ++i) bytes_[size + i] = static_cast<uint8_t>(word >> (8 * i));
  pending_ >>= 32;
  pending_bits_ -= 32;
}

Bytes BitWriter::Take(size_t padding) {
  const size_t left = (pending_bits_ + 7) / 8;
  bytes_.reserve(bytes_.size() + left + padding);
  for (size_t i = 0; i < left; ++i) bytes_.push_back(static_cast<uint8_t>(pending_ >> (8 * i)));
  bytes_.resize(bytes_.size() + padding);
  bytes_.shrink_to_fit();
  pending_ = 0;
  pending_bits_ = 0;
  return std::exchange(bytes_, {});
}

}  // namespace siltfs
