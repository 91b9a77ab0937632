// One step of a random sequence: at most one changing call of a FileSystem, decided beforehand, so
// that the same step can be taken on the store under test, on a model, and again from a trace.
//
// Each thread of a sequence works in a directory of its own below the root, so that what it finds
// there depends on its own steps alone; the stores' groups, commits and counters are shared.
//
// Thread-safety: values. A Stepper is one thread's.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fs/core/file_system.h"
#include "store/base/random.h"

namespace siltfs::testing {

struct Operation {
  enum class Kind : uint8_t {
    kCreate,     // a file, and opens it into a slot
    kOpen,       // into a slot
    kOverwrite,  // opens and truncates
    kWrite,      // at `offset` of what is open in the slot
    kAppend,     // at its end
    kTruncate,   // what is open in the slot, to `offset`
    kPunchHole,  // in what is open in the slot
    kAllocate,   // the same, to the end of a range
    kCopyRange,  // from what is open in the next slot into what is open in this one
    kClose,      // the slot
    kRename,     // replaces
    kRenameNew,  // replaces nothing
    kExchange,   //
    kLink,       //
    kUnlink,     // also of what is open
    kMakeDirectory,
    kRemoveDirectory,
    kSymlink,
    kMakeNode,
    kSetMode,
    kSetOwner,
    kSetTimes,
    kSetXattr,
    kRemoveXattr,
    kSetAcl,   // or removes one
    kFsync,    // what is open in the slot
    kSyncAll,  //
    kSettle,   // recompresses what is sealed
    kCollect,  // garbage
    kReopen,   // everything open is forgotten: the store was closed, or crashed
  };
  Kind kind = Kind::kReopen;
  uint8_t slot = 0;
  std::string directory;  // below the thread's own: "" or one name
  std::string name;
  std::string other_directory;
  std::string other_name;
  uint64_t offset = 0;
  uint32_t size = 0;  // of the data
  // What the data is; also a mode, an owner, times, a device, an attribute's value.
  uint64_t data_seed = 0;
  int64_t time = 0;  // when it is taken, in nanoseconds since 1970
  bool operator==(const Operation&) const = default;
};

inline constexpr size_t kSlots = 4;
// When the device and the models begin.
inline constexpr int64_t kFirstTime = 1'700'000'000'000'000'000;

Bytes EncodeOperation(const Operation& operation);
Result<Operation> DecodeOperation(ByteView bytes);
std::string Describe(const Operation& operation);
// "t0", the directory of a thread's own.
std::string ThreadDirectory(unsigned thread);

// Steps that are likely to succeed, and to meet one another: few names, files that stay open,
// replacing by rename.
class OperationGenerator {
 public:
  // What the steps have in common.
  enum class Mix : uint8_t {
    kAll,
    // Parts of a few contents are written, removed and collected, so that chunks get several copies
    // and lose some of them again.
    kCopies,
  };
  OperationGenerator(uint64_t seed, uint32_t largest_write, Mix mix = Mix::kAll);
  Operation Next();

 private:
  Operation NextUntimed();
  Operation NextOfCopies();
  // A part of one of a few contents.
  Operation Part(Operation::Kind kind);
  void Plan();
  Operation Simple();
  Operation Data(Operation::Kind kind);
  std::string Name();
  std::string Directory();

  Random random_;
  const uint32_t largest_write_;
  const Mix mix_;
  std::vector<Operation> planned_;  // last first
  int64_t time_ = kFirstTime;
};

// Takes steps on one FileSystem for one thread, and keeps what it has open.
class Stepper {
 public:
  // `fs` must outlive it.
  Stepper(FileSystem& fs, unsigned thread) : fs_(fs), thread_(thread) {}

  // Makes the thread's directory.
  Status Begin();
  // What the call answered, in words; the same on every FileSystem for the same steps before it.
  std::string Step(const Operation& operation);
  // The Status behind the last answer.
  const Status& last() const { return last_; }
  // Inodes that the last step may have changed.
  const std::vector<InodeNumber>& touched() const { return touched_; }
  // The inode that the last step made; 0 if it made none.
  InodeNumber made() const { return made_; }
  void ReleaseAll();

 private:
  std::string Answer(Status status);
  std::string Answer(const Result<Attributes>& result);
  std::string AnswerMade(const Result<Attributes>& result);
  std::string StepOnSlot(const Operation& operation);
  std::string CopyRange(const Operation& operation);
  std::string StepOnName(const Operation& operation, InodeNumber directory, InodeNumber other);
  std::string OpenInto(uint8_t slot, InodeNumber inode, bool truncate);
  Result<InodeNumber> Find(const std::string& directory, const std::string& name);
  void Close(uint8_t slot);

  FileSystem& fs_;
  const unsigned thread_;
  std::array<InodeNumber, kSlots> slots_{};
  std::vector<InodeNumber> touched_;
  InodeNumber made_ = 0;
  Status last_;
};

// Whether times are part of what can be seen: where threads share a clock, nobody knows whose a
// time is.
enum class Times : bool { kIgnored, kSeen };
inline Times TimesWith(size_t threads) { return threads == 1 ? Times::kSeen : Times::kIgnored; }

// Everything that can be seen of the tree below a thread's directory, for a person. Errors: what
// reading met.
Result<std::string> DescribeTree(FileSystem& fs, unsigned thread, Times times = Times::kIgnored);
// The same in one number.
uint64_t DigestOf(const std::string& description);
Result<uint64_t> DigestTree(FileSystem& fs, unsigned thread, Times times = Times::kIgnored);

// How many inodes lead from the root, which counts.
struct InodeCounts {
  uint64_t files = 0;  // all that are no directories
  uint64_t directories = 0;
  bool operator==(const InodeCounts&) const = default;
};
Result<InodeCounts> CountInodes(FileSystem& fs);

}  // namespace siltfs::testing
