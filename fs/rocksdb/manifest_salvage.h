// Finds RocksDB's live files by its MANIFEST, so that they can be read without RocksDB.
//
// A MANIFEST is a log (log_salvage.h) of edits. An edit is a sequence of fields; a field is a tag
// (a varint) and its data. Only these fields are needed: the tables that are added and removed, and
// the number of the first log with changes that are not in tables yet.
//
// A pure function; any thread.
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

// Applies one edit. Returns false if the edit is malformed or has an unknown field. After that,
// `files` must not be used.
bool ApplyEdit(ByteView edit, LiveFiles& files);

}  // namespace siltfs
