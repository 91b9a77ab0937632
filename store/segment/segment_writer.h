// Appends blocks to one segment file and seals it.
//
// Thread-safety: all calls from any thread. Appends are serialized; Sync does not block them, and
// lookups wait for neither. A block can be found and read once its Append has returned. Ownership:
// `env` must outlive the writer. Errors: the first device failure is permanent: all later calls of
// Append, Sync and Seal return it and do nothing (after a failed sync the state of the device is
// unknown; I3 in docs/crash-model.md). A full disk is the exception: if Append or Seal fails with
// kNoSpace and failure() is OK, the segment is unchanged. In this case the segment can be synced,
// or the call can be repeated. But a failed sync is permanent, even with kNoSpace. Durability: an
// appended block is durable when a Sync that started later has returned OK; the first Sync also
// makes the file's name durable. Seal syncs everything before it writes the footer, so a whole
// footer proves that all blocks were durable.
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
  // No block starts at or beyond this offset. From kMinSegmentTargetSize to kMaxSegmentTargetSize.
  uint32_t target_size = kMaxSegmentTargetSize;
};

class SegmentWriter {
 public:
  // Creates a segment. Creates its directory durably if that is new. kAlreadyExists if a file with
  // that id exists (ids are never reused). `last_commit` is the last completed commit. After
  // kNoSpace there is no file.
  static Result<std::unique_ptr<SegmentWriter>> Create(Env& env, const std::string& store,
                                                       const SegmentIdentity& identity,
                                                       SegmentKind kind, uint64_t last_commit,
                                                       const SegmentWriterOptions& options = {});

  // Opens an unsealed segment for further appends, after a clean unmount that left it `length`
  // bytes long. kCorruption if the file has another length or does not consist of whole blocks
  // (payloads are not read).
  static Result<std::unique_ptr<SegmentWriter>> Resume(Env& env, const std::string& store,
                                                       const SegmentIdentity& identity,
                                                       uint64_t length,
                                                       const SegmentWriterOptions& options = {});

  // Closes the file; unsynced bytes stay unsynced.
  ~SegmentWriter();
  SegmentWriter(const SegmentWriter&) = delete;
  SegmentWriter& operator=(const SegmentWriter&) = delete;

  // Appends a block in one write; returns its place. `sequence` starts at 1 and must exceed that of
  // the previous block; `last_commit` is the last completed commit. kInvalidArgument if `sequence`
  // is too low, there is no room, the segment is sealed, or the block has deltas.
  Result<BlockPlace> Append(const EncodedBlock& block, uint64_t sequence, uint64_t last_commit);

  // Whether no block of any size can be added.
  bool IsFull() const;
  bool HasRoomFor(const EncodedBlock& block) const;

  // Makes all appended blocks durable. Returns at once if everything is synced.
  Status Sync();
  // Syncs, writes the footer and syncs again; afterwards the segment is immutable and the writer
  // serves only lookups. kInvalidArgument for a segment without blocks.
  Status Seal();

  SegmentId id() const { return identity_.id; }
  SegmentKind kind() const { return kind_; }
  const std::string& path() const { return file_->path(); }

  // The values below grow with each Append; Seal adds the footer to the two sizes.
  uint64_t size() const;         // valid bytes of the file, including the header
  uint64_t synced_size() const;  // of these, durable
  // The future trailer: counts, data_end, sequences (0 without a block), uncompressed bytes.
  SegmentTrailer totals() const;
  uint32_t chunk_count() const { return totals().chunk_count; }
  uint32_t block_count() const { return totals().block_count; }
  uint64_t plain_bytes() const { return totals().plain_bytes; }
  uint64_t first_sequence() const { return totals().first_sequence; }
  uint64_t last_sequence() const { return totals().last_sequence; }
  bool sealed() const;
  // OK, or the permanent failure of this writer.
  Status failure() const;

  // Entries [first_ordinal, first_ordinal + count) of the future footer, fewer at the end of the
  // segment.
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
  // Writes at the end of the file. Truncates a partial write after kNoSpace; makes any other
  // failure permanent.
  Status WriteAtEnd(uint64_t offset, ByteView bytes) SILTFS_REQUIRES(append_mutex_);
  // Starts writing appended bytes to the device, so that Sync has little left to do.
  void BeginSync(uint64_t size) SILTFS_REQUIRES(append_mutex_);
  // Keeps `status` if it is the first failure; returns the first failure.
  Status Fail(Status status) SILTFS_EXCLUDES(tables_mutex_);

  // Constant after construction.
  Env& env_;
  const std::string directory_;
  const SegmentIdentity identity_;
  const SegmentKind kind_;
  const SegmentWriterOptions options_;
  const std::unique_ptr<File> file_;

  // Lock order: append, sync, tables. No thread waits for the device while holding tables_mutex_.
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
  // Reading it needs the writer lock, too: with SILTFS_CHECK_STATUS, reading a Status modifies it.
  Status failure_ SILTFS_GUARDED_BY(tables_mutex_);
};

}  // namespace siltfs
