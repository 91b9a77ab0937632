// The file system itself, independent of FUSE: inodes, names and file contents, over metadata
// (fs/meta) and chunks (fs/chunks).
//
// Thread-safety: every call from any thread. Ownership: the FileSystem owns the open store, lock
// included. Order: an operation takes effect before its call returns, so before all calls that
// begin later. Operations whose calls overlap take effect in any order. A crash preserves a prefix
// of the order in which operations took effect (docs/crash-model.md). The kernel checks permissions
// (default_permissions); FileSystem does not. Errors: for each Status code, fs/fuse returns the
// errno that POSIX requires. Changes return kReadOnly once the store has turned read-only.
// Durability: operations are durable once Fsync, SyncAll or Close has returned OK, or else with the
// next periodic commit.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "index/slice_bloom/slice_bloom.h"
#include "store/base/bytes.h"
#include "store/base/notice.h"
#include "store/base/progress_meter.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

using InodeNumber = uint64_t;  // never reused
inline constexpr InodeNumber kRootInode = 1;

// POSIX limits of this file system.
inline constexpr size_t kMaxNameBytes = 255;
// 8 EiB less one byte, the largest off_t. The kernel refuses larger offsets before it caches the
// data. With a lower limit, an accepted write could fail later, at writeback.
inline constexpr uint64_t kMaxFileBytes = (uint64_t{1} << 63) - 1;
inline constexpr size_t kMaxXattrValueBytes = 65536;
inline constexpr size_t kMaxXattrListBytes = 65536;  // names, each with its terminating zero
inline constexpr uint32_t kMaxLinks = 1000000;

// Whether a directory may have an entry of this name.
inline bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name != "." && name != ".." &&
         name.find('/') == name.npos && name.find('\0') == name.npos;
}

struct Attributes {
  InodeNumber inode = 0;
  uint64_t generation = 0;  // FileSystem::GenerationOf; only in the replies of Lookup and Link
  uint32_t mode = 0;        // type and permission bits, as st_mode
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

// The attributes that SetAttributes changes. Attributes without a value stay unchanged.
struct AttributeChange {
  std::optional<uint32_t> mode;  // permission bits
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  std::optional<uint64_t> size;
  std::optional<int64_t> atime;
  std::optional<int64_t> mtime;
  std::optional<int64_t> ctime;  // without a value: the time of the change
  // Removes the extra privileges of the file, like Privileges::kDropAll. If this is false, a new
  // size, owner or group still removes the privileges that kDropCapability removes. Directories
  // keep all privileges.
  bool kill_privileges = false;
};

// The extra privileges of an executable file that a write removes.
enum class Privileges : uint8_t {
  kKeep,
  kDropCapability,  // the extended attribute security.capability
  kDropAll,         // also set-user-id, and set-group-id if the group may execute
};

// How a write sets the file's times.
enum class WriteTimes : uint8_t {
  kNow,      // to the time of the write
  kMayKeep,  // keeps the times: the write comes from a cache that sets them itself, by
             // SetAttributes, perhaps before this write. Acts like kNow if the cache has not set
             // them since the file was opened.
};

// The process that creates an inode.
struct Caller {
  uint32_t uid = 0;
  uint32_t gid = 0;
  // Permission bits to clear, unless the directory has a default access control list, which
  // replaces the umask.
  uint32_t umask = 0;
  // Whether the kernel enforces access control lists. If it does not, default lists are ignored. An
  // inherited list would put its mask into the group's permission bits, and without enforcement
  // these bits would apply to the whole group.
  bool acls = true;
};

struct DirectoryRecord {
  std::string_view name;
  InodeNumber inode = 0;
  uint32_t mode = 0;    // type bits only, as st_mode
  uint64_t cookie = 0;  // pass it to ReadDirectory to continue after this record
};

struct SpaceInfo {
  uint64_t block_size = 4096;
  uint64_t total_bytes = 0;  // of the underlying disk
  uint64_t free_bytes = 0;
  uint64_t available_bytes = 0;
  uint64_t inodes = 0;                       // in use
  std::optional<uint64_t> inodes_left = {};  // by a quota
};

enum class RenameMode : uint8_t { kReplace, kNoReplace, kExchange };
enum class XattrMode : uint8_t {
  kSet,
  kCreate,
  kReplace,
  kSetWithoutSetGid,  // as kSet; a new access control list clears the set-group-ID bit
};
enum class AllocateMode : uint8_t {
  // Makes the file grow, but reserves no disk space. kNoSpace if the part of the range beyond the
  // end of the file is larger than the available space.
  kReserve,
  kZero,  // the range becomes a hole
};
enum class SeekTarget : uint8_t { kData, kHole };

// Whether the root directory has the directory of snapshots (fs/interface/snapshots.h).
enum class SnapshotDirectoryMode : uint8_t {
  kHidden,   // it can be opened, but listings of the root directory do not have it
  kVisible,  // listings have it, too
  kOff,      // there is no such directory
};

class BaseChooser;   // store/segment/base_chooser.h
class KvStore;       // fs/kv/kv_store.h
class SegmentStore;  // store/segment/segment_store.h

// The options of an open store. The defaults of a mount are set only here.
struct FileSystemOptions {
  std::string store;  // path of the store directory
  // Where sealed segments are kept; must outlive the file system. Null: in the store's directory.
  SegmentStore* segments = nullptr;
  // How long writes wait while `segments` has no room and takes nothing, before they fail with
  // kNoSpace.
  std::chrono::nanoseconds segment_patience = std::chrono::minutes(2);
  // Puts a layer on the metadata's key-value store, before anything else is done with it
  // (fs/shipping). `segments` is used only after this call. With read_only it only reads.
  std::function<Result<std::unique_ptr<KvStore>>(std::unique_ptr<KvStore>)> metadata_layer = {};
  // Bytes that the place of sealed segments can hold, which programs see as the size of the file
  // system. 0: what the disk of the store's directory has.
  uint64_t capacity_bytes = 0;
  bool read_only = false;
  SnapshotDirectoryMode snapshot_directory = SnapshotDirectoryMode::kHidden;
  // If not empty: shows the snapshot of this name instead of the live file system, without a
  // directory of snapshots. Needs read_only.
  std::string snapshot;
  std::chrono::milliseconds commit_interval{5000};
  // If no change is made for this long, commits before commit_interval is over, within the limits
  // of fs/meta/commit_pace.h. 0: never.
  std::chrono::milliseconds quiet_interval{0};
  // Approximate bytes of metadata in one commit. Up to two such groups are in memory. Deferred
  // changes may take as many bytes as one more group.
  size_t group_bytes = 3u << 20;
  std::optional<uint64_t> index_memory;  // bytes; overrides the value in the superblock
  // The entries of written blocks are durable in the index at once, so that a mount after a crash
  // need not put them again.
  bool index_sync = false;
  // Bytes per second that the index may rewrite in the background; 0: no limit.
  uint64_t index_merge_rate = 0;
  size_t block_cache_bytes = 10u << 20;  // decoded blocks, those read ahead included
  size_t footer_cache_bytes = 5u << 20;
  size_t pipeline_bytes = 5u << 20;  // at most this many uncompressed bytes of pending chunks
  size_t worker_threads = 2;         // compress and append blocks
  size_t readahead_threads = 2;      // 0: no readahead
  // While the compressing threads have little to do, data blocks grow to the size of recompressed
  // blocks. Which chunks share a block then depends on the timing of threads.
  bool dense_when_idle = false;
  // Recompresses sealed segments in the background once the store is quiet: no chunk was put and no
  // file was read for `recompress_after`.
  bool recompress_in_background = false;
  std::chrono::milliseconds recompress_after{5000};
  // Chooses the bases of deltas for recompression, in a store that may have deltas (make_store.h).
  // Must outlive the file system. Null: chunks that resemble each other (fs/deltas).
  BaseChooser* base_chooser = nullptr;
  // Collects garbage in the background once enough content was removed or replaced.
  bool collect_in_background = false;
  // Keeps the history of the store's sizes while it is open, with a sample a day. Without this,
  // only the end of a mount takes a sample.
  bool record_sizes_daily = false;
  // StoreMaintenance::CollectGarbage waits this long at most for deleted files that are still in
  // use. The kernel reports only some time after a deletion that a file is no longer in use.
  std::chrono::milliseconds deletion_patience{1000};
  // Keeps disk space allocated as a reserve for a full disk (store/env/space_reserve.h). Without
  // the reserve, the store only leaves a part of the disk free.
  bool keep_reserve = false;
  // Keeps a segment guide (fs/guide/segment_guide.h), which finds chunks without the index.
  bool keep_guide = false;
  // The shape of a new segment guide. With smaller groups, a search reads fewer footers and more
  // pages of the guide. With fewer groups in a slicefilter, it reads more pages, and new segments
  // write less: with 64 groups, 144 bytes for each name.
  SliceBloomShape guide_shape{.groups_per_filter = 64};
  // With a segment guide: if the index lacks the entries of more chunks than this, they are put in
  // the background, and the store is opened at once. Reads find their chunks meanwhile; calls that
  // store chunks wait. A store that is opened for reading only then leaves the entries away.
  uint64_t most_replayed_at_open = uint64_t{1} << 18;
  // Called after each segment whose entries were put in the background. May be empty.
  std::function<void(uint64_t segments_done, uint64_t segments_total)> on_index_progress;
  // Counts the work of the opening, which takes long after a crash. Null, or must outlive the
  // opening.
  ProgressMeter* opening = nullptr;
  // Polled while the store is opened. True ends the opening with kInterrupted and leaves the store
  // as a crash would. May be empty.
  std::function<bool()> interrupted;
  // Called from any thread with a sentence about damage, or about a failure that no call returns.
  // Damage that Read meets is reported once for each damaged block. May be empty.
  std::function<void(const Notice& finding)> report;
};

class ContentSource;      // fs/interface/content_source.h
class DirectoryQuotas;    // fs/interface/directory_quotas.h
class EntryStore;         // fs/interface/entry_store.h
class Snapshots;          // fs/interface/snapshots.h
class SnapshotTransfers;  // fs/interface/snapshot_transfers.h
class StoreMaintenance;   // fs/interface/store_maintenance.h
class UsageMeasures;      // fs/interface/space_usage.h

class FileSystem {
 public:
  // Locks the store (kInUse if it is already open), recovers it after a crash and opens it.
  static Result<std::unique_ptr<FileSystem>> Open(Env& env, FileSystemOptions options);
  virtual ~FileSystem() = default;

  // --- names. Lookup, Link, and each call that makes an inode add one to the lookup count of the
  // inode whose Attributes they return; Forget subtracts from it. An inode without names exists as
  // long as its lookup count is not 0 or it is open.
  //
  // Lookup of "." returns `parent` itself, which may be of any type; kStale once `parent` has no
  // name left. ".." is the parent directory (of the root: the root). These names are for callers
  // that have only an inode number, for example from a file handle. Numbers are never reused, so a
  // number gives the same inode or none.
  virtual Result<Attributes> Lookup(InodeNumber parent, std::string_view name) = 0;
  virtual void Forget(InodeNumber inode, uint64_t lookups) = 0;
  // Regular files, fifos, sockets and device nodes.
  virtual Result<Attributes> MakeNode(InodeNumber parent, std::string_view name, uint32_t mode,
                                      uint64_t device, Caller caller) = 0;
  virtual Result<Attributes> MakeDirectory(InodeNumber parent, std::string_view name, uint32_t mode,
                                           Caller caller) = 0;
  virtual Result<Attributes> MakeSymlink(InodeNumber parent, std::string_view name,
                                         std::string_view target, Caller caller) = 0;
  // Adds a name to a file; a temporary file gets its first name. kNotFound for a file that has lost
  // its last name.
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
  // Names are in the namespaces of xattr(7). The access control lists (posix_acl.h) are in
  // "system.". Setting the access list sets the permission bits, and changing the bits changes the
  // list; a list equivalent to the bits is not kept. New entries inherit the directory's default
  // list, which replaces the umask. kInvalidArgument for a malformed list, kAccessDenied for a
  // default list of a non-directory, kNoSpace if the names would no longer fit a listing.
  virtual Result<std::string> GetXattr(InodeNumber inode, std::string_view name) = 0;
  virtual Status SetXattr(InodeNumber inode, std::string_view name, std::string_view value,
                          XattrMode mode) = 0;
  virtual Result<std::vector<std::string>> ListXattrs(InodeNumber inode) = 0;
  virtual Status RemoveXattr(InodeNumber inode, std::string_view name) = 0;

  // --- directories. Visits "." and ".." (cookies 1 and 2) and then the entries after `cookie` in
  // creation order, until `visit` returns false. A listing may take several calls, and entries may
  // be added and removed during it. An entry that exists during the whole listing is visited once.
  virtual Status ReadDirectory(InodeNumber directory, uint64_t cookie,
                               const std::function<bool(const DirectoryRecord&)>& visit) = 0;

  // --- files. Each OpenFile, CreateFile or MakeTemporaryFile is paired with one ReleaseFile.
  virtual Result<Attributes> CreateFile(InodeNumber parent, std::string_view name, uint32_t mode,
                                        Caller caller) = 0;
  // Makes a regular file without a name, with the attributes of a file made in `directory`. The
  // file is open and has a lookup count of 1, as after CreateFile. Link can give it a name while it
  // is open. If it gets no name, it is removed once it is not open and its lookup count is 0, or by
  // the next mount after a crash.
  virtual Result<Attributes> MakeTemporaryFile(InodeNumber directory, uint32_t mode,
                                               Caller caller) = 0;
  virtual Status OpenFile(InodeNumber inode, bool truncate) = 0;
  // kReadOnly if the inode belongs to a snapshot. Call it before the file is opened for writing:
  // the kernel may keep written bytes, and show them to other programs, before it sends them.
  virtual Status CheckOpenForWriting(InodeNumber inode) const = 0;
  // Changes if a rollback changes a file, so that the kernel does not go on with what it knows.
  virtual uint64_t GenerationOf(InodeNumber /*inode*/) const { return 0; }
  virtual void ReleaseFile(InodeNumber inode) = 0;
  // Returns the number of bytes read, fewer than asked for only at the end of the file. kCorruption
  // is also reported (FileSystemOptions::report).
  virtual Result<size_t> Read(InodeNumber inode, uint64_t offset, MutableByteView out) = 0;
  // Writes all of `data`, or returns an error.
  virtual Status Write(InodeNumber inode, uint64_t offset, ByteView data,
                       Privileges privileges = Privileges::kKeep,
                       WriteTimes times = WriteTimes::kNow) = 0;
  // As fallocate(2). The file grows to the end of the range unless `keep_size`. length > 0.
  virtual Status Allocate(InodeNumber inode, AllocateMode mode, uint64_t offset, uint64_t length,
                          bool keep_size, Privileges privileges = Privileges::kKeep) = 0;
  // As lseek(2) with SEEK_DATA and SEEK_HOLE (the end of the file is a hole); nullopt where lseek
  // fails with ENXIO.
  virtual Result<std::optional<uint64_t>> Seek(InodeNumber inode, uint64_t offset,
                                               SeekTarget target) = 0;
  // As copy_file_range(2), but shares chunks instead of copying bytes. Returns the number of bytes,
  // fewer than asked for only at the source's end. kInvalidArgument for overlapping ranges of one
  // file.
  virtual Result<uint64_t> CopyRange(InodeNumber source, uint64_t source_offset, InodeNumber target,
                                     uint64_t target_offset, uint64_t length,
                                     Privileges privileges = Privileges::kKeep) = 0;
  virtual Status Fsync(InodeNumber inode) = 0;

  // --- the whole file system
  virtual Status SyncAll() = 0;
  virtual Result<SpaceInfo> GetSpace() = 0;
  // The space for this inode, which a quota may limit.
  virtual Result<SpaceInfo> GetSpaceOf(InodeNumber /*inode*/) { return GetSpace(); }
  // Whether the disk may be full when the kernel writes back data that it caches now. The call is
  // cheap, and its answer may be a few seconds old.
  virtual bool NearlyFull() const = 0;
  // As NearlyFull, for data of this inode, also if a quota may be used up.
  virtual bool NearlyFullFor(InodeNumber /*inode*/) { return NearlyFull(); }
  // Puts whole entries, for copies of trees. No call may follow Close.
  virtual EntryStore& entries() = 0;
  // Reads the contents of many files in the order of the log. No call may follow Close.
  virtual ContentSource& contents() = 0;
  // Statistics, recompression, garbage collection and scrub. No call may follow Close.
  virtual StoreMaintenance& maintenance() = 0;
  // Makes and removes snapshots. No call may follow Close.
  virtual Snapshots& snapshots() = 0;
  // Sets and shows quotas. No call may follow Close. Null if there can be none.
  virtual DirectoryQuotas* quotas() { return nullptr; }
  // Sends and receives snapshots. No call may follow Close.
  virtual SnapshotTransfers& transfers() = 0;
  // Measures what paths take and share, and finds duplicates. No call may follow Close.
  virtual UsageMeasures& usage() = 0;
  // Commits everything and closes the store cleanly. No call may follow. Without Close, destruction
  // is like a crash.
  virtual Status Close() = 0;
};

}  // namespace siltfs
