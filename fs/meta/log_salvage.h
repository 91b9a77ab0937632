// Reads all undamaged records of a RocksDB log that may be damaged anywhere: a write-ahead log or a
// MANIFEST (log_check.h).
//
// A log consists of 32 KiB blocks of record fragments: a checksum (4 bytes: CRC-32C of type and
// bytes, rotated and offset), a length (2), a type (1: a whole record; 2, 3, 4: its first, a
// middle, its last part) and the bytes. A damaged fragment loses its record; a damaged length also
// loses the rest of the block.
//
// Any thread. Memory: a record. Errors: none for unreadable bytes, which count as damaged.
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
  // Bytes of lost records. Bytes after the last whole record that are not known to be synced are a
  // torn end and do not count.
  uint64_t lost_bytes = 0;
};

// Reads the first `end` bytes, of which `synced` are known to have been synced. Calls `visit` with
// each whole record; if it returns false, the record counts as lost.
Result<LogSalvage> SalvageLog(const File& file, uint64_t end, uint64_t synced,
                              const std::function<bool(ByteView record)>& visit);

// Visits the changes in a record of a write-ahead log, in order. False if the record is malformed;
// the changes before the malformed place were visited.
bool ReadLoggedChanges(ByteView record, const std::function<void(StoredChange change)>& visit);

}  // namespace siltfs
