// The log of a key-value store's values, or of the parts of them that don't fit the index's slots:
// "indirection" in SILT, section 4, "Variable-Length Key-Values". The index keeps a record's
// location, and a lookup takes one more read of flash.
//
// The log is a directory of segments (store/segment): records are gathered into blocks, blocks are
// appended to one open segment, and when it is full it is sealed and another begun. A record never
// moves; whoever reclaims space appends what is still in use once more and removes the segment.
// Format: docs/format.md, "Value log".
//
// Thread-safety: any call from any thread. Appends, and the part of Sync that writes the open
// block, go one after the other; reads wait for none of them. Not for two processes or two
// ValueLogs at the same time: the owner of the directory keeps them out. Durability: a record is
// durable when a Sync that began after its Append has returned OK. The destructor syncs nothing.
// Errors: kNoSpace fails the call that met it and nothing else: the log is as it was, and the call
// may be made again when there is room. The first other failure of a write sticks: every later
// Append, Sync, SealOpenSegment and Remove returns it, for nobody knows what has reached the device
// (open the log anew to go on); a Remove that fails is no such failure. Reads go on in all cases.
// Memory: some 100 bytes a segment, the open block, and until ForgetRecovered 24 bytes a record of
// the segments that a crash has left unsealed.
// Ownership: `env` must outlive the log.
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
  // Is there, durably, and holds nothing else.
  std::string directory;
  // Nothing is written. An unsealed segment is read as far as it goes.
  bool read_only = false;
  Compression compression{.codec = BlockCodecId::kNone};
  // Where a segment is full: kMinSegmentTargetSize to kMaxSegmentTargetSize.
  uint32_t segment_bytes = kMaxSegmentTargetSize;
  // Records, 32 bytes each for the block's table included, are gathered up to this many; a larger
  // one gets a block of its own. A read brings one block. 1 to kMaxBlockPlainBytes.
  uint32_t block_bytes = 16U << 10;
  // Segments that are kept open for reading, at least 1.
  size_t open_files = 64;
};

struct ValueLogStats {
  uint64_t records = 0;      // in all segments, those that were lost in a crash included
  uint64_t flash_bytes = 0;  // that the segments take
  // Since the log was opened:
  uint64_t bytes_appended = 0;  // of records
  uint64_t bytes_written = 0;   // to segments, by opening too
  uint64_t block_reads = 0;     // from flash
  // Stretches and segments that opening found damaged, and reads that failed for damage. A crash
  // may have lost writes in front of others that it has not: then opening counts that, too.
  uint64_t damaged = 0;
};

class ValueLog {
 public:
  static constexpr size_t kMaxRecordBytes = kMaxBlockPlainBytes;

  // Makes what is missing in a new directory, durably. Seals what a crash has left, for which the
  // disk must have room (kNoSpace). kCorruption if the manifest is damaged, missing where there are
  // segments, or older than they are. Damage in segments fails nothing here: see stats().
  static Result<std::unique_ptr<ValueLog>> Open(Env& env, const ValueLogOptions& options);
  ~ValueLog();
  ValueLog(const ValueLog&) = delete;
  ValueLog& operator=(const ValueLog&) = delete;

  // Adds a record of 1 to kMaxRecordBytes bytes; it can be read at once. Its name is any 20 bytes
  // by which a read can tell that it has got the right one.
  Result<Location> Append(const ChunkName& name, ByteView bytes);

  // The record that Append has put there. kNotFound if there is no such segment: it was removed,
  // and whoever asks has an old location. kCorruption for damage, or another record in that place.
  // One read of the device if the record has no more than `expected_bytes`, or shares its block
  // with others.
  Result<Bytes> Read(const ChunkName& name, const Location& location,
                     size_t expected_bytes = 0) const;

  Status Sync();

  // Whether a location that was noted before a crash, by someone who doesn't know whether it had
  // been synced, is one where Read finds the record. Not asked of the device: of sealed segments it
  // is whether they are there, of those that the crash has left unsealed what was found in them.
  bool Holds(const ChunkName& name, const Location& location) const;
  // Nobody asks Holds about what was appended before the log was opened any more: whatever that
  // knows of the log is durable. Until it was called, later openings, too, know what is missing in
  // the segments that were unsealed.
  void ForgetRecovered();

  struct SegmentInfo {
    SegmentId id = kNoSegment;
    uint64_t bytes = 0;        // on flash
    uint64_t plain_bytes = 0;  // of the records
    uint32_t records = 0;
    bool open = false;  // then with what is not yet written
  };
  // Rising by id.
  std::vector<SegmentInfo> segments() const;

  using RecordVisitor = std::function<Status(const ChunkName&, const Location&, ByteView bytes)>;
  // Visits all records of a segment that is not open, in order, verified. Returns how many damaged
  // stretches were left out. kNotFound: no such segment; kInvalidArgument: it is open; the
  // visitor's failure ends it.
  Result<uint64_t> ForEachRecord(SegmentId id, const RecordVisitor& visitor) const;

  // Everything appended so far is durable, and the next Append begins a new segment. After it, the
  // log opens again without anything to be salvaged.
  Status SealOpenSegment();

  // Gives the segment's space back. Durable on return; after an error the segment may be there or
  // not, and come back with a power cut. Reads that have begun go on. kInvalidArgument: it is open.
  Status Remove(SegmentId id);

  ValueLogStats stats() const;
  // OK, or the failure that sticks.
  Status failure() const SILTFS_EXCLUDES(state_mutex_);

 private:
  ValueLog(Env& env, const ValueLogOptions& options, const ValueLogManifest& manifest,
           FoundValueSegments found);

  Status CheckWritable() const;
  // Remembers the failure if it is the first, and returns the first.
  Status Fail(Status status) SILTFS_EXCLUDES(state_mutex_);
  // The same, unless the disk is full and that has changed nothing in the writer.
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
  uint64_t reserved_segments_ SILTFS_GUARDED_BY(append_mutex_);  // ids below may be used
  uint64_t next_sequence_ SILTFS_GUARDED_BY(append_mutex_);

  // No one waits for the device while holding it.
  mutable Mutex state_mutex_;
  // The open block and the writer change only while both mutexes are held.
  OpenValueBlock open_block_ SILTFS_GUARDED_BY(state_mutex_);
  std::shared_ptr<SegmentWriter> writer_ SILTFS_GUARDED_BY(state_mutex_);  // may be null
  // The open one, too; what is said of it here means nothing.
  std::map<SegmentId, ValueSegment> segments_ SILTFS_GUARDED_BY(state_mutex_);
  std::map<SegmentId, SegmentFooter> recovered_ SILTFS_GUARDED_BY(state_mutex_);
  std::vector<SegmentId> incomplete_ SILTFS_GUARDED_BY(state_mutex_);  // for the manifest
  mutable SegmentReaderCache readers_ SILTFS_GUARDED_BY(state_mutex_);
  Status failure_ SILTFS_GUARDED_BY(state_mutex_);
  uint64_t bytes_appended_ SILTFS_GUARDED_BY(state_mutex_) = 0;
  uint64_t bytes_written_ SILTFS_GUARDED_BY(state_mutex_);  // to segments other than the open one

  mutable std::atomic<uint64_t> block_reads_{0};
  mutable std::atomic<uint64_t> damaged_;
};

}  // namespace siltfs
