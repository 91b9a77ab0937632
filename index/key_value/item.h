// An item of a key-value store: a key and its value as one run of bytes. The part that fits into a
// slot behind name and location lies there, the rest in the value log (SILT, section 4,
// "Variable-Length Key-Values": "(offset, first part of (key, value)) pairs").
//
//   checksum of what follows (4)   key size (varint)   value size (varint)   key   value
//
// Functions only, safe to call from any thread. Units: bytes.
#pragma once

#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

inline constexpr size_t kMaxKeySize = (64U << 10) - 1;
inline constexpr size_t kMaxValueSize = 1U << 20;
// Checksum and both sizes.
inline constexpr size_t kMaxItemHeaderSize = 4 + 3 + 3;

struct Item {
  ByteView key;
  ByteView value;
};

// key.size() <= kMaxKeySize, value.size() <= kMaxValueSize.
Bytes EncodeItem(const Item& item);
// Size of EncodeItem's result.
size_t ItemSize(size_t key_size, size_t value_size);
// Size of the whole item that begins with these bytes: at least kMaxItemHeaderSize of them, or all.
// kCorruption if no item begins with these bytes.
Result<size_t> ItemSizeOf(ByteView beginning);
// Decodes the item that occupies all of `bytes`; returns views into them. kCorruption.
Result<Item> DecodeItem(ByteView bytes);

}  // namespace siltfs
