// The only access to the operating system for storage: files, directories, locks, the clock and the
// source of randomness. There are two implementations: PosixEnv (the machine) and SimEnv (a
// simulated device for tests, which drops unsynced writes and fails calls on demand).
//
// Thread-safety: any thread may use an Env. Any thread may use a File, if no two writes to it
// overlap. Errors: Status with the path (and offset, for reads and writes). Only EINTR and short
// transfers are retried. Durability: a write is durable after Sync of its file returned OK. A new,
// renamed or removed name is durable after SyncDirectory of its directory returned OK. Callers must
// not assume that anything else is durable. After a failed Sync the state of the device is unknown:
// callers must not sync again and trust the result.
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

// The reading half of a File. Objects that are read in the same way, but are no files of an Env,
// implement this class alone (store/segment/segment_store.h).
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  // The path, or another name that identifies the object in messages.
  virtual const std::string& path() const = 0;
  // Reads out.size() bytes from `offset` on, fewer only at the end of the file; returns their
  // number.
  virtual Result<size_t> Read(uint64_t offset, MutableByteView out) const = 0;
  // Starts reading these bytes into the page cache. Call it before these bytes are read piece by
  // piece.
  virtual void BeginRead(uint64_t /*offset*/, uint64_t /*size*/) const {}
  virtual Result<uint64_t> Size() const = 0;
};

class File : public ReadableFile {
 public:
  // Returns this file, unless it belongs to an Env that wraps another one. In that case, returns
  // the file of the innermost Env, because the read queues of that Env need it.
  virtual const File& underlying() const { return *this; }
  // Writes all of `data`, or fails; after a failure any prefix may have been written.
  virtual Status Write(uint64_t offset, ByteView data) = 0;
  // Makes all bytes written so far, and the file's size, durable.
  virtual Status Sync() = 0;
  // Starts writing these bytes to the device, so that Sync takes less time. A hint: only Sync
  // guarantees durability and reports failures.
  virtual void BeginSync(uint64_t /*offset*/, uint64_t /*size*/) {}
  virtual Status Truncate(uint64_t size) = 0;
  // Claims disk space for [0, size) without changing the file's size. kUnsupported if the file
  // system can't.
  virtual Status Preallocate(uint64_t size) = 0;
  // Reports errors of closing; the destructor ignores them. Only the destructor may follow.
  virtual Status Close() = 0;
};

// A lock. It is held until this object is destroyed, or until the process ends in any way.
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
  // O_DIRECT: offsets, sizes and buffer addresses must be multiples of 4,096. kUnsupported if the
  // file system can't.
  bool direct = false;
};

enum class FileType : uint8_t { kRegular, kDirectory, kLink, kOther };  // kLink: symbolic link

struct DirectoryEntry {
  std::string name;
  FileType type = FileType::kRegular;
};

struct FileInfo {
  FileType type = FileType::kRegular;
  uint64_t size = 0;             // bytes
  uint64_t allocated_bytes = 0;  // on disk; less than size in a sparse file
};

struct DiskSpace {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;       // for the superuser
  uint64_t available_bytes = 0;  // for this process
};

class Env {
 public:
  virtual ~Env() = default;

  // kCorruption if the path leads to neither a file nor a directory.
  virtual Result<std::unique_ptr<File>> OpenFile(const std::string& path, OpenOptions options) = 0;
  // Creates a directory with mode 0700; it is not durable until the parent is synced.
  // kAlreadyExists if the name is taken.
  virtual Status CreateDirectory(const std::string& path) = 0;
  // The entries except "." and "..", in no particular order.
  virtual Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) = 0;
  virtual Status RemoveFile(const std::string& path) = 0;
  virtual Status RemoveDirectory(const std::string& path) = 0;
  // Replaces `to` if it is a file. The change is atomic for readers, and across a crash.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status SyncDirectory(const std::string& path) = 0;
  // kNotFound if `path` does not exist.
  virtual Result<FileInfo> GetFileInfo(const std::string& path) = 0;
  // The space of the file system that holds `path`.
  virtual Result<DiskSpace> GetDiskSpace(const std::string& path) = 0;
  // Creates the file if it is missing and locks it exclusively. kInUse if it is locked, also if
  // this process holds the lock. kIsADirectory if it is a directory, kCorruption if it is neither a
  // regular file nor a directory.
  virtual Result<std::unique_ptr<FileLock>> LockFile(const std::string& path) = 0;

  // A queue that reads files of this Env, at most `depth` (1 to ReadQueue::kMaxDepth) at the same
  // time. The queue may outlive the Env.
  virtual Result<std::unique_ptr<ReadQueue>> NewReadQueue(unsigned depth) = 0;

  // Nanoseconds since 1970, UTC, by the clock that the kernel uses for file times. The resolution
  // of this clock is some milliseconds.
  virtual int64_t NowNanoseconds() = 0;
  // A clock that never runs backwards; only differences of its values are meaningful.
  virtual int64_t MonotonicNanoseconds() = 0;
  // Fills `out` with unpredictable bytes, fit for secrets.
  virtual Status FillRandom(MutableByteView out) = 0;
};

}  // namespace siltfs
