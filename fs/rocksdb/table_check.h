// Checks the end of a RocksDB table before RocksDB opens it.
//
// RocksDB verifies each block of a table before it parses the block, with two exceptions. The
// footer has no checksum. The properties block is parsed before it is verified, to support tables
// written by other tools. If the highest bit of the properties block's last byte is flipped,
// RocksDB expects a hash index in the block, an assertion fails, and the process aborts. So
// CheckTable checks the footer and the properties block.
//
// A table in format version 5, which siltfs has always used (numbers are little-endian, a handle is
// a block's offset and its size, each a varint64):
//
// clang-format off
//   blocks      each followed by its trailer: its compression (1 byte) and a checksum (4 bytes) of
//               the block and that byte; kXXH3 is the lower half of XXH3-64 of the block, xor the
//               byte times 0x6b9083d9
//   properties  one of the blocks
//   metaindex   the last block: a handle for each kind of block that occurs once, by name
//   footer      53 bytes: type of checksums (1), the handles of metaindex and index, zeros up to
//               byte 41, format version (4), magic number (8)
// clang-format on
//
// Source: RocksDB, table/format.cc, table/meta_blocks.cc and table/block_based/block.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "store/env/env.h"

namespace siltfs {

// kCorruption, with the path and the offset, if the footer points outside the table, or the
// metaindex or the properties are damaged. Reads only these three: a few KiB, never more than 1 MiB
// at a time. OK for a table of another kind (another magic number, a later format version, other
// checksums): RocksDB can read such a table, or refuses it itself. Thread-safety: as for
// File::Read.
Status CheckTable(const File& file);

// The number of changes in the table, by its properties; nullopt if the properties cannot be found
// or read.
std::optional<uint64_t> CountInTable(const File& file);

}  // namespace siltfs
