// A simulated device: an Env in memory, deterministic, that forgets at a power cut what was not
// synced, and fails calls on demand. For tests.
//
// The crash model. At a power cut:
//   C1 A file's content and size are those of its last successful Sync. Later writes and
//   truncations are lost, unless
//      the CrashPolicy lets some of them survive.
//   C2 A name (a file or directory created, renamed or removed) is as of the last successful
//   SyncDirectory of the
//      directory it stands in. A file created without it is gone, even if its content was synced; a
//      file removed without it is back, with its last synced content. A directory that is gone
//      takes all in it along.
//   C3 A rename is there as a whole or not at all. One between two directories is durable when both
//   were synced after
//      it; until then later changes of the names it touched wait for it, synced or not.
//   C4 Every File and FileLock is dead: their calls answer kIoError for good. Nothing is locked.
//   C5 A Sync that failed has made nothing durable, and the bytes it was to bring down never reach
//   the device, even if a
//      later Sync succeeds (unless they are written anew, or share a 4,096-byte page with later
//      ones): as Linux does it. The file's readers still see them until the cut.
//   C6 The call that a CutAtCall falls on fails, yet its effect counts as made and not synced (a
//   Sync has none).
// Under CrashPolicy other than kDrop, unsynced writes survive whole, in part (torn at multiples of
// 512 bytes), not at all, or as bytes nobody wrote; name changes not synced survive as a prefix of
// the order in which they were made, like those of a journal, or in any order.
//
// Traces: what changes the device can be recorded, in order, and made again on another one, so that
// the power can be cut at every step of a run that happened once (sim_trace.h).
//
// Space: a file takes 4,096 bytes a page, names take none; a write that does not fit writes what
// fits, then fails. Paths are plain strings; "." and ".." are resolved by text, a relative path
// starts at "/". No symbolic links. Not simulated: a directory cannot be moved to another directory
// (kUnsupported).
//
// Thread-safety: any thread may call anything. Files and locks may outlive the SimEnv.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/env/env.h"
#include "store/env/sim_trace.h"

namespace siltfs {

// The kinds of calls, as bits to be combined.
enum class SimCall : uint32_t {
  kRead = 1U << 0,
  kWrite = 1U << 1,
  kSync = 1U << 2,
  kTruncate = 1U << 3,
  kPreallocate = 1U << 4,
  kOpen = 1U << 5,
  kCreate = 1U << 6,  // files, directories, and lock files that were not there
  kRename = 1U << 7,
  kRemove = 1U << 8,
  kSyncDirectory = 1U << 9,
  kList = 1U << 10,
  kInfo = 1U << 11,  // Size, GetFileInfo, GetDiskSpace
  kMutating =
      kWrite | kSync | kTruncate | kPreallocate | kCreate | kRename | kRemove | kSyncDirectory,
  kAny = (1U << 12) - 1,
};

constexpr SimCall operator|(SimCall a, SimCall b) {
  return static_cast<SimCall>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
constexpr bool Includes(SimCall mask, SimCall call) {
  return (static_cast<uint32_t>(mask) & static_cast<uint32_t>(call)) != 0;
}

// What becomes of changes that were not synced.
struct CrashPolicy {
  enum class Unsynced : uint8_t {
    kDrop,    // all are lost
    kKeep,    // all survive
    kPrefix,  // of each file the first few, the next one cut short
    kSubset,  // of each file any, some of them with any of their 512-byte sectors
    kGarble,  // as kSubset; of what is torn, some sectors hold what nobody wrote
  };
  Unsynced unsynced = Unsynced::kDrop;
  uint64_t seed = 0;  // decides for kPrefix, kSubset and kGarble
  // Of unsynced name changes any survive, as long as no older change of the same name is missing;
  // else a prefix of all. Of no meaning for kDrop and kKeep.
  bool names_in_any_order = false;
};

struct SimFault {
  SimCall calls = SimCall::kAny;
  uint64_t nth = 1;  // counted from now on, among the calls that match
  StatusCode code = StatusCode::kIoError;
  bool sticky = false;  // all matching calls after it fail too
  // Only calls with this in their path match (the source's, for a rename).
  std::string path_part = {};
  // A failing write writes this many bytes first. Otherwise a failing call has no effect but C5.
  uint64_t bytes_written = 0;
};

class SimDisk;

class SimEnv : public Env {
 public:
  static constexpr uint64_t kUnlimited = uint64_t{1} << 50;

  explicit SimEnv(uint64_t seed = 1);
  ~SimEnv() override;

  // --- What happens to the device ---

  // Everything volatile goes; afterwards the Env is as after a reboot. Armed faults and cuts stay
  // armed.
  void PowerCut(CrashPolicy policy = {});
  // The power goes at the nth mutating call from now on: that call and every later one fails
  // (kIoError) until Reboot.
  void CutAtCall(uint64_t nth);
  bool PowerIsOn() const;
  // After a CutAtCall that has struck; does what PowerCut does if none has. Disarms a cut that has
  // not.
  void Reboot(CrashPolicy policy = {});

  void FailCall(SimFault fault);
  void ClearFaults();
  // Calls of these kinds made so far, failed ones included, those without power not.
  uint64_t Calls(SimCall mask) const;

  // --- Traces. Replayed on a device that was as this one was when its recording began, a trace
  // leaves it as this one is: unsynced changes, power cuts excepted.

  // From now on every change is recorded.
  void StartTrace();
  // Ends the recording. Empty if none was begun.
  SimTrace TakeTrace();
  // Enters a note of the caller's into the trace, if one is being recorded.
  void Mark(ByteView note);
  // kCorruption for a record that does not fit this device.
  Status Replay(const SimRecord& record);
  // A device in the same state, unsynced changes included; nothing is open, armed or recorded on
  // it.
  std::unique_ptr<SimEnv> Fork() const;

  void SetCapacity(uint64_t bytes);  // rounded down to pages
  // Sets what NowNanoseconds answers. Time stands still by itself.
  void SetClock(int64_t nanoseconds);
  // Moves both clocks on.
  void AdvanceClock(int64_t nanoseconds);

  // --- Env ---

  Result<std::unique_ptr<File>> OpenFile(const std::string& path, OpenOptions options) override;
  Status CreateDirectory(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override;
  Status RemoveFile(const std::string& path) override;
  Status RemoveDirectory(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status SyncDirectory(const std::string& path) override;
  Result<FileInfo> GetFileInfo(const std::string& path) override;
  Result<DiskSpace> GetDiskSpace(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> LockFile(const std::string& path) override;
  // One read after the other, in the order given; each counts as a kRead of its own.
  Result<std::unique_ptr<ReadQueue>> NewReadQueue(unsigned depth) override;
  int64_t NowNanoseconds() override;
  int64_t MonotonicNanoseconds() override;
  // Not secret: drawn from the seed.
  Status FillRandom(MutableByteView out) override;

 private:
  std::shared_ptr<SimDisk> disk_;  // shared with open files and locks
};

}  // namespace siltfs
