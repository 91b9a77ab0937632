// Appends blocks to one segment file and seals it.
//
// Thread-safety: all calls may come from any thread. Appends are made one after the other; Sync
// lets them go on meanwhile, and lookups wait for neither. A block can be looked up and read as
// soon as its Append has returned. Ownership: `env` must outlive the writer. Errors: the first
// failure of the device sticks: every later Append, Sync and Seal returns it again and touches
// nothing (after a failed sync nobody knows what reached the device, DESIGN I3). The exception is a
// disk that is full: an Append or Seal that fails with kNoSpace leaves the segment as it was
// before, to be synced or tried again. Durability: what Append wrote is durable when a Sync that
// started later has returned OK; the first one makes the file's name durable, too. Seal syncs
// everything before it writes the footer: a whole footer vouches for all blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"
#include "store/segment/block.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

struct SegmentWriterOptions {
  // No block starts at or beyond this offset. kMinSegmentTargetSize to kMaxSegmentTargetSize.
  uint32_t target_size = kMaxSegmentTargetSize;
};

class SegmentWriter {
 public:
  // A new segment; its directory is made durable if it is new. kAlreadyExists if there is a file of
  // that id (ids are never used again). `last_commit` is the last commit that has completed.
  // kNoSpace leaves no file behind.
  static Result<std::unique_ptr<SegmentWriter>> Create(Env& env, const std::string& store,
                                                       const SegmentIdentity& identity,
                                                       SegmentKind kind, uint64_t last_commit,
                                                       const SegmentWriterOptions& options = {});

  // An unsealed segment that a clean unmount left `length` bytes long, to be appended to further.
  // kCorruption if the file is not exactly that long or is not whole blocks up to its end (payloads
  // are not read).
  static Result<std::unique_ptr<SegmentWriter>> Resume(Env& env, const std::string& store,
                                                       const SegmentIdentity& identity,
                                                       uint64_t length,
                                                       const SegmentWriterOptions& options = {});

  // Closes the file; unsynced bytes stay unsynced.
  ~SegmentWriter();
  SegmentWriter(const SegmentWriter&) = delete;
  SegmentWriter& operator=(const SegmentWriter&) = delete;

  // One write. `sequence` counts from 1 and must be above that of the block before; `last_commit`
  // is the last commit that has completed. kInvalidArgument if it is not, if there is no room, or
  // if the segment is sealed.
  Result<BlockPlace> Append(const EncodedBlock& block, uint64_t sequence, uint64_t last_commit);

  // No block of any size may be added.
  bool IsFull() const;
  bool HasRoomFor(const EncodedBlock& block) const;

  // Returns at once when nothing is unsynced.
  Status Sync();
  // Syncs, adds the footer and syncs again; afterwards the segment is immutable and the writer of
  // use for lookups only. kInvalidArgument for a segment without a block.
  Status Seal();

  SegmentId id() const { return identity_.id; }
  SegmentKind kind() const { return kind_; }
  const std::string& path() const { return file_->path(); }

  // These move on with each Append; Seal adds the footer to the sizes.
  uint64_t size() const;         // bytes of the file that count, header included
  uint64_t synced_size() const;  // of these, durable
  // What the trailer will say: counts, data_end, sequences (0 without a block), plain bytes.
  SegmentTrailer totals() const;
  uint32_t chunk_count() const { return totals().chunk_count; }
  uint32_t block_count() const { return totals().block_count; }
  uint64_t plain_bytes() const { return totals().plain_bytes; }
  uint64_t first_sequence() const { return totals().first_sequence; }
  uint64_t last_sequence() const { return totals().last_sequence; }
  bool sealed() const;
  // OK, or the failure that ended this writer.
  Status failure() const;

  // What the footer will say. Entries of [first_ordinal, first_ordinal + count), fewer where the
  // segment ends.
  std::vector<FooterChunk> Window(uint32_t first_ordinal, uint32_t count) const;
  std::optional<FooterChunk> FindChunk(uint32_t ordinal) const;
  std::optional<BlockPlace> FindBlock(uint32_t ordinal) const;

 private:
  SegmentWriter(Env& env, const std::string& store, std::unique_ptr<File> file,
                const SegmentIdentity& identity, SegmentKind kind,
                const SegmentWriterOptions& options);

  Status RebuildTables(uint64_t length);
  bool HasRoom(uint64_t chunks) const SILTFS_REQUIRES_SHARED(tables_mutex_);
  Status SyncHoldingSyncMutex() SILTFS_REQUIRES(sync_mutex_);
  // Cleans up after a full disk; makes any other failure stick.
  Status WriteAtEnd(uint64_t offset, ByteView bytes) SILTFS_REQUIRES(append_mutex_);
  // Has the device begin with what was appended, so that Sync finds little left to do.
  void BeginSync(uint64_t size) SILTFS_REQUIRES(append_mutex_);
  // Remembers the failure if it is the first, and returns the first.
  Status Fail(Status status) SILTFS_EXCLUDES(tables_mutex_);

  // Constant after construction.
  Env& env_;
  const std::string directory_;
  const SegmentIdentity identity_;
  const SegmentKind kind_;
  const SegmentWriterOptions options_;
  const std::unique_ptr<File> file_;

  // Locks are taken in this order: append, sync, tables. No one waits for the device while holding
  // tables_mutex_.
  Mutex append_mutex_ SILTFS_ACQUIRED_BEFORE(sync_mutex_);
  Bytes write_buffer_ SILTFS_GUARDED_BY(append_mutex_);
  uint64_t sync_begun_ SILTFS_GUARDED_BY(append_mutex_) = 0;

  Mutex sync_mutex_ SILTFS_ACQUIRED_BEFORE(tables_mutex_);
  bool name_durable_ SILTFS_GUARDED_BY(sync_mutex_) = false;

  mutable SharedMutex tables_mutex_;
  SegmentFooter footer_ SILTFS_GUARDED_BY(tables_mutex_);
  uint64_t size_ SILTFS_GUARDED_BY(tables_mutex_) = kSegmentHeaderSize;
  uint64_t synced_size_ SILTFS_GUARDED_BY(tables_mutex_) = 0;
  bool sealed_ SILTFS_GUARDED_BY(tables_mutex_) = false;
  bool failed_ SILTFS_GUARDED_BY(tables_mutex_) = false;
  // Looked at under the writer's lock only: a Status that is checked for having been read changes
  // by it.
  Status failure_ SILTFS_GUARDED_BY(tables_mutex_);
};

}  // namespace siltfs
