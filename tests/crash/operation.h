// One step of a random sequence. A step makes at most one changing call of a FileSystem, and is
// decided before it runs. So the same step can run on the store under test, on a model, and again
// from a trace.
//
// Each thread of a sequence works in its own directory below the root, so its results depend only
// on its own steps. The threads share the store's groups, commits and counters.
//
// Thread-safety: values. A Stepper belongs to one thread.
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
    kRename,     // replaces
    kRenameNew,  // replaces nothing
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
  };
  Kind kind = Kind::kReopen;
  uint8_t slot = 0;
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
// The start time of the device and the models.
inline constexpr int64_t kFirstTime = 1'700'000'000'000'000'000;

Bytes EncodeOperation(const Operation& operation);
Result<Operation> DecodeOperation(ByteView bytes);
std::string Describe(const Operation& operation);
// Returns the name of the thread's own directory, such as "t0".
std::string ThreadDirectory(unsigned thread);

// Generates steps that are likely to succeed and to affect each other: there are few names, files
// stay open, and renames replace files.
class OperationGenerator {
 public:
  // The mix of steps.
  enum class Mix : uint8_t {
    kAll,
    // Writes, removes and garbage-collects parts of a few contents, so that chunks get several
    // copies and lose some of them again.
    kCopies,
  };
  OperationGenerator(uint64_t seed, uint32_t largest_write, Mix mix = Mix::kAll);
  Operation Next();

 private:
  Operation NextUntimed();
  Operation NextOfCopies();
  // Returns a step whose data is a part of one of a few contents.
  Operation Part(Operation::Kind kind);
  void Plan();
  Operation Simple();
  Operation Data(Operation::Kind kind);
  std::string Name();
  std::string Directory();

  Random random_;
  const uint32_t largest_write_;
  const Mix mix_;
  std::vector<Operation> planned_;  // in reverse order
  int64_t time_ = kFirstTime;
};

// Takes one thread's steps on one FileSystem, and holds the thread's open files.
class Stepper {
 public:
  // `fs` must outlive it.
  Stepper(FileSystem& fs, unsigned thread) : fs_(fs), thread_(thread) {}

  // Makes the thread's directory.
  Status Begin();
  // Takes the step and returns the call's answer as text. After the same steps, every FileSystem
  // gives the same answer.
  std::string Step(const Operation& operation);
  // Returns the Status of the last answer.
  const Status& last() const { return last_; }
  // Returns the inodes that the last step may have changed.
  const std::vector<InodeNumber>& touched() const { return touched_; }
  // Returns the inode that the last step made; 0 if none.
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

// Whether a tree's description includes times. If several threads share one clock, a time cannot be
// attributed to a step.
enum class Times : bool { kIgnored, kSeen };
inline Times TimesWith(size_t threads) { return threads == 1 ? Times::kSeen : Times::kIgnored; }

// Returns a text that describes everything visible in the tree below a thread's directory. Errors:
// those of reading.
Result<std::string> DescribeTree(FileSystem& fs, unsigned thread, Times times = Times::kIgnored);
// Returns a digest of such a text.
uint64_t DigestOf(const std::string& description);
Result<uint64_t> DigestTree(FileSystem& fs, unsigned thread, Times times = Times::kIgnored);

// Numbers of inodes reachable from the root, including the root.
struct InodeCounts {
  uint64_t files = 0;  // all inodes that are not directories
  uint64_t directories = 0;
  bool operator==(const InodeCounts&) const = default;
};
Result<InodeCounts> CountInodes(FileSystem& fs);

}  // namespace siltfs::testing
