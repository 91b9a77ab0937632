// The counters (metadata_store.h) that a snapshot's record keeps. Pure functions.
#pragma once

#include "fs/meta/metadata_store.h"
#include "fs/records/schema.h"
#include "fs/records/snapshot_record.h"

namespace siltfs {

inline Counters CountersOf(const SnapshotRecord& record) {
  Counters counters{};
  counters[static_cast<size_t>(Counter::kLogicalBytes)] = record.logical_bytes;
  counters[static_cast<size_t>(Counter::kFiles)] = record.files;
  counters[static_cast<size_t>(Counter::kDirectories)] = record.directories;
  counters[static_cast<size_t>(Counter::kChunkReferences)] = record.chunk_references;
  return counters;
}

inline void SetCounters(const Counters& counters, SnapshotRecord& record) {
  record.logical_bytes = counters[static_cast<size_t>(Counter::kLogicalBytes)];
  record.files = counters[static_cast<size_t>(Counter::kFiles)];
  record.directories = counters[static_cast<size_t>(Counter::kDirectories)];
  record.chunk_references = counters[static_cast<size_t>(Counter::kChunkReferences)];
}

}  // namespace siltfs
