// Reads all records that can be read of one of RocksDB's logs (its write-ahead logs and MANIFESTs,
// log_check.h), whatever is damaged in it.
//
// Blocks of 32 KiB, of fragments of records: a checksum (4 bytes: CRC-32C of the rest but the
// length, rotated and added to), a length (2), a type (1: a record as a whole; 2, 3 and 4 its first
// part, a middle one and its last one) and the bytes. A damaged fragment costs its record, and
// where its length is damaged, too, the rest of its block.
//
// Any thread. Memory: a record. Errors: none for bytes that cannot be read, which count as damaged.
//
// Source: RocksDB, db/log_format.h, db/log_reader.cc, db/write_batch.cc and util/crc32c.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "fs/meta/table_block.h"
#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct LogSalvage {
  uint64_t records = 0;
  // Of records that were lost; what stands behind the last one that is whole, and was not synced as
  // far as anyone knows, is a torn end.
  uint64_t lost_bytes = 0;
};

// Reads the first `end` bytes, of which `synced` are known to have been synced. `visit` is called
// with each record that is whole; false says that it could not be used, and is lost, too.
Result<LogSalvage> SalvageLog(const File& file, uint64_t end, uint64_t synced,
                              const std::function<bool(ByteView record)>& visit);

// The changes in a record of a write-ahead log, in order. False, after those that could be read, if
// it is none.
bool ReadLoggedChanges(ByteView record, const std::function<void(StoredChange change)>& visit);

}  // namespace siltfs
