// The record of a key-value store that says which commits it has: the number of its last Write, and
// the writer's epoch. It is part of every Write of a store whose commits are shipped to a bucket.
//
// Thread-safety: pure functions. Errors: those of the key-value store; kCorruption for a malformed
// record.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fs/kv/kv_store.h"

namespace siltfs {

struct PositionRecord {
  uint64_t sequence = 0;  // of the last Write
  uint32_t epoch = 0;     // of the writer that made it (bucket_log.h)

  bool operator==(const PositionRecord&) const = default;

  std::string Encode() const;
  static Result<PositionRecord> Decode(std::string_view value);
};

// Zeros if there is no record: nothing was shipped yet.
Result<PositionRecord> ReadPosition(const KvSnapshot& snapshot);

}  // namespace siltfs
