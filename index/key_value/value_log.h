// The log of a key-value store's values, or of the parts of them that don't fit the index's slots:
// "indirection" in SILT, section 4, "Variable-Length Key-Values". The index keeps a record's
// location, and a lookup needs one more flash read.
//
// The log is a directory of segments (store/segment). Records are gathered into blocks, and blocks
// are appended to one open segment; a full segment is sealed and another begun. A record never
// moves: KeyValueStore::Reclaim appends the live records again and removes the segment. Format:
// docs/format.md, "Value log".
//
// Thread-safety: any call from any thread. Appends, and the part of Sync that writes the open
// block, are serialised; reads wait for none of them. Only one ValueLog may use a directory at a
// time, also across processes; the directory's owner must ensure that. Durability: a record is
// durable when a Sync that began after its Append has returned OK. The destructor syncs nothing.
// Errors: kNoSpace fails only its call: the log is unchanged, and the call may be repeated when
// there is room. The first other write failure is permanent: every later Append, Sync,
// SealOpenSegment and Remove returns it, because the device's contents are unknown. Open the log
// again to continue. A failed Remove is not such a failure. Reads work after all of these failures.
// Memory: about 100 bytes per segment, and the open block. Until ForgetRecovered, also at most 24
// bytes per record of segments that a crash has left unsealed. Ownership: `env` must outlive the
// log.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "index/key_value/open_value_block.h"
#include "index/key_value/segment_reader_cache.h"
#include "index/key_value/value_log_manifest.h"
#include "index/key_value/value_log_recovery.h"
#include "store/base/chunk_name.h"
#include "store/base/location.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"
#include "store/segment/block_codec.h"
#include "store/segment/segment_writer.h"

namespace siltfs {

struct ValueLogOptions {
  // Must exist durably, and hold only the log's files.
  std::string directory;
  // True: nothing is written, and an unsealed segment is read up to its last whole block.
  bool read_only = false;
  Compression compression{.codec = BlockCodecId::kNone};
  // Size at which a segment is full: kMinSegmentTargetSize to kMaxSegmentTargetSize.
  uint32_t segment_bytes = kMaxSegmentTargetSize;
  // Block size up to which records are gathered, including 32 bytes per record for the block's
  // table. A larger record gets a block of its own. A read reads one block. 1 to
  // kMaxBlockPlainBytes.
  uint32_t block_bytes = 16U << 10;
  // Segments kept open for reading, at least 1.
  size_t open_files = 64;
};

struct ValueLogStats {
  uint64_t records = 0;      // in all segments, including records lost in a crash
  uint64_t flash_bytes = 0;  // size of the segments
  // Since the log was opened:
  uint64_t bytes_appended = 0;  // of records
  uint64_t bytes_written = 0;   // to segments, also while the log was opened
  uint64_t block_reads = 0;     // from flash
  // Damaged stretches and segments found while opening, and reads that failed because of damage.
  // Also counts writes lost in a crash if later writes survived.
  uint64_t damaged = 0;
};

class ValueLog {
 public:
  static constexpr size_t kMaxRecordBytes = kMaxBlockPlainBytes;

  // Opens the log. In a new directory it creates the missing files, durably. Seals segments that a
  // crash left unsealed; the disk must have room for that (kNoSpace). kCorruption if the manifest
  // is damaged, is missing although there are segments, or is older than the segments. Damage in
  // segments does not fail the call; stats() counts it.
  static Result<std::unique_ptr<ValueLog>> Open(Env& env, const ValueLogOptions& options);
  ~ValueLog();
  ValueLog(const ValueLog&) = delete;
  ValueLog& operator=(const ValueLog&) = delete;

  // Adds a record of 1 to kMaxRecordBytes bytes; it can be read at once. The name is any 20 bytes;
  // a read uses it to verify that it has the right record.
  Result<Location> Append(const ChunkName& name, ByteView bytes);

  // Returns the record that Append put at `location`. kNotFound if the segment was removed, so the
  // location is outdated. kCorruption for damage, or another record in that place. Takes one device
  // read if the record has at most `expected_bytes`, or shares its block with others.
  Result<Bytes> Read(const ChunkName& name, const Location& location,
                     size_t expected_bytes = 0) const;

  Status Sync();

  // Whether Read would find the record at `location`. The index may have kept a location whose
  // record was lost in a crash, because the record was not synced. Does not access the device. For
  // a sealed segment Holds tests only that the segment exists. For a segment that a crash left
  // unsealed, Holds tests the records that opening has found.
  bool Holds(const ChunkName& name, const Location& location) const;
  // Call this when all entries that refer to the log are durable, and Holds will not be called
  // again for records that were appended before this opening. Without this call, the next opening
  // also finds out which records are missing in segments that a crash left unsealed.
  void ForgetRecovered();

  struct SegmentInfo {
    SegmentId id = kNoSegment;
    uint64_t bytes = 0;        // on flash
    uint64_t plain_bytes = 0;  // uncompressed, of the records
    uint32_t records = 0;
    bool open = false;  // if true, the counts include the records not yet written
  };
  // In rising order of ids.
  std::vector<SegmentInfo> segments() const;

  using RecordVisitor = std::function<Status(const ChunkName&, const Location&, ByteView bytes)>;
  // Visits all records of a segment that is not open, in order, and verifies them. Returns the
  // number of damaged stretches that were skipped. kNotFound: no such segment; kInvalidArgument:
  // the segment is open. A failure of the visitor ends the call.
  Result<uint64_t> ForEachRecord(SegmentId id, const RecordVisitor& visitor) const;

  // Makes everything appended so far durable; the next Append begins a new segment. After this
  // call, the log can be opened without salvaging.
  Status SealOpenSegment();

  // Removes a segment. Durable on return; after an error the segment may exist or not, and a power
  // cut may bring it back. Reads that have begun continue. kInvalidArgument: the segment is open.
  Status Remove(SegmentId id);

  ValueLogStats stats() const;
  // OK, or the permanent failure of writing.
  Status failure() const SILTFS_EXCLUDES(state_mutex_);

 private:
  ValueLog(Env& env, const ValueLogOptions& options, const ValueLogManifest& manifest,
           FoundValueSegments found);

  Status CheckWritable() const;
  // Records the failure if it is the first; returns the first failure.
  Status Fail(Status status) SILTFS_EXCLUDES(state_mutex_);
  // Like Fail, but does not record kNoSpace if the failed call left the writer unchanged.
  Status FailUnlessFull(const SegmentWriter& writer, Status status);

  Status WriteOpenBlock() SILTFS_REQUIRES(append_mutex_);
  Status BeginBlock() SILTFS_REQUIRES(append_mutex_);
  Status CreateWriter() SILTFS_REQUIRES(append_mutex_);
  Status ReserveIds() SILTFS_REQUIRES(append_mutex_);
  Status SealWriter() SILTFS_REQUIRES(append_mutex_);
  std::shared_ptr<SegmentWriter> writer() const SILTFS_EXCLUDES(state_mutex_);

  SegmentIdentity IdentityOf(SegmentId id) const { return {store_, id}; }
  Status NoSuchSegment(SegmentId id) const;
  Result<SegmentReaderCache::Reader> ReaderOf(SegmentId id) const SILTFS_EXCLUDES(state_mutex_);
  Result<DecodedBlockPtr> ReadBlockAt(const SegmentReader& reader, uint32_t offset,
                                      size_t record_bytes) const;

  // Constant after construction.
  Env& env_;
  const ValueLogOptions options_;
  const StoreUuid store_;
  const BlockCodec codec_;

  // Held while a block is written or a segment begun or sealed. Taken before state_mutex_.
  Mutex append_mutex_ SILTFS_ACQUIRED_BEFORE(state_mutex_);
  uint64_t next_segment_ SILTFS_GUARDED_BY(append_mutex_);
  uint64_t reserved_segments_ SILTFS_GUARDED_BY(append_mutex_);  // segment ids below this one may
                                                                 // be used
  uint64_t next_sequence_ SILTFS_GUARDED_BY(append_mutex_);

  // Never held while waiting for the device.
  mutable Mutex state_mutex_;
  // The open block and the writer change only while both mutexes are held.
  OpenValueBlock open_block_ SILTFS_GUARDED_BY(state_mutex_);
  std::shared_ptr<SegmentWriter> writer_ SILTFS_GUARDED_BY(state_mutex_);  // may be null
  // Includes the open segment, but the values of its entry are meaningless.
  std::map<SegmentId, ValueSegment> segments_ SILTFS_GUARDED_BY(state_mutex_);
  std::map<SegmentId, SegmentFooter> recovered_ SILTFS_GUARDED_BY(state_mutex_);
  std::vector<SegmentId> incomplete_ SILTFS_GUARDED_BY(state_mutex_);  // listed in the manifest
  mutable SegmentReaderCache readers_ SILTFS_GUARDED_BY(state_mutex_);
  Status failure_ SILTFS_GUARDED_BY(state_mutex_);
  uint64_t bytes_appended_ SILTFS_GUARDED_BY(state_mutex_) = 0;
  uint64_t bytes_written_ SILTFS_GUARDED_BY(state_mutex_);  // to segments other than the open one

  mutable std::atomic<uint64_t> block_reads_{0};
  mutable std::atomic<uint64_t> damaged_;
};

}  // namespace siltfs
