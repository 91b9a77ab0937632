// Ends a table of RocksDB between two groups of keys, so that a later load finds room for its
// tables.
//
// RocksDB puts a loaded table on the lowest level if none of the tables there overlaps its range.
// The keys of a load are often the last ones of their group. A table that has the end of one group
// and the beginning of the next would overlap them. The loaded tables would then be on level 0,
// where more than some tables slow all writes down, and would soon be compacted.
//
// Thread-safety: every call from any thread.
#pragma once

#include <rocksdb/sst_partitioner.h>

#include <memory>
#include <string>

namespace siltfs {

// The keys that begin with the same byte of `bytes` are a group. All keys between two groups are a
// group, too.
std::shared_ptr<rocksdb::SstPartitionerFactory> NewKeyPartitioner(std::string bytes);

}  // namespace siltfs
