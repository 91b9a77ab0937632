// The value log's manifest, the file "value_log" in its directory: the owner of the segments, the
// ids used so far, and the segments that a crash left incomplete. Replaced as a whole, atomically.
// All numbers are little-endian:
//
//   offset  bytes  field
//        0      8  magic "SILTVAL\n"
//        8      4  version, 1
//       12      4  number of incomplete segments, n
//       16     16  store: random, drawn when the log was made; seeds the segments' checksums
//       32      8  segment ids from here on have never been used, 1 to 2^32 - 1
//       40    4 n  ids of the incomplete segments, rising; all are below the id at 32
//   40 + 4n      8  checksum (XXH3-64, seed 0) of all before it
//
// A segment is incomplete if it was salvaged after a crash and ForgetRecovered has not been called
// since: some of the records appended to it may never have reached the device.
//
// Durability: WriteValueLogManifest returns OK when the manifest is durable; after an error either
// the old or the new one is in place. Errors: kCorruption for bytes not written by
// WriteValueLogManifest, kNeedsNewer for a later version; Env's. Functions only, safe to call from
// any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/base/location.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/store_uuid.h"

namespace siltfs {

struct ValueLogManifest {
  static constexpr uint64_t kSegmentLimit = UINT32_MAX;

  StoreUuid store;
  uint64_t next_segment = 1;
  std::vector<SegmentId> incomplete;

  friend bool operator==(const ValueLogManifest&, const ValueLogManifest&) = default;
};

std::string EncodeValueLogManifest(const ValueLogManifest& manifest);
Result<ValueLogManifest> DecodeValueLogManifest(ByteView bytes);

// Reads the manifest; empty if there is none.
Result<std::optional<ValueLogManifest>> ReadValueLogManifest(Env& env,
                                                             const std::string& directory);
Status WriteValueLogManifest(Env& env, const std::string& directory,
                             const ValueLogManifest& manifest);

}  // namespace siltfs
