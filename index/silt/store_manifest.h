// Which logs make up a SILT index, in order, and up to which sequence the frozen ones are complete.
// The one file that is replaced in place, atomically; without it the logs mean nothing. Format:
// docs/format.md, "SILT manifest".
//
// Durability: WriteStoreManifest returns OK when the manifest and the names of files made before it
// are durable. After an error the old one or the new one is there. Functions only, safe to call
// from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/env/env.h"

namespace siltfs {

struct LogRecord {
  uint64_t id = 0;  // never used twice in an index, counting up
  unsigned bucket_bits = 0;
  // Of a frozen log; 0 and empty for the last log, which is being written.
  uint32_t page_count = 0;
  std::vector<uint32_t> damaged_pages = {};  // found before and made up for since; rising

  friend bool operator==(const LogRecord&, const LogRecord&) = default;
};

struct StoreManifest {
  uint64_t hash_secret = 0;  // of the buckets' hash
  // Everything put with sequences up to this one lies in the frozen logs.
  uint64_t complete_sequence = 0;
  uint64_t next_log_id = 1;
  std::vector<LogRecord> logs;  // oldest first; all but the last are frozen; never empty

  friend bool operator==(const StoreManifest&, const StoreManifest&) = default;
};

std::string EncodeStoreManifest(const StoreManifest& manifest);
// kCorruption if anything is not as EncodeStoreManifest writes it, kNeedsNewer for a later version.
Result<StoreManifest> DecodeStoreManifest(ByteView bytes);

// Nothing if there is no manifest.
Result<std::optional<StoreManifest>> ReadStoreManifest(Env& env, const std::string& directory);
Status WriteStoreManifest(Env& env, const std::string& directory, const StoreManifest& manifest);

}  // namespace siltfs
