// Reads all undamaged records of a RocksDB log that may be damaged anywhere: a write-ahead log or a
// MANIFEST (log_check.h).
//
// A log consists of 32 KiB blocks of record fragments. A fragment is a checksum (4 bytes), a length
// (2), a type (1) and the bytes. The checksum is the CRC-32C of type and bytes, rotated, plus a
// constant. Type 1 is a whole record; types 2, 3 and 4 are the first, a middle and the last part of
// a record. If a fragment is damaged, its record is lost. If the fragment's length is damaged, the
// rest of the block is lost, too.
//
// Any thread. Memory: one record. Errors: unreadable bytes are no error, but count as damaged.
//
// Source: RocksDB, db/log_format.h, db/log_reader.cc, db/write_batch.cc and util/crc32c.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "fs/rocksdb/table_block.h"
#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct LogSalvage {
  uint64_t records = 0;
  // Bytes of lost records. A torn tail is not counted. It consists of the bytes after the last
  // whole record, if they begin beyond the bytes that are known to be synced.
  uint64_t lost_bytes = 0;
};

// Reads the first `end` bytes; the first `synced` bytes are known to be synced. Calls `visit` with
// each whole record. If `visit` returns false, the record counts as lost.
Result<LogSalvage> SalvageLog(const File& file, uint64_t end, uint64_t synced,
                              const std::function<bool(ByteView record)>& visit);

// Visits the changes in a record of a write-ahead log, in order. If the record is malformed, visits
// the changes before the malformed place and returns false.
bool ReadLoggedChanges(ByteView record, const std::function<void(StoredChange change)>& visit);

}  // namespace siltfs
