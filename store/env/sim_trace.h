// A trace of all changes to a simulated device. It is recorded on one SimEnv and replayed on
// others, or stored in a file. With a trace, tests can cut the power at every step of one run,
// although the run's thread schedule cannot be repeated.
//
// A trace holds only changes of the device; of a failed call it holds the part that was done, if
// any. A record of a write or a sync names the file by a number, since a file may be renamed or
// removed while it is open. A device numbers its nodes in order of creation, so replaying a trace
// on an equal device gives the same numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

struct SimRecord {
  enum class Kind : uint8_t {
    kMark = 0,  // no change: a note of the test
    kCreateFile = 1,
    kCreateDirectory = 2,
    kWrite = 3,
    kTruncate = 4,
    kPreallocate = 5,
    kSync = 6,
    kLoseUnsynced = 7,  // a failed sync
    kRename = 8,
    kRemoveFile = 9,
    kRemoveDirectory = 10,
    kSyncDirectory = 11,
  };
  Kind kind = Kind::kMark;
  uint64_t file = 0;    // file number, for kWrite to kLoseUnsynced
  uint64_t offset = 0;  // write offset; the size for kTruncate and kPreallocate
  std::string path;
  std::string to;  // target of a rename
  Bytes data;      // written bytes, or the note
};

using SimTrace = std::vector<SimRecord>;

Bytes EncodeTrace(const SimTrace& trace);
// kCorruption if `bytes` are not an encoded trace.
Result<SimTrace> DecodeTrace(ByteView bytes);
// One line for the user, for example "write file 3: 512 bytes at 64".
std::string Describe(const SimRecord& record);

}  // namespace siltfs
