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

std::string_view Decoder::Text16() {
  size_t size = U16();
  return AsText(Raw(size));
}

}  // namespace siltfs
