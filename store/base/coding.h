// How numbers stand on disk: fixed-width little-endian, or big-endian in keys that must sort by number.
// Structs are never written raw; every format is built from these calls, field by field.
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
  // A 16-bit length and the bytes; at most 65,535 of them.
  Encoder& Text16(std::string_view text);
  Encoder& Zeros(size_t count);

  size_t size() const { return buffer_.size(); }
  ByteView view() const { return AsBytes(buffer_); }
  const std::string& text() const { return buffer_; }
  std::string Take() { return std::move(buffer_); }

 private:
  std::string buffer_;
};

// Reads fields in order. A read past the end yields zero and makes ok() false for good, so that a parser may read
// everything first and ask once. Views returned point into the input.
class Decoder {
 public:
  explicit Decoder(ByteView input) : rest_(input) {}

  uint8_t U8();
  uint16_t U16();
  uint32_t U24();
  uint32_t U32();
  uint64_t U64();
  int64_t I64() { return static_cast<int64_t>(U64()); }
  uint32_t BigU32();
  uint64_t BigU64();
  ByteView Raw(size_t count);
  std::string_view Text16();
  void Skip(size_t count) { Raw(count); }

  bool ok() const { return ok_; }
  size_t remaining() const { return rest_.size(); }
  // All was there and nothing is left over.
  bool Done() const { return ok_ && rest_.empty(); }

 private:
  uint64_t Little(size_t width);
  uint64_t Big(size_t width);

  ByteView rest_;
  bool ok_ = true;
};

}  // namespace siltfs
