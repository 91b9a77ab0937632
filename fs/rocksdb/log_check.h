// Checks each block of RocksDB's logs and MANIFESTs before RocksDB's reader sees it.
//
// A log consists of 32 KiB blocks of records that do not cross block boundaries. A record is a
// checksum (4 bytes), a length (2, little-endian), a type (1) and `length` bytes. Types 5 to 8 and
// 11 belong to recycled logs, which siltfs never lets RocksDB write. If a record of such a type
// follows a record of another type, RocksDB's reader loops forever. This happens in version 9.10,
// in ReadPhysicalRecord (db/log_reader.cc), before the reader verifies the checksum. One flipped
// bit turns the most frequent type into such a type. The synced bytes were compared with the sync
// ledger before this check, so such a record lies in the torn tail.
#pragma once

#include <cstddef>
#include <cstdint>

#include "store/base/bytes.h"
#include "store/base/status.h"
#include "store/env/env.h"

namespace siltfs {

inline constexpr size_t kLogBlockBytes = 32768;

// Logs and MANIFESTs stay far below this size, because RocksDB starts a new one after some
// megabytes.
inline constexpr uint64_t kMostLogBytes = uint64_t{256} << 20;

// kCorruption if the file is longer than kMostLogBytes: such a file is crafted to keep its reader
// busy.
Status CheckLogSize(const File& file);

// Returns the number of bytes before the first recycled record in a block of a log. `block` may be
// only the beginning of the block.
size_t BytesBeforeRecycled(ByteView block);

}  // namespace siltfs
