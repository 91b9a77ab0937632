// A look at each block of RocksDB's logs and MANIFESTs before its reader sees it.
//
// They are blocks of 32 KiB of records that do not cross them, each a checksum (4 bytes), a length
// (2, little-endian), a type (1) and so many bytes. Types 5 to 8 and 11 are those of a log that was
// begun anew in an older one's file, which siltfs has RocksDB never do. Meeting one of them behind
// a record of another type, RocksDB's reader returns to it for ever (9.10: db/log_reader.cc,
// ReadPhysicalRecord, before it looks at the checksum); one flipped bit makes one of the most
// frequent type. What was synced, the sync ledger vouches for; so this is a torn end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "store/base/bytes.h"
#include "store/base/status.h"
#include "store/env/env.h"

namespace siltfs {

inline constexpr size_t kLogBlockBytes = 32768;

// No log and no MANIFEST gets near it: each is begun anew after some megabytes.
inline constexpr uint64_t kMostLogBytes = uint64_t{256} << 20;

// kCorruption for a file that is longer, which somebody has made to keep its reader busy.
Status CheckLogSize(const File& file);

// How many bytes of a block, or of the beginning of one, stand before the first such record.
size_t BytesBeforeRecycled(ByteView block);

}  // namespace siltfs
