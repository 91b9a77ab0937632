// What was done to a simulated device, change by change: recorded on one SimEnv and made again on
// others, it lets the power go at every step of a run whose threads will never meet in that order
// again. A trace can be kept in a file.
//
// Only what changed the device is in it (a call that failed left nothing, or its part). Files are
// named by number, since a file may be renamed or removed while it is open: a device counts the
// nodes it makes, so that the same trace on the same device gives the same numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

struct SimRecord {
  enum class Kind : uint8_t {
    kMark = 0,  // no change: a note of the recorder's
    kCreateFile = 1,
    kCreateDirectory = 2,
    kWrite = 3,
    kTruncate = 4,
    kPreallocate = 5,
    kSync = 6,
    kLoseUnsynced = 7,  // a sync that failed
    kRename = 8,
    kRemoveFile = 9,
    kRemoveDirectory = 10,
    kSyncDirectory = 11,
  };
  Kind kind = Kind::kMark;
  uint64_t file = 0;    // its number, for kWrite to kLoseUnsynced
  uint64_t offset = 0;  // of a write; the size for kTruncate and kPreallocate
  std::string path;
  std::string to;  // of a rename
  Bytes data;      // of a write or a mark
};

using SimTrace = std::vector<SimRecord>;

Bytes EncodeTrace(const SimTrace& trace);
// kCorruption for anything else than what EncodeTrace gives.
Result<SimTrace> DecodeTrace(ByteView bytes);
// One line for a person: "write segments/1 …".
std::string Describe(const SimRecord& record);

}  // namespace siltfs
