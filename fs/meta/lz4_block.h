// Unpacks a block of LZ4's block format, in which RocksDB compresses most of its blocks: for
// reading a table that RocksDB itself refuses to open (table_salvage.h).
//
// Pure; any thread. Whatever the bytes are, nothing outside of them is read, and no more than
// `size` bytes are made.
//
// Source: the LZ4 block format description, lz4_Block_format.md.
#pragma once

#include <cstddef>
#include <optional>

#include "store/base/bytes.h"

namespace siltfs {

// Nothing unless `packed` is one whole block of exactly `size` bytes.
std::optional<Bytes> UnpackLz4(ByteView packed, size_t size);

// The first bytes of a block of which only the beginning is known to be there: at least `size`,
// or fewer where it ends, or makes no sense, before.
Bytes UnpackLz4Start(ByteView packed, size_t size);

}  // namespace siltfs
