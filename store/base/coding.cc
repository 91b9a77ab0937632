#include "store/base/coding.h"

#include <cassert>

namespace siltfs {
namespace {

void AppendLittle(std::string& out, uint64_t v, size_t width) {
  char bytes[8];
  for (size_t i = 0; i < width; ++i) bytes[i] = static_cast<char>(v >> (8 * i));
  out.append(bytes, width);
}

void AppendBig(std::string& out, uint64_t v, size_t width) {
  char bytes[8];
  for (size_t i = 0; i < width; ++i) bytes[i] = static_cast<char>(v >> (8 * (width - 1 - i)));
  out.append(bytes, width);
}

}  // namespace

Encoder& Encoder::U8(uint8_t v) {
  AppendLittle(buffer_, v, 1);
  return *this;
}
Encoder& Encoder::U16(uint16_t v) {
  AppendLittle(buffer_, v, 2);
  return *this;
}
Encoder& Encoder::U24(uint32_t v) {
  assert(v < (1U << 24));
  AppendLittle(buffer_, v, 3);
  return *this;
}
Encoder& Encoder::U32(uint32_t v) {
  AppendLittle(buffer_, v, 4);
  return *this;
}
Encoder& Encoder::U64(uint64_t v) {
  AppendLittle(buffer_, v, 8);
  return *this;
}
Encoder& Encoder::BigU32(uint32_t v) {
  AppendBig(buffer_, v, 4);
  return *this;
}
Encoder& Encoder::BigU64(uint64_t v) {
  AppendBig(buffer_, v, 8);
  return *this;
}
Encoder& Encoder::Raw(ByteView bytes) {
  buffer_.append(AsText(bytes));
  return *this;
}
Encoder& Encoder::Text16(std::string_view text) {
  assert(text.size() <= 0xffff);
  U16(static_cast<uint16_t>(text.size()));
  return Raw(text);
}
Encoder& Encoder::Zeros(size_t count) {
  buffer_.append(count, '\0');
  return *this;
}

uint64_t Decoder::Little(size_t width) {
  ByteView bytes = Raw(width);
  uint64_t v = 0;
  for (size_t i = 0; i < bytes.size(); ++i) v |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  return v;
}

uint64_t Decoder::Big(size_t width) {
  ByteView bytes = Raw(width);
  uint64_t v = 0;
  for (uint8_t byte : bytes) v = v << 8 | byte;
  return v;
}

uint8_t Decoder::U8() { return static_cast<uint8_t>(Little(1)); }
uint16_t Decoder::U16() { return static_cast<uint16_t>(Little(2)); }
uint32_t Decoder::U24() { return static_cast<uint32_t>(Little(3)); }
uint32_t Decoder::U32() { return static_cast<uint32_t>(Little(4)); }
uint64_t Decoder::U64() { return Little(8); }
uint32_t Decoder::BigU32() { return static_cast<uint32_t>(Big(4)); }
uint64_t Decoder::BigU64() { return Big(8); }

ByteView Decoder::Raw(size_t count) {
  if (!ok_ || count > rest_.size()) {
    ok_ = false;
    return {};
  }
  ByteView bytes = rest_.first(count);
  rest_ = rest_.subspan(count);
  return bytes;
}

std::string_view Decoder::Text16() {
  size_t size = U16();
  return AsText(Raw(size));
}

}  // namespace siltfs
