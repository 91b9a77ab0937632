// DB::Resume with an end. Resume waits until the memory is flushed. RocksDB 7.8 forgets a flush
// that it has scheduled if a compaction cannot write the MANIFEST before the flush begins. Then
// Resume, and any other flush, would wait forever.
//
// Thread-safety: one call at a time for a database. No other thread may write to it meanwhile.
#pragma once

#include <rocksdb/db.h>

namespace siltfs {

// Calls db.Resume() and returns its result. If a flush is due and none has been running for ten
// seconds, ends all background work of the database and returns ShutdownInProgress. Then the
// database can only be read and closed; its log has all writes.
rocksdb::Status ResumeOrGiveUp(rocksdb::DB& db);

}  // namespace siltfs
