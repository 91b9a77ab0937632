// Which of RocksDB's files are live according to its MANIFEST: for reading them without RocksDB.
//
// A MANIFEST is a log (log_salvage.h) of edits, each a sequence of fields: a tag (a varint) and its
// data. Needed here: which tables were added and removed, and the first log that is not in tables
// yet.
//
// Pure; any thread.
//
// Source: RocksDB, VersionEdit::EncodeTo and DecodeFrom.
#pragma once

#include <cstdint>
#include <set>

#include "store/base/bytes.h"

namespace siltfs {

struct LiveFiles {
  std::set<uint64_t> tables;
  uint64_t first_log = 0;  // the changes of logs with lower numbers are in tables
};

// Applies one edit. False if it has an unknown field; `files` is then meaningless.
bool ApplyEdit(ByteView edit, LiveFiles& files);

}  // namespace siltfs
