// Maintenance of an open store: statistics, recompression, garbage collection and scrub.
//
// Thread-safety: every call from any thread; file operations and other maintenance proceed
// meanwhile. Ownership: belongs to the FileSystem (FileSystem::maintenance). Errors: as stated;
// kReadOnly for all but statistics if the store is read-only. Durability: what these calls change
// survives a crash when they have returned OK, or is repeated by the next call.
#pragma once

#include <cstdint>

#include "store/base/result.h"

namespace siltfs {

struct FileSystemStats;      // fs/interface/stats.h
struct RecompressionReport;  // fs/interface/stats.h
struct GarbageReport;        // fs/interface/stats.h
struct ScrubReport;          // fs/interface/stats.h

enum class ScrubMode : uint8_t {
  kFull,    // as fast as it can
  kGentle,  // slows down while the store is in use
};

class StoreMaintenance {
 public:
  virtual ~StoreMaintenance() = default;

  virtual Result<FileSystemStats> GetStats() = 0;

  // Recompresses all sealed segments that await it, now. Takes long. kInterrupted once
  // StopRecompression was called, kNoSpace.
  virtual Result<RecompressionReport> Recompress() = 0;
  // Stops recompression permanently; a Recompress under way returns soon. FileSystem::Close does
  // this, too.
  virtual void StopRecompression() = 0;

  // Frees the space of chunks that no file refers to any more, in segments with enough dead bytes.
  // With `dry_run`, only estimates the result. Takes long. kInterrupted once StopCollecting was
  // called, kNoSpace, kCorruption if a file's recipe cannot be read.
  virtual Result<GarbageReport> CollectGarbage(bool dry_run) = 0;
  // Stops garbage collection permanently, as StopRecompression.
  virtual void StopCollecting() = 0;

  // Verifies all stored chunks and reports damage. Continues where the last scrub was interrupted,
  // in this mount or another. Takes long. Found damage is not an error. An interruption is no
  // error, either: it leaves the scrub incomplete. kIoError if the device fails again and again.
  virtual Result<ScrubReport> Scrub(ScrubMode mode) = 0;
  // Interrupts the Scrub call that is running, if any; that call returns soon. A scrub in the
  // background goes on.
  virtual void InterruptScrub() = 0;
  // Stops scrubbing permanently, as StopRecompression.
  virtual void StopScrubbing() = 0;
};

}  // namespace siltfs
