// Data blocks of RocksDB's tables, found and read without the table's index: each is followed by
// its trailer, whose checksum tells where it ends.
//
// A block is compressed with LZ4 or zstd (the length of the plain bytes, a varint, in front), or
// plain. Plain, it is entries, each the lengths of what its key shares with the one before, of the
// rest of it and of its value (varints), and these two; then the offsets of those entries whose
// keys share nothing (4 bytes each), and their number (4). Keys end in 8 bytes, little-endian: the
// number of the change, shifted left by 8, and its kind, 1 for a value and 0 for a removal.
//
// Pure; any thread. Bytes of any kind may be given. What has the right checksum and is no data
// block (filters, indexes) does not pass for one: restarts, kinds and the order of keys are all
// checked.
//
// Source: RocksDB, table/block_based/block_builder.cc, table/format.cc and util/compression.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/base/bytes.h"

namespace siltfs {

class Decoder;

// One change of one key.
struct StoredChange {
  std::string key;
  uint64_t number = 0;               // of the newer one higher; 0 for one that has nothing below it
  std::optional<std::string> value;  // nothing: the key was removed
};

// By key; of the same key the newer one first.
bool IsBefore(const StoredChange& a, const StoredChange& b);

// Of a block's bytes on disk, its trailer included; a table of ours has none that is longer.
inline constexpr size_t kMostBlockBytes = 256u << 10;
inline constexpr size_t kBlockTrailerBytes = 5;

struct FoundBlock {
  size_t bytes = 0;                   // on disk, with its trailer
  std::vector<StoredChange> changes;  // ascending; none in a block that holds no data
};

// The data block at the beginning of `bytes`, which may be longer; nothing if none begins there.
// For where most places are none's beginning, fewer bytes are faster.
std::optional<FoundBlock> FindDataBlock(ByteView bytes);

// How long the block is, with its trailer, that begins there, whatever it holds; 0 if none does.
size_t FindAnyBlock(ByteView bytes);

// The changes in a block's plain bytes; nothing if it is no data block.
std::optional<std::vector<StoredChange>> ParseDataBlock(ByteView plain);

// What a table's properties say of how many changes it has; nothing if these are not properties.
std::optional<uint64_t> CountInProperties(ByteView plain);

// A varint of at most 64 bits; nothing if it does not end where it must.
std::optional<uint64_t> DecodeVarint(Decoder& in);

}  // namespace siltfs
