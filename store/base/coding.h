// The encoding of numbers on disk: fixed-width little-endian, or big-endian in keys that must sort
// by number. Structs are never written raw; every format is encoded field by field with these
// calls.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "store/base/bytes.h"

namespace siltfs {

// Appends fields to a buffer the encoder owns.
class Encoder {
 public:
  Encoder& U8(uint8_t v);
  Encoder& U16(uint16_t v);
  Encoder& U24(uint32_t v);
  Encoder& U32(uint32_t v);
  Encoder& U64(uint64_t v);
  Encoder& I64(int64_t v) { return U64(static_cast<uint64_t>(v)); }
  Encoder& BigU32(uint32_t v);
  Encoder& BigU64(uint64_t v);
  Encoder& Raw(ByteView bytes);
  Encoder& Raw(std::string_view text) { return Raw(AsBytes(text)); }
  // Appends a 16-bit length and then the bytes; at most 65,535 bytes.
  Encoder& Text16(std::string_view text);
  Encoder& Zeros(size_t count);

  size_t size() const { return buffer_.size(); }
  ByteView view() const { return AsBytes(buffer_); }
  const std::string& text() const { return buffer_; }
  std::string Take() { return std::move(buffer_); }

 private:
  std::string buffer_;
};

// Reads fields in order. A read past the end yields zero and makes ok() false permanently, so a
// parser can read all fields and check once. Views returned point into the input.
class Decoder {
 public:
  explicit Decoder(ByteView input) : rest_(input) {}

  // Inlined, because tables with thousands of fields are read.
  uint8_t U8() { return static_cast<uint8_t>(Little<1>()); }
  uint16_t U16() { return static_cast<uint16_t>(Little<2>()); }
  uint32_t U24() { return static_cast<uint32_t>(Little<3>()); }
  uint32_t U32() { return static_cast<uint32_t>(Little<4>()); }
  uint64_t U64() { return Little<8>(); }
  int64_t I64() { return static_cast<int64_t>(U64()); }
  uint32_t BigU32() { return static_cast<uint32_t>(Big<4>()); }
  uint64_t BigU64() { return Big<8>(); }
  ByteView Raw(size_t count) {
    if (!ok_ || count > rest_.size()) {
      ok_ = false;
      return {};
    }
    const ByteView bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }
  std::string_view Text16();
  void Skip(size_t count) { Raw(count); }

  bool ok() const { return ok_; }
  size_t remaining() const { return rest_.size(); }
  // Whether all fields were present and no bytes remain.
  bool Done() const { return ok_ && rest_.empty(); }

 private:
  template <size_t width>
  uint64_t Little() {
    const ByteView bytes = Raw(width);
    if (bytes.size() != width) return 0;
    uint64_t v = 0;
    for (size_t i = 0; i < width; ++i) v |= static_cast<uint64_t>(bytes[i]) << (8 * i);
    return v;
  }
  template <size_t width>
  uint64_t Big() {
    const ByteView bytes = Raw(width);
    if (bytes.size() != width) return 0;
    uint64_t v = 0;
    for (size_t i = 0; i < width; ++i) v = v << 8 | bytes[i];
    return v;
  }

  ByteView rest_;
  bool ok_ = true;
};

}  // namespace siltfs
