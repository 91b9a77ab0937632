#include "index/key_value/item.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr size_t kChecksumSize = 4;
constexpr unsigned kVarintBits = 7;
constexpr uint8_t kVarintMore = 1U << kVarintBits;
constexpr unsigned kVarintBytes = 3;
static_assert(kMaxKeySize < 1U << (kVarintBits * kVarintBytes) &&
              kMaxValueSize < 1U << (kVarintBits * kVarintBytes));

uint32_t ShortChecksum(ByteView bytes) { return static_cast<uint32_t>(Checksum(bytes)); }

size_t VarintSize(size_t value) {
  size_t size = 1;
  while ((value >>= kVarintBits) != 0) ++size;
  return size;
}

void PutVarint(Bytes& out, size_t value) {
  for (; value >= kVarintMore; value >>= kVarintBits) {
    out.push_back(static_cast<uint8_t>(value | kVarintMore));
  }
  out.push_back(static_cast<uint8_t>(value));
}

std::optional<size_t> TakeVarint(Decoder& in) {
  size_t value = 0;
  for (unsigned i = 0; i < kVarintBytes; ++i) {
    const uint8_t byte = in.U8();
    if (!in.ok()) return std::nullopt;
    value |= size_t{byte & (kVarintMore - 1U)} << (kVarintBits * i);
    if ((byte & kVarintMore) == 0) return value;
  }
  return std::nullopt;
}

struct Header {
  uint32_t checksum = 0;
  size_t header_size = 0;
  size_t key_size = 0;
  size_t value_size = 0;
};

Result<Header> DecodeHeader(ByteView bytes) {
  Decoder in(bytes);
  Header header;
  header.checksum = in.U32();
  const auto key_size = TakeVarint(in);
  const auto value_size = TakeVarint(in);
  if (!key_size || !value_size || *key_size > kMaxKeySize || *value_size > kMaxValueSize) {
    return Status(StatusCode::kCorruption, "is no valid item");
  }
  header.key_size = *key_size;
  header.value_size = *value_size;
  header.header_size = bytes.size() - in.remaining();
  return header;
}

}  // namespace

size_t ItemSize(size_t key_size, size_t value_size) {
  return kChecksumSize + VarintSize(key_size) + VarintSize(value_size) + key_size + value_size;
}

Bytes EncodeItem(const Item& item) {
  assert(item.key.size() <= kMaxKeySize && item.value.size() <= kMaxValueSize);
  Bytes out;
  out.reserve(ItemSize(item.key.size(), item.value.size()));
  out.resize(kChecksumSize);
  PutVarint(out, item.key.size());
  PutVarint(out, item.value.size());
  out.insert(out.end(), item.key.begin(), item.key.end());
  out.insert(out.end(), item.value.begin(), item.value.end());
  Encoder checksum;
  checksum.U32(ShortChecksum(ByteView(out).subspan(kChecksumSize)));
  std::copy(checksum.view().begin(), checksum.view().end(), out.begin());
  return out;
}

Result<size_t> ItemSizeOf(ByteView beginning) {
  SILTFS_ASSIGN_OR_RETURN(const Header header, DecodeHeader(beginning));
  return header.header_size + header.key_size + header.value_size;
}

Result<Item> DecodeItem(ByteView bytes) {
  SILTFS_ASSIGN_OR_RETURN(const Header header, DecodeHeader(bytes));
  if (bytes.size() != header.header_size + header.key_size + header.value_size ||
      header.checksum != ShortChecksum(bytes.subspan(kChecksumSize))) {
    return Status(StatusCode::kCorruption, "is damaged: the size or checksum of the item is wrong");
  }
  return Item{.key = bytes.subspan(header.header_size, header.key_size),
              .value = bytes.subspan(header.header_size + header.key_size)};
}

}  // namespace siltfs
