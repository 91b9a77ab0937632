// The manifest of an index with page files: records under numbers, which belong to the parts of the
// index. On flash it is a base, which is replaced atomically, and edits (edit_log.h).
// Format: docs/format.md, "Page files".
//
// Thread-safety: none. Ownership: `env` must outlive the object. Errors: kCorruption for a damaged
// base or edit, kNeedsNewer for a later version. Memory: all records.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "index/flash/edit_log.h"
#include "store/env/env.h"

namespace siltfs {

class StateMap {
 public:
  using Records = std::map<uint64_t, std::string>;
  // New records, and numbers without records, which are removed.
  using Changes = std::vector<std::pair<uint64_t, std::optional<std::string>>>;

  StateMap(Env& env, const std::string& directory)
      : env_(env), directory_(directory), edits_(env, directory) {}

  // Reads the records. False if there is no manifest.
  Result<bool> Read();
  // Must follow Read before anything is written (EditLog::FinishRead).
  Status FinishRead();
  // Makes the changes durable.
  Status Commit(const Changes& changes);
  // After a clean end nothing depends on the last edit.
  Status Fold();

  const Records& records() const { return records_; }
  uint64_t bytes_written() const { return edits_.bytes_written(); }
  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  Result<uint64_t> WriteBase(const Records& records, uint64_t generation);
  Status ReadBase(ByteView bytes, uint64_t& generation);
  std::string BasePath() const;
  void Set(Records& records, uint64_t number, std::optional<std::string> record);

  Env& env_;
  const std::string directory_;
  EditLog edits_;
  Records records_;
  uint64_t memory_bytes_ = 0;
};

}  // namespace siltfs
