// A string of bits. The first bit is the lowest bit of the first byte.
//
// Thread-safety: as for plain values.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "store/base/bytes.h"

namespace siltfs {

// Appends bits to a buffer that it owns.
class BitWriter {
 public:
  // Writes the lowest `count` bits of `bits`, lowest first; the others must be zero. count <= 32.
  void Write(uint64_t bits, unsigned count) {
    assert(count <= 32 && bits >> count == 0);
    pending_ |= bits << pending_bits_;
    pending_bits_ += count;
    if (pending_bits_ >= 32) Flush();
  }

  uint64_t bits() const { return uint64_t{8} * bytes_.size() + pending_bits_; }

  // Returns the bytes, the last one filled up with zero bits, followed by `padding` zero bytes.
  // Empties the writer.
  Bytes Take(size_t padding);

 private:
  void Flush();

  Bytes bytes_;
  uint64_t pending_ = 0;  // fewer than 32 bits between calls
  unsigned pending_bits_ = 0;
};

// Reads bits of a buffer that it does not own. It does not know the buffer's end, so the caller
// must ensure that for a read at bit position p the 8 bytes from byte p / 8 on are in the buffer.
class BitReader {
 public:
  static constexpr unsigned kPeekBits = 57;

  BitReader(const uint8_t* data, uint64_t position) : data_(data), position_(position) {}

  uint64_t position() const { return position_; }

  // Returns the next bits, the first one as the lowest bit. At least kPeekBits of them are valid.
  uint64_t Peek() const {
    uint64_t word;
    std::memcpy(&word, data_ + (position_ >> 3), sizeof word);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    return word >> (position_ & 7);
  }
  void Skip(unsigned count) { position_ += count; }

 private:
  const uint8_t* data_;
  uint64_t position_;
};

}  // namespace siltfs
