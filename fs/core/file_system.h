// The file system itself, free of FUSE: inodes, names, files' contents, over metadata (fs/meta) and
// chunks (fs/dedup).
//
// Thread-safety: every call from any thread. Ownership: the FileSystem owns the open store, lock
// included. Order: operations take effect in the order their calls return or, where they overlap,
// in some order; what survives a crash is a prefix of that order (docs/crash-model.md). Permissions
// are the kernel's business (default_permissions); nothing here checks them. Errors: Status codes
// as a POSIX caller expects (fs/fuse maps them). kReadOnly once the store has turned read-only.
// Durability: none until Fsync, SyncAll or Close returned OK; every commit interval at the latest.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

using InodeNumber = uint64_t;  // never reused
inline constexpr InodeNumber kRootInode = 1;

// POSIX limits of this file system.
inline constexpr size_t kMaxNameBytes = 255;
// 8 EiB less one byte: as far as offsets reach (off_t). The kernel refuses what lies beyond before
// it takes data into its cache; a lower limit would be met only when that is written back.
inline constexpr uint64_t kMaxFileBytes = (uint64_t{1} << 63) - 1;
inline constexpr size_t kMaxXattrValueBytes = 65536;
inline constexpr size_t kMaxXattrListBytes = 65536;  // names, each with a zero behind it
inline constexpr uint32_t kMaxLinks = 1000000;

// Whether a directory may have an entry of this name.
inline bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name != "." && name != ".." &&
         name.find('/') == name.npos && name.find('\0') == name.npos;
}

struct Attributes {
  InodeNumber inode = 0;
  uint32_t mode = 0;  // type and permission bits, as st_mode
  uint32_t links = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t device = 0;  // of device nodes, as st_rdev
  uint64_t size = 0;
  uint64_t allocated_bytes = 0;  // size less holes
  int64_t atime = 0;             // all times in nanoseconds since 1970
  int64_t mtime = 0;
  int64_t ctime = 0;
  int64_t btime = 0;
};

// What SetAttributes changes; what is empty stays.
struct AttributeChange {
  std::optional<uint32_t> mode;  // permission bits
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  std::optional<uint64_t> size;
  std::optional<int64_t> atime;
  std::optional<int64_t> mtime;
  std::optional<int64_t> ctime;  // else: now
  // Set-user-id goes, and set-group-id where the group may execute. A capability goes with every
  // new size, owner or group. Neither from directories.
  bool kill_privileges = false;
};

// What a write takes from a file that gives those who run it more rights than they have.
enum class Privileges : uint8_t {
  kKeep,
  kDropCapability,  // the extended attribute security.capability
  kDropAll,         // and set-user-id, and set-group-id where the group may execute
};

// Who tells when a file was changed.
enum class WriteTimes : uint8_t {
  kNow,      // the write is the change
  kMayKeep,  // it was made earlier, and comes from a cache that tells the times by SetAttributes,
             // perhaps before this write; until it has told any, as kNow
};

// Who makes something new.
struct Caller {
  uint32_t uid = 0;
  uint32_t gid = 0;
  // Permission bits to leave out, unless the directory's default access control list says what
  // there is to leave out.
  uint32_t umask = 0;
  // Whether such lists are enforced. Else directories' default lists count for nothing: the group's
  // permission bits, which would then hold the list's mask, would let the whole group in.
  bool acls = true;
};

struct DirectoryRecord {
  std::string_view name;
  InodeNumber inode = 0;
  uint32_t mode = 0;    // type bits only, as st_mode
  uint64_t cookie = 0;  // pass it to ReadDirectory to go on behind this record
};

struct SpaceInfo {
  uint64_t block_size = 4096;
  uint64_t total_bytes = 0;  // of the disk below
  uint64_t free_bytes = 0;
  uint64_t available_bytes = 0;
  uint64_t inodes = 0;  // in use
};

enum class RenameMode : uint8_t { kReplace, kNoReplace, kExchange };
enum class XattrMode : uint8_t {
  kSet,
  kCreate,
  kReplace,
  kSetWithoutSetGid,  // as kSet; the set-group-ID bit goes with a new access control list
};
enum class AllocateMode : uint8_t {
  kReserve,  // nothing is set aside; but the file grows, and more than the disk has is refused
  kZero,     // the range becomes a hole
};
enum class SeekTarget : uint8_t { kData, kHole };

struct FileSystemOptions {
  std::string store;  // path of the store directory
  bool read_only = false;
  std::chrono::milliseconds commit_interval{5000};
  // Changes that pause for so long are committed before the interval is over, within the limits of
  // fs/meta/commit_pace.h; 0: never.
  std::chrono::milliseconds quiet_interval{0};
  // Of metadata that is committed together, about; two of these are in memory. Changes kept back
  // until their commit may come to as much again.
  size_t group_bytes = 3u << 20;
  std::optional<uint64_t> index_memory;  // bytes; overrides the store's own
  // Blocks of data grow to the size they have once settled while compressing has little to do.
  // Which chunks share a block then depends on the pace of threads.
  bool dense_when_idle = false;
  // Recompresses sealed segments in the background when nothing was written for so long.
  bool settle_in_background = false;
  std::chrono::milliseconds settle_after{5000};
  // Collects garbage in the background once enough was removed or replaced.
  bool collect_in_background = false;
  // Keeps disk space claimed for a disk that is full (store/env/space_reserve.h); without it a part
  // of the disk is only left free.
  bool keep_reserve = false;
  // Asked now and then while the store is opened; true ends that with kInterrupted, as a crash
  // would. May be empty.
  std::function<bool()> interrupted;
  // Called with a sentence about damage or failures that no caller is told of, and once for each
  // damaged block that Read meets; from any thread. May be empty.
  std::function<void(const std::string& finding)> report;
};

struct FileSystemStats;  // fs/core/stats.h
struct SettleReport;     // fs/core/stats.h
struct GarbageReport;    // fs/core/stats.h
struct ScrubReport;      // fs/core/stats.h

enum class ScrubMode : uint8_t {
  kFull,    // as fast as it can
  kGentle,  // makes way for who uses the store
};

class FileSystem {
 public:
  // Locks the store (kInUse if someone has it), recovers it after a crash and opens it.
  static Result<std::unique_ptr<FileSystem>> Open(Env& env, FileSystemOptions options);
  virtual ~FileSystem() = default;

  // --- names. Every call that returns Attributes of an entry by name (Lookup, Make*, Link, Create)
  // adds one to the inode's lookup count, which Forget takes back: an inode without names lives on
  // while it is looked up or open.
  //
  // "." is `parent` itself, of whatever type, and kStale once it has no name left; ".." the
  // directory above a directory (above the root: the root). Both serve those who come with a number
  // they kept: numbers are never reused, so it is the same inode or none.
  virtual Result<Attributes> Lookup(InodeNumber parent, std::string_view name) = 0;
  virtual void Forget(InodeNumber inode, uint64_t lookups) = 0;
  // Regular files, fifos, sockets and device nodes.
  virtual Result<Attributes> MakeNode(InodeNumber parent, std::string_view name, uint32_t mode,
                                      uint64_t device, Caller caller) = 0;
  virtual Result<Attributes> MakeDirectory(InodeNumber parent, std::string_view name, uint32_t mode,
                                           Caller caller) = 0;
  virtual Result<Attributes> MakeSymlink(InodeNumber parent, std::string_view name,
                                         std::string_view target, Caller caller) = 0;
  // kNotFound for a file that has lost its last name; a temporary one gets its first.
  virtual Result<Attributes> Link(InodeNumber inode, InodeNumber new_parent,
                                  std::string_view new_name) = 0;
  virtual Status Unlink(InodeNumber parent, std::string_view name) = 0;
  virtual Status RemoveDirectory(InodeNumber parent, std::string_view name) = 0;
  virtual Status Rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                        std::string_view new_name, RenameMode mode) = 0;
  virtual Result<std::string> ReadLink(InodeNumber inode) = 0;

  // --- attributes
  virtual Result<Attributes> GetAttributes(InodeNumber inode) = 0;
  virtual Result<Attributes> SetAttributes(InodeNumber inode, const AttributeChange& change) = 0;
  // Names are in the namespaces of xattr(7). Of "system." there are the access control lists
  // (posix_acl.h): setting the access list sets the permission bits, changing these changes the
  // list, and a list that says no more than they do is not kept. A directory's default list goes to
  // what is made in it, where it takes the umask's place. kInvalidArgument for a malformed list,
  // kAccessDenied for a default list of what is no directory, kNoSpace where the names would no
  // longer fit a listing.
  virtual Result<std::string> GetXattr(InodeNumber inode, std::string_view name) = 0;
  virtual Status SetXattr(InodeNumber inode, std::string_view name, std::string_view value,
                          XattrMode mode) = 0;
  virtual Result<std::vector<std::string>> ListXattrs(InodeNumber inode) = 0;
  virtual Status RemoveXattr(InodeNumber inode, std::string_view name) = 0;

  // --- directories. Visits "." and ".." (cookies 1 and 2) and then the entries behind `cookie` in
  // creation order, until `visit` returns false. Stable under change: what was there all along is
  // visited exactly once.
  virtual Status ReadDirectory(InodeNumber directory, uint64_t cookie,
                               const std::function<bool(const DirectoryRecord&)>& visit) = 0;

  // --- files. Each OpenFile, CreateFile or MakeTemporaryFile is paired with one ReleaseFile.
  virtual Result<Attributes> CreateFile(InodeNumber parent, std::string_view name, uint32_t mode,
                                        Caller caller) = 0;
  // A regular file without a name that would be entered in `directory`: open and looked up once, as
  // if created; gone once neither, or after a crash, unless Link named it while it was open.
  virtual Result<Attributes> MakeTemporaryFile(InodeNumber directory, uint32_t mode,
                                               Caller caller) = 0;
  virtual Status OpenFile(InodeNumber inode, bool truncate) = 0;
  virtual void ReleaseFile(InodeNumber inode) = 0;
  // The number of bytes read: fewer than asked for only at the end of the file. kCorruption was
  // reported (FileSystemOptions::report).
  virtual Result<size_t> Read(InodeNumber inode, uint64_t offset, MutableByteView out) = 0;
  // All of `data` or an error.
  virtual Status Write(InodeNumber inode, uint64_t offset, ByteView data,
                       Privileges privileges = Privileges::kKeep,
                       WriteTimes times = WriteTimes::kNow) = 0;
  // As fallocate(2). The file grows to the end of the range unless `keep_size`. length > 0.
  virtual Status Allocate(InodeNumber inode, AllocateMode mode, uint64_t offset, uint64_t length,
                          bool keep_size, Privileges privileges = Privileges::kKeep) = 0;
  // As lseek(2) with SEEK_DATA and SEEK_HOLE (the end of the file is a hole); nothing where those
  // answer ENXIO.
  virtual Result<std::optional<uint64_t>> Seek(InodeNumber inode, uint64_t offset,
                                               SeekTarget target) = 0;
  // Copies as copy_file_range(2), without copying any bytes; how many, fewer than asked for only at
  // the source's end. kInvalidArgument for ranges of one file that overlap.
  virtual Result<uint64_t> CopyRange(InodeNumber source, uint64_t source_offset, InodeNumber target,
                                     uint64_t target_offset, uint64_t length,
                                     Privileges privileges = Privileges::kKeep) = 0;
  virtual Status Fsync(InodeNumber inode) = 0;

  // --- the whole
  virtual Status SyncAll() = 0;
  virtual Result<SpaceInfo> GetSpace() = 0;
  // Whether a write that is accepted into somebody's cache now may find no room later. Cheap, and a
  // few seconds old.
  virtual bool NearlyFull() const = 0;
  virtual Result<FileSystemStats> GetStats() = 0;
  // Recompresses everything that awaits it (all sealed segments that are not settled), now. Other
  // calls go on meanwhile; takes long. kInterrupted once StopSettling was called, kNoSpace.
  virtual Result<SettleReport> Settle() = 0;
  // Ends recompression for good: a Settle under way returns soon. Close does so, too.
  virtual void StopSettling() = 0;
  // Gives back the space of what no file refers to any more, as far as it lies in segments of which
  // enough is dead; with `dry_run` only says what it would. Other calls go on meanwhile; takes
  // long. kInterrupted once StopCollecting was called, kNoSpace, kCorruption where a file's recipe
  // cannot be read.
  virtual Result<GarbageReport> CollectGarbage(bool dry_run) = 0;
  // Ends garbage collection for good, as StopSettling.
  virtual void StopCollecting() = 0;
  // Verifies all that is stored, chunk by chunk, and reports what is damaged; goes on where the
  // last one was interrupted, in this mount or another. Other calls go on meanwhile; takes long.
  // What is found is no failure, and a scrub that was interrupted is not complete. kIoError where
  // the device fails again and again.
  virtual Result<ScrubReport> Scrub(ScrubMode mode) = 0;
  // Ends the one under way, if there is one: it returns soon.
  virtual void InterruptScrub() = 0;
  // Ends scrubbing for good, as StopSettling.
  virtual void StopScrubbing() = 0;
  // Commits everything and closes the store cleanly. No call may follow. Without it destruction is
  // like a crash.
  virtual Status Close() = 0;
};

}  // namespace siltfs
