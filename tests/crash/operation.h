// One step of a random sequence. A step makes at most one changing call of a FileSystem, or calls
// that change only a file without a name before that call. It is decided before it runs. So the
// same step can run on the store under test, on a model, and again from a trace.
//
// Each thread of a sequence works in its own directory below the root, so its results depend only
// on its own steps. The threads share the store's groups, commits and counters.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>

#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs::testing {

struct Operation {
  enum class Kind : uint8_t {
    kCreate,     // makes a file and opens it into a slot
    kOpen,       // into a slot
    kOverwrite,  // opens and truncates a file
    kWrite,      // at `offset` of the slot's file
    kAppend,     // at the end of the slot's file
    kTruncate,   // the slot's file, to `offset`
    kPunchHole,  // in the slot's file
    kAllocate,   // in the slot's file, to the end of a range
    kCopyRange,  // from the next slot's file into this one's
    kClose,      // the slot
    kRename,     // may replace an object
    kRenameNew,  // fails if the new name exists
    kExchange,   //
    kLink,       //
    kUnlink,     // also of an open file
    kMakeDirectory,
    kRemoveDirectory,
    kSymlink,
    kMakeNode,
    kSetMode,
    kSetOwner,
    kSetTimes,
    kSetXattr,
    kRemoveXattr,
    kSetAcl,      // or removes one
    kFsync,       // the slot's file
    kSyncAll,     //
    kRecompress,  // recompresses sealed segments
    kCollect,     // collects garbage
    kReopen,      // closes all slots: the store was closed, or crashed
    // The calls of imports (EntryStore). They have the highest numbers, so that saved cuts stay
    // valid. The data_seed of each of them is that of a SourceImage.
    kPut,
    kOffer,          // with the reference `other_directory`
    kMakeTemporary,  // makes a file without a name in `directory`, and opens it into a slot
    kPlace,          // gives the slot's file a name, and the size and attributes that belong to it
    kStream,         // writes a file without a name piece by piece, and places it
    kAddName,        // EntryStore::Link: may replace an object
    kSetDirectory,
    kClone,  // EntryStore::Clone: a file or a directory, to a new name
    // Of the snapshots that belong to the thread (SnapshotName).
    kSnapshot,
    kRenameSnapshot,  // to `other_name`
    kDeleteSnapshot,
    kReceive,            // the snapshot `name` as `other_name`, with the base `other_directory`
    kCloneFromSnapshot,  // of a snapshot (SnapshotToClone): a file or a directory, to a new name
    kRollBack,           // to the snapshot `name`; keeps the state before as `other_name`
    // Of the thread's directory. `data_seed` determines the limit of files, which later steps may
    // reach. `offset` determines the limit of bytes, which they do not reach.
    kSetQuota,
    kRemoveQuota,
  };
  Kind kind = Kind::kReopen;
  uint8_t slot = 0;       // of kPut: kWithNext or 0
  std::string directory;  // below the thread's directory: "" or one name
  std::string name;
  std::string other_directory;
  std::string other_name;
  uint64_t offset = 0;
  uint32_t size = 0;  // of the data, in bytes
  // Determines the data. It also determines a mode, an owner, times, a device, or an attribute's
  // value.
  uint64_t data_seed = 0;
  int64_t time = 0;  // of the step, in nanoseconds since 1970
  bool operator==(const Operation&) const = default;
};

inline constexpr size_t kSlots = 4;
// The slot of a kPut that is made by the same call as the next step, which is a kPut, too. Such
// steps begin and end together, but take effect one after the other.
inline constexpr uint8_t kWithNext = 1;
// The start time of the device and the models.
inline constexpr int64_t kFirstTime = 1'700'000'000'000'000'000;

Bytes EncodeOperation(const Operation& operation);
Result<Operation> DecodeOperation(ByteView bytes);
std::string Describe(const Operation& operation);
// Whether the step acts on the file in its slot, and not on a name.
bool ActsOnSlot(Operation::Kind kind);
// Returns the name of the thread's own directory, such as "t0".
std::string ThreadDirectory(unsigned thread);
// Returns the name of a snapshot that only this thread makes, renames and removes.
std::string SnapshotName(unsigned thread, const std::string& name);
// Whether the step makes, renames or removes a snapshot, or rolls back to one.
bool IsOfSnapshots(Operation::Kind kind);
// Whether the step sets or removes a quota.
bool IsOfQuotas(Operation::Kind kind);

}  // namespace siltfs::testing
