// Finds and reads data blocks of RocksDB's tables without the table's index: the checksum in a
// block's trailer shows where the block ends.
//
// A block is uncompressed, or compressed with LZ4 or zstd. The uncompressed length, a varint,
// precedes compressed bytes. The uncompressed bytes are a list of entries. An entry is three
// varints, the rest of the key, and the value. The varints are the lengths of the prefix shared
// with the previous key, of the rest of the key, and of the value. A restart is an entry that
// shares no prefix. The offsets of the restarts (4 bytes each) and their number (4) follow the
// entries. A key ends in 8 bytes, little-endian: the change's number, shifted left by 8, and its
// kind, 1 for a value and 0 for a removal.
//
// Pure functions; any thread. They accept hostile bytes. FindDataBlock and ParseDataBlock check the
// restarts, the kinds and the order of the keys. So they reject a block that holds no data (a
// filter, an index) even if its checksum is right.
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
  uint64_t number = 0;               // higher for newer changes; 0 if no older change of the key
                                     // exists
  std::optional<std::string> value;  // unset: the key was removed
};

// Orders by key; for equal keys, newer changes first.
bool IsBefore(const StoredChange& a, const StoredChange& b);

// The maximum size on disk of a block in siltfs's tables, trailer included.
inline constexpr size_t kMostBlockBytes = 256u << 10;
inline constexpr size_t kBlockTrailerBytes = 5;

struct FoundBlock {
  size_t bytes = 0;                   // on disk, with its trailer
  std::vector<StoredChange> changes;  // in the order of IsBefore; empty if the block holds no data
};

// Returns the data block at the beginning of `bytes`; nullopt if none begins there. `bytes` may be
// longer than the block. The call is faster with fewer bytes, which matters if a caller tries many
// offsets.
std::optional<FoundBlock> FindDataBlock(ByteView bytes);

// The length of a block of any kind at the beginning of `bytes`, trailer included; 0 if none begins
// there.
size_t FindAnyBlock(ByteView bytes);

// The changes in a block's uncompressed bytes; nullopt if it is not a data block.
std::optional<std::vector<StoredChange>> ParseDataBlock(ByteView plain);

// The number of changes stated in a table's properties; nullopt if `plain` holds no properties.
std::optional<uint64_t> CountInProperties(ByteView plain);

// Reads a varint of at most 64 bits; nullopt if it is too long or cut short.
std::optional<uint64_t> DecodeVarint(Decoder& in);

}  // namespace siltfs
