// An item of a key-value store: a key and its value as one run of bytes. A slot holds, behind name
// and location, as much of the item's beginning as fits; the value log holds the rest (SILT,
// section 4, "Variable-Length Key-Values": "(offset, first part of (key, value)) pairs").
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
// Maximum size of the checksum and both sizes.
inline constexpr size_t kMaxItemHeaderSize = 4 + 3 + 3;

struct Item {
  ByteView key;
  ByteView value;
};

// Encodes an item. key.size() <= kMaxKeySize, value.size() <= kMaxValueSize.
Bytes EncodeItem(const Item& item);
// Size of EncodeItem's result.
size_t ItemSize(size_t key_size, size_t value_size);
// Returns the size of the whole item whose first bytes are `beginning`. `beginning` must have at
// least kMaxItemHeaderSize bytes, or be the whole item. kCorruption if no item begins with these
// bytes.
Result<size_t> ItemSizeOf(ByteView beginning);
// Decodes the item that occupies all of `bytes`; returns views into `bytes`. kCorruption if the
// bytes are not exactly one item.
Result<Item> DecodeItem(ByteView bytes);

}  // namespace siltfs
