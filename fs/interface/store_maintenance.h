// Maintenance of an open store: statistics, recompression, garbage collection and scrub.
//
// Thread-safety: every call from any thread; file operations and other maintenance run at the same
// time. Ownership: belongs to the FileSystem (FileSystem::maintenance). Errors: as stated; all
// calls but GetStats, GetHealth, GetActivity and Survey return kReadOnly if the store is read-only.
// Durability: if a crash undoes a change of a call that has returned OK, the next call makes this
// change again.
#pragma once

#include <cstdint>

#include "fs/interface/store_survey.h"
#include "store/base/result.h"

namespace siltfs {

struct FileSystemStats;      // fs/interface/stats.h
struct StoreActivityReport;  // fs/interface/activity.h
struct RecompressionReport;  // fs/interface/stats.h
struct GarbageReport;        // fs/interface/stats.h
struct ScrubReport;          // fs/interface/stats.h
struct StoreHealth;          // fs/interface/stats.h

enum class ScrubMode : uint8_t {
  kFull,    // as fast as it can
  kGentle,  // slows down while the store is in use
};

class StoreMaintenance {
 public:
  virtual ~StoreMaintenance() = default;

  virtual Result<FileSystemStats> GetStats() = 0;
  // Cheap, and without I/O on an idle store, so that a thread can ask again and again.
  virtual StoreHealth GetHealth() = 0;
  // Unlike GetStats, makes no changes of metadata that are deferred. So it may be called often.
  virtual StoreActivityReport GetActivity() = 0;

  // Lets writes that wait for room in FileSystemOptions::segments, and all later ones, go on
  // without waiting. For the end of a mount: what programs have written already then reaches the
  // disk, as far as it has room, and the segments are put at the next mount.
  virtual void EndWaitingForSegmentRoom() = 0;

  // Recompresses all sealed segments that are not recompressed yet, without waiting until the store
  // is quiet. Takes long. Returns kInterrupted once StopRecompression was called, and kNoSpace if
  // the disk is full.
  virtual Result<RecompressionReport> Recompress() = 0;
  // Stops recompression permanently; a running call of Recompress returns soon. FileSystem::Close
  // does this, too.
  virtual void StopRecompression() = 0;
  // Interrupts the Recompress calls that are running; they return kInterrupted soon. Recompression
  // in the background goes on.
  virtual void InterruptRecompression() = 0;

  // Frees the space of chunks that no file refers to any more, in segments with enough dead bytes.
  // First waits for the deletion of files without a name (FileSystemOptions::deletion_patience).
  // With `dry_run`, only estimates the result. Takes long. Returns kInterrupted once StopCollecting
  // was called, kCorruption if a file's recipe cannot be read, and kNoSpace if the copies of live
  // chunks do not fit on the disk.
  virtual Result<GarbageReport> CollectGarbage(bool dry_run) = 0;
  // Stops garbage collection permanently, as StopRecompression.
  virtual void StopCollecting() = 0;
  // As InterruptRecompression, for the CollectGarbage calls.
  virtual void InterruptCollecting() = 0;

  // Verifies all stored chunks and reports damage. If the last scrub was interrupted, in this mount
  // or an earlier one, continues where it stopped. Takes long. Damage that is found is not an
  // error. An interruption is not an error, either; it leaves the scrub incomplete. kIoError if the
  // device fails repeatedly.
  virtual Result<ScrubReport> Scrub(ScrubMode mode) = 0;
  // Interrupts the Scrub call that is running, if any; that call returns soon. A scrub in the
  // background goes on.
  virtual void InterruptScrub() = 0;
  // Stops scrubbing permanently, as StopRecompression.
  virtual void StopScrubbing() = 0;

  // Surveys all chunks, as of a commit after the beginning of the call. If nothing can be
  // committed, as of the last commit. Takes long: it walks all metadata. Also works on a store that
  // is read-only. Calls `on_progress` at intervals, and ends if that fails; it may be empty. While
  // it runs, garbage collection removes no segment. One survey at a time; another one waits.
  // Returns kInterrupted while the store is being closed, kCorruption for metadata that cannot be
  // read, and kNoSpace if no disk has room for what it sorts.
  virtual Result<StoreSurvey> Survey(const SurveyProgressFunction& on_progress) = 0;
};

}  // namespace siltfs
