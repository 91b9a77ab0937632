// Which files of RocksDB's count, as its MANIFEST says: for reading them without RocksDB.
//
// A MANIFEST is a log (log_salvage.h) of edits, each a run of fields: a tag (a varint), and what
// belongs to it. Here it matters which tables were added and removed, and which log is the first
// that is not in tables yet.
//
// Pure; any thread.
//
// Source: RocksDB, db/version_edit.h and version_edit.cc.
#pragma once

#include <cstdint>
#include <set>

#include "store/base/bytes.h"

namespace siltfs {

struct LiveFiles {
  std::set<uint64_t> tables;
  uint64_t first_log = 0;  // those with a lower number are in tables
};

// Applies one edit. False if it has anything that is not known, upon which `files` says nothing.
bool ApplyEdit(ByteView edit, LiveFiles& files);

}  // namespace siltfs
