// A look at the end of one of RocksDB's tables before RocksDB opens it.
//
// RocksDB checks each block of a table before it looks into it, with two exceptions. The footer has
// no checksum. And the block of properties is parsed first and checked afterwards, for the sake of
// tables that were made elsewhere; one rotten bit, the highest of its last byte, makes it a block
// with a hash index, which it does not have: an assertion fails, and the process is gone. So both
// are looked at here.
//
// A table in format version 5, as siltfs has always had it written (numbers are little-endian, a
// handle is the varint64 of a block's offset and that of its size):
//
//   blocks      each followed by its trailer: its compression (1 byte) and a checksum (4 bytes) of
//               the block and that byte; kXXH3 is the lower half of XXH3-64 of the block, xor the
//               byte times 0x6b9083d9
//   properties  one of them
//   metaindex   the last of them: a handle for each of the kinds of blocks there is one of, by name
//   footer      53 bytes: type of checksums (1), the handles of metaindex and index, zeros up to
//   41,
//               format version (4), magic number (8)
//
// Source: RocksDB, table/format.cc, table/meta_blocks.cc and table/block_based/block.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "store/env/env.h"

namespace siltfs {

// kCorruption, with the path and the offset, if the footer leads outside the table, or the
// metaindex or the properties are not what was written. Reads these three and nothing else: a few
// KiB, and never more than 1 MiB at a time. OK for what is none of our tables (another magic
// number, a later format version, other checksums): RocksDB knows them, or refuses them itself.
// Thread-safety: as for File::Read.
Status CheckTable(const File& file);

// How many changes the table has, by its properties; nothing if they cannot be found or read.
std::optional<uint64_t> CountInTable(const File& file);

}  // namespace siltfs
