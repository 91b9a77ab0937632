// The only door to the operating system for everything that keeps bytes: files, directories, locks,
// the clock and the source of randomness. Two implementations stand behind it: PosixEnv (the
// machine) and SimEnv (a simulated device that forgets what was not synced and fails calls on
// demand, for tests).
//
// Thread-safety: an Env may be used by any thread; a File too, as long as no two writes overlap.
// Errors: Status with the path (and offset, for reads and writes). Nothing is retried but EINTR and
// short transfers. Durability: a write is durable after Sync of its file returned OK; a new,
// renamed or removed name is durable after SyncDirectory of its directory returned OK. Nothing else
// is promised, and nothing else may be assumed. After a failed Sync what reached the device is
// unknown: callers must not sync again and believe the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/base/status.h"
#include "store/env/read_queue.h"

namespace siltfs {

class File {
 public:
  virtual ~File() = default;

  virtual const std::string& path() const = 0;
  // The file that an Env's own parts know, where another Env has put its own in front of it.
  virtual const File& underlying() const { return *this; }
  // Fills `out` from `offset`; fewer bytes only where the file ends.
  virtual Result<size_t> Read(uint64_t offset, MutableByteView out) const = 0;
  // Writes all of `data` or fails (then any prefix may have been written).
  virtual Status Write(uint64_t offset, ByteView data) = 0;
  // Makes all bytes written so far, and the file's size, durable.
  virtual Status Sync() = 0;
  // Has the device begin with bytes that were written, so that less is left to do for Sync, which
  // alone promises anything and tells of failures.
  virtual void BeginSync(uint64_t /*offset*/, uint64_t /*size*/) {}
  // Has the device begin to read bytes that will be asked for one by one.
  virtual void BeginRead(uint64_t /*offset*/, uint64_t /*size*/) const {}
  virtual Status Truncate(uint64_t size) = 0;
  // Claims disk space for [0, size) without changing the file's size. kUnsupported where the disk
  // can't.
  virtual Status Preallocate(uint64_t size) = 0;
  virtual Result<uint64_t> Size() const = 0;
  // Reports what closing has to report; the destructor closes silently. No call but the destructor
  // may follow.
  virtual Status Close() = 0;
};

// Held until destroyed (or until the process ends, however it ends).
class FileLock {
 public:
  virtual ~FileLock() = default;
};

enum class OpenMode : uint8_t {
  kRead,       // must exist
  kReadWrite,  // must exist
  kCreate,     // read-write; must not exist
};

struct OpenOptions {
  OpenMode mode = OpenMode::kRead;
  // O_DIRECT: offsets, sizes and buffers must be multiples of 4,096. kUnsupported where the disk
  // can't.
  bool direct = false;
};

enum class FileType : uint8_t { kRegular, kDirectory, kLink, kOther };  // kLink: a symbolic one

struct DirectoryEntry {
  std::string name;
  FileType type = FileType::kRegular;
};

struct FileInfo {
  FileType type = FileType::kRegular;
  uint64_t size = 0;             // bytes
  uint64_t allocated_bytes = 0;  // on the disk; less than size in a sparse file
};

struct DiskSpace {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;       // for the superuser
  uint64_t available_bytes = 0;  // for this process
};

class Env {
 public:
  virtual ~Env() = default;

  // kCorruption if it is neither a file nor a directory.
  virtual Result<std::unique_ptr<File>> OpenFile(const std::string& path, OpenOptions options) = 0;
  // Not durable until the parent is synced. kAlreadyExists if there is anything of that name. Mode
  // 0700.
  virtual Status CreateDirectory(const std::string& path) = 0;
  // Without "." and "..", in no particular order.
  virtual Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) = 0;
  virtual Status RemoveFile(const std::string& path) = 0;
  virtual Status RemoveDirectory(const std::string& path) = 0;
  // Replaces `to` if it is a file; atomic for whoever looks, before and after a crash.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status SyncDirectory(const std::string& path) = 0;
  // kNotFound if there is nothing.
  virtual Result<FileInfo> GetFileInfo(const std::string& path) = 0;
  // Of the disk `path` lies on.
  virtual Result<DiskSpace> GetDiskSpace(const std::string& path) = 0;
  // Creates the file if need be and locks it against every other holder, in this process or
  // another; kInUse if held, kCorruption if it is no file.
  virtual Result<std::unique_ptr<FileLock>> LockFile(const std::string& path) = 0;

  // For reads of files of this Env, up to `depth` (1 to ReadQueue::kMaxDepth) of them at the same
  // time. The queue may outlive the Env.
  virtual Result<std::unique_ptr<ReadQueue>> NewReadQueue(unsigned depth) = 0;

  // Nanoseconds since 1970, UTC, by the clock that the kernel stamps files with: it stands still
  // for some milliseconds at a time.
  virtual int64_t NowNanoseconds() = 0;
  // Never runs backwards; only differences mean anything.
  virtual int64_t MonotonicNanoseconds() = 0;
  // Unpredictable bytes, fit for secrets.
  virtual Status FillRandom(MutableByteView out) = 0;
};

}  // namespace siltfs
