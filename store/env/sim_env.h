// A simulated device for tests: a deterministic Env in memory that drops unsynced changes at a
// power cut, and fails calls on demand.
//
// The crash model. At a power cut:
//   C1 A file's content and size are those of its last successful Sync. Later writes and
//      truncations are lost, unless the CrashPolicy lets some of them survive.
//   C2 A name (of a file or directory created, renamed or removed) is in the state of the last
//      successful SyncDirectory of its directory. A file created since then is gone, even if its
//      content was synced; a file removed since then is back, with its last synced content. A
//      directory that is gone takes its contents with it.
//   C3 A rename is atomic. A rename between two directories is durable when both were synced after
//      it. Until then later changes of the two names are not durable either, even if they were
//      synced.
//   C4 Every File and FileLock from before the cut is dead: its calls fail with kIoError
//      permanently. No file is locked.
//   C5 A failed Sync makes nothing durable. The bytes it should have written never reach the
//      device, even if a later Sync succeeds, unless they are written again or share a 4,096-byte
//      page with later writes. Linux behaves in the same way. Readers of the file see the bytes
//      until the power cut.
//   C6 The call at which CutAtCall cuts the power fails. Its effect counts as made but not synced
//      (a Sync has no effect).
// Under a CrashPolicy other than kDrop, unsynced writes survive whole, in part (torn at multiples
// of 512 bytes), not at all, or as random bytes. Either a prefix of the unsynced name changes
// survives, as with a journal, or any of them survive.
//
// Traces: changes of the device can be recorded in order and replayed on another one, so that tests
// can cut the power at every step of one run (sim_trace.h).
//
// Space: a file takes 4,096 bytes per page, names take none; a write that does not fit writes as
// much as fits, then fails. Paths are plain strings: "." and ".." are resolved by text, and a
// relative path starts at "/". There are no symbolic links. Moving a directory to another directory
// is not simulated (kUnsupported).
//
// Thread-safety: every call from any thread. Files and locks may outlive the SimEnv.
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

// Kinds of calls, combinable as bits.
enum class SimCall : uint32_t {
  kRead = 1U << 0,
  kWrite = 1U << 1,
  kSync = 1U << 2,
  kTruncate = 1U << 3,
  kPreallocate = 1U << 4,
  kOpen = 1U << 5,
  kCreate = 1U << 6,  // files, directories, and missing lock files
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

// The fate of unsynced changes.
struct CrashPolicy {
  enum class Unsynced : uint8_t {
    kDrop,    // all are lost
    kKeep,    // all survive
    kPrefix,  // of each file a prefix of its changes, with the next change torn
    kSubset,  // of each file any of its changes, some of them only in some 512-byte sectors
    kGarble,  // like kSubset; some sectors of torn writes hold random bytes
  };
  Unsynced unsynced = Unsynced::kDrop;
  uint64_t seed = 0;  // for kPrefix, kSubset and kGarble
  // True: a random selection of the unsynced name changes survives, but no change survives without
  // the older changes of the same name. False: a prefix of all unsynced name changes survives.
  // Ignored for kDrop and kKeep.
  bool names_in_any_order = false;
};

struct SimFault {
  SimCall calls = SimCall::kAny;
  uint64_t nth = 1;  // counted from now on, among matching calls
  StatusCode code = StatusCode::kIoError;
  bool sticky = false;  // all later matching calls fail, too
  // Only calls with this text in their path match (for a rename, in the source path).
  std::string path_part = {};
  // A failing write writes this many bytes first. Apart from C5, failing calls have no other
  // effect.
  uint64_t bytes_written = 0;
};

class SimDisk;

class SimEnv : public Env {
 public:
  static constexpr uint64_t kUnlimited = uint64_t{1} << 50;

  explicit SimEnv(uint64_t seed = 1);
  ~SimEnv() override;

  // --- Faults of the device ---

  // Cuts the power. All volatile state is lost, and the Env is as after a reboot. Armed faults
  // stay armed; a cut armed by CutAtCall is disarmed.
  void PowerCut(CrashPolicy policy = {});
  // Cuts the power at the nth mutating call from now on: that call and all later calls fail
  // (kIoError) until Reboot.
  void CutAtCall(uint64_t nth);
  bool PowerIsOn() const;
  // Number of power cuts so far.
  uint64_t PowerCuts() const;
  // Restores the power after a cut by CutAtCall. If no such cut has happened, acts like PowerCut
  // and disarms the cut.
  void Reboot(CrashPolicy policy = {});

  void FailCall(SimFault fault);
  void ClearFaults();
  // Number of calls of these kinds so far, including failed calls, but not calls while the power
  // was off.
  uint64_t Calls(SimCall mask) const;

  // --- Traces. Suppose that a second device is in the state that this device had at StartTrace. A
  // replay of the trace gives the second device the state that this device had at TakeTrace,
  // including unsynced changes. This does not hold if the power was cut while tracing. ---

  // Records all changes from now on.
  void StartTrace();
  // Ends the recording and returns it; an empty trace if none was started.
  SimTrace TakeTrace();
  // Appends a note to the trace, if one is being recorded.
  void Mark(ByteView note);
  // Applies a recorded change. kCorruption if the change does not fit this device.
  Status Replay(const SimRecord& record);
  // A new device in the same state, including unsynced changes. It has no open files, armed faults
  // or recording.
  std::unique_ptr<SimEnv> Fork() const;
  // Fork and StartTrace at one moment: a replay of the trace on the fork lacks no change, even if
  // other threads change this device meanwhile.
  std::unique_ptr<SimEnv> ForkAndTrace();

  void SetCapacity(uint64_t bytes);  // rounded down to pages
  // Sets the result of NowNanoseconds. The clocks do not advance by themselves.
  void SetClock(int64_t nanoseconds);
  // Advances both clocks.
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
  // Reads sequentially, in the given order; each read counts as one kRead.
  Result<std::unique_ptr<ReadQueue>> NewReadQueue(unsigned depth) override;
  int64_t NowNanoseconds() override;
  int64_t MonotonicNanoseconds() override;
  // Fills `out` with bytes drawn from the seed, so they are not secret.
  Status FillRandom(MutableByteView out) override;

 private:
  std::shared_ptr<SimDisk> disk_;  // shared with open files and locks
};

}  // namespace siltfs
