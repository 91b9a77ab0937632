#include "index/key_value/value_log.h"

#include <fmt/format.h>

#include <utility>

#include "store/base/checksum.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_scan.h"

namespace siltfs {
namespace {

// Segments that can be begun before the manifest must be written again.
constexpr uint64_t kReservedIds = 64;

Status Invalid(std::string cause) { return {StatusCode::kInvalidArgument, std::move(cause)}; }

Status Validate(const ValueLogOptions& options) {
  if (options.directory.empty()) return Invalid("a value log needs a directory");
  if (options.segment_bytes < kMinSegmentTargetSize ||
      options.segment_bytes > kMaxSegmentTargetSize) {
    return Invalid(fmt::format("segment size {} is not between {} and {}", options.segment_bytes,
                               kMinSegmentTargetSize, kMaxSegmentTargetSize));
  }
  if (options.block_bytes < 1 || options.block_bytes > kMaxBlockPlainBytes) {
    return Invalid(fmt::format("block size {} is not between 1 and {}", options.block_bytes,
                               kMaxBlockPlainBytes));
  }
  if (options.open_files < 1) return Invalid("a value log needs at least one open file to read");
  return ValidateCompression(options.compression);
}

// Whether the segment has room for another block. The block's number of records is not known yet,
// so there must be room for as many records as a block can have.
bool HasRoomForABlock(const SegmentWriter& writer) {
  return !writer.IsFull() && writer.chunk_count() + kMaxBlockChunks <= kMaxSegmentChunks;
}

ValueSegment DescriptionOf(const SegmentWriter& writer) {
  const SegmentTrailer totals = writer.totals();
  return {.file_bytes = writer.size(),
          .data_end = totals.data_end,
          .plain_bytes = totals.plain_bytes,
          .records = totals.chunk_count};
}

// Returns the record, or an error if it isn't in this block.
Result<Bytes> RecordIn(const DecodedBlock& block, const ChunkName& name, const Location& location) {
  if (block.head().Covers(location.ordinal)) {
    const size_t i = location.ordinal - block.head().first_ordinal;
    if (block.records()[i].name == name) {
      const ByteView bytes = block.chunk(i);
      return Bytes(bytes.begin(), bytes.end());
    }
  }
  return Status(StatusCode::kCorruption, fmt::format("block has no record {} with ordinal {}",
                                                     name.ToHex(), location.ordinal));
}

}  // namespace

Result<std::unique_ptr<ValueLog>> ValueLog::Open(Env& env, const ValueLogOptions& options) {
  SILTFS_RETURN_IF_ERROR(Validate(options));
  SILTFS_ASSIGN_OR_RETURN(RecoveredValueLog recovered,
                          RecoverValueLog(env, options.directory, options.read_only));
  return std::unique_ptr<ValueLog>(
      new ValueLog(env, options, recovered.manifest, std::move(recovered.segments)));
}

ValueLog::ValueLog(Env& env, const ValueLogOptions& options, const ValueLogManifest& manifest,
                   FoundValueSegments found)
    : env_(env),
      options_(options),
      store_(manifest.store),
      next_segment_(manifest.next_segment),
      reserved_segments_(manifest.next_segment),
      next_sequence_(found.last_sequence + 1),
      segments_(std::move(found.segments)),
      recovered_(std::move(found.footers)),
      incomplete_(manifest.incomplete),
      readers_(options.open_files),
      bytes_written_(found.bytes_written),
      damaged_(found.damaged) {}

ValueLog::~ValueLog() = default;

Status ValueLog::CheckWritable() const {
  if (options_.read_only) {
    return Status(StatusCode::kReadOnly, "the value log was opened for reading only")
        .At(options_.directory);
  }
  return failure();
}

Status ValueLog::failure() const {
  MutexLock lock(state_mutex_);
  return failure_;
}

Status ValueLog::Fail(Status status) {
  MutexLock lock(state_mutex_);
  if (failure_.ok()) {
    failure_ = std::move(status);
  } else {
    status.IgnoreError("the first failure is the one that counts");
  }
  return failure_;
}

Status ValueLog::FailUnlessFull(const SegmentWriter& writer, Status status) {
  if (status.Is(StatusCode::kNoSpace) && writer.failure().ok()) return status;
  return Fail(std::move(status));
}

std::shared_ptr<SegmentWriter> ValueLog::writer() const {
  MutexLock lock(state_mutex_);
  return writer_;
}

Result<Location> ValueLog::Append(const ChunkName& name, ByteView bytes) {
  if (bytes.empty() || bytes.size() > kMaxRecordBytes) {
    return Invalid(
        fmt::format("a record has {} bytes; it must have 1 to {}", bytes.size(), kMaxRecordBytes));
  }
  const ChunkRecord record{name, Checksum(bytes), static_cast<uint32_t>(bytes.size())};
  MutexLock append_lock(append_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  bool takes = false;
  {
    MutexLock lock(state_mutex_);
    takes = open_block_.Takes(bytes.size(), options_.block_bytes);
    if (takes && !open_block_.empty()) {
      bytes_appended_ += bytes.size();
      return open_block_.Add(record, bytes);
    }
  }
  if (!takes) SILTFS_RETURN_IF_ERROR(WriteOpenBlock());
  SILTFS_RETURN_IF_ERROR(BeginBlock());
  MutexLock lock(state_mutex_);
  bytes_appended_ += bytes.size();
  return open_block_.Add(record, bytes);
}

Status ValueLog::WriteOpenBlock() {
  PlainBlock plain;
  {
    MutexLock lock(state_mutex_);
    if (open_block_.empty()) return Status::Ok();
    // Copy the open block, because readers use it until it is written, and it stays open if the
    // write fails.
    plain = open_block_.block();
  }
  const std::shared_ptr<SegmentWriter> to = writer();
  SILTFS_ASSIGN_OR_RETURN(EncodedBlock encoded,
                          codec_.Encode(std::move(plain), options_.compression));
  auto written = to->Append(encoded, next_sequence_, 0);
  if (!written.ok()) return FailUnlessFull(*to, std::move(written).status());
  ++next_sequence_;
  MutexLock lock(state_mutex_);
  open_block_.Clear();
  return Status::Ok();
}

Status ValueLog::BeginBlock() {
  std::shared_ptr<SegmentWriter> to = writer();
  if (to && !HasRoomForABlock(*to)) SILTFS_RETURN_IF_ERROR(SealWriter());
  if (!writer()) SILTFS_RETURN_IF_ERROR(CreateWriter());
  MutexLock lock(state_mutex_);
  open_block_.Begin(writer_->id(),
                    {static_cast<uint32_t>(writer_->size()), writer_->chunk_count()});
  return Status::Ok();
}

Status ValueLog::CreateWriter() {
  if (next_segment_ == reserved_segments_) SILTFS_RETURN_IF_ERROR(ReserveIds());
  // The id counts as used even if creation fails: the file may exist after a crash.
  const auto id = static_cast<SegmentId>(next_segment_++);
  auto created = SegmentWriter::Create(env_, options_.directory, IdentityOf(id), SegmentKind::kData,
                                       0, {.target_size = options_.segment_bytes});
  if (!created.ok()) {
    if (created.status().Is(StatusCode::kNoSpace)) return std::move(created).status();
    return Fail(std::move(created).status());
  }
  MutexLock lock(state_mutex_);
  segments_[id] = {};
  writer_ = std::move(*created);
  return Status::Ok();
}

Status ValueLog::ReserveIds() {
  ValueLogManifest manifest{store_, next_segment_ + kReservedIds, {}};
  if (manifest.next_segment > ValueLogManifest::kSegmentLimit) {
    return Fail(Status(StatusCode::kUnsupported, "all segment ids of the value log are used up")
                    .At(options_.directory));
  }
  {
    MutexLock lock(state_mutex_);
    manifest.incomplete = incomplete_;
  }
  Status written = WriteValueLogManifest(env_, options_.directory, manifest);
  if (written.Is(StatusCode::kNoSpace)) return written;
  if (!written.ok()) return Fail(std::move(written));
  reserved_segments_ = manifest.next_segment;
  return Status::Ok();
}

Status ValueLog::SealWriter() {
  const std::shared_ptr<SegmentWriter> full = writer();
  Status sealed = full->Seal();
  if (!sealed.ok()) return FailUnlessFull(*full, std::move(sealed));
  MutexLock lock(state_mutex_);
  segments_[full->id()] = DescriptionOf(*full);
  bytes_written_ += full->size();
  writer_.reset();
  return Status::Ok();
}

Status ValueLog::Sync() {
  std::shared_ptr<SegmentWriter> to;
  {
    MutexLock append_lock(append_mutex_);
    SILTFS_RETURN_IF_ERROR(CheckWritable());
    SILTFS_RETURN_IF_ERROR(WriteOpenBlock());
    to = writer();
  }
  // Other threads may append during this sync. Earlier segments were synced when they were sealed.
  if (!to) return Status::Ok();
  Status synced = to->Sync();
  return synced.ok() ? Status::Ok() : Fail(std::move(synced));
}

Status ValueLog::SealOpenSegment() {
  MutexLock append_lock(append_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  SILTFS_RETURN_IF_ERROR(WriteOpenBlock());
  const std::shared_ptr<SegmentWriter> open = writer();
  if (!open || open->block_count() == 0) return Status::Ok();
  return SealWriter();
}

Status ValueLog::NoSuchSegment(SegmentId id) const {
  return Status(StatusCode::kNotFound, "the value log has no such segment")
      .At(SegmentPath(options_.directory, id));
}

Result<SegmentReaderCache::Reader> ValueLog::ReaderOf(SegmentId id) const {
  {
    MutexLock lock(state_mutex_);
    if (!segments_.contains(id)) return NoSuchSegment(id);
    if (auto reader = readers_.Find(id)) return reader;
  }
  auto opened = SegmentReader::Open(env_, options_.directory, IdentityOf(id), codec_);
  MutexLock lock(state_mutex_);
  // The segment may have been removed while it was being opened. In that case a cached reader would
  // keep the segment's disk space allocated.
  if (!segments_.contains(id)) {
    opened.status().IgnoreError("the segment was removed");
    return NoSuchSegment(id);
  }
  if (opened.ok()) return readers_.Insert(id, std::move(*opened));
  if (!opened.status().Is(StatusCode::kNotFound)) return std::move(opened).status();
  return Status(StatusCode::kCorruption, "a segment of values is missing")
      .At(SegmentPath(options_.directory, id));
}

// `record_bytes` is the size of the largest record expected in the block.
Result<DecodedBlockPtr> ValueLog::ReadBlockAt(const SegmentReader& reader, uint32_t offset,
                                              size_t record_bytes) const {
  block_reads_.fetch_add(1, std::memory_order_relaxed);
  // Space of the records in the largest expected block. This assumes that the block was written
  // with the current options.
  const size_t records =
      std::max<size_t>(options_.block_bytes, OpenValueBlock::CostOf(record_bytes));
  return reader.ReadBlock(offset, kBlockHeaderSize + records);
}

Result<Bytes> ValueLog::Read(const ChunkName& name, const Location& location,
                             size_t expected_bytes) const {
  {
    MutexLock lock(state_mutex_);
    if (open_block_.IsAt(location)) {
      if (auto bytes = open_block_.Find(name, location)) return Bytes(bytes->begin(), bytes->end());
      return Status(StatusCode::kCorruption, fmt::format("block has no record {} with ordinal {}",
                                                         name.ToHex(), location.ordinal))
          .At(SegmentPath(options_.directory, location.segment), location.block_offset);
    }
  }
  SILTFS_ASSIGN_OR_RETURN(auto reader, ReaderOf(location.segment));
  auto block = ReadBlockAt(*reader, location.block_offset, expected_bytes);
  auto record =
      block.ok() ? RecordIn(**block, name, location) : Result<Bytes>(std::move(block).status());
  if (record.ok()) return record;
  if (record.status().Is(StatusCode::kCorruption)) damaged_.fetch_add(1, std::memory_order_relaxed);
  return std::move(record).status().At(reader->path(), location.block_offset);
}

bool ValueLog::Holds(const ChunkName& name, const Location& location) const {
  MutexLock lock(state_mutex_);
  if (open_block_.IsAt(location)) return open_block_.Find(name, location).has_value();
  const auto segment = segments_.find(location.segment);
  if (segment == segments_.end() || !segment->second.readable) return false;
  if (writer_ && writer_->id() == location.segment) {
    const auto chunk = writer_->FindChunk(location.ordinal);
    const auto place = writer_->FindBlock(location.ordinal);
    return chunk && place && chunk->name_prefix == name.Prefix64() &&
           place->block_offset == location.block_offset;
  }
  const auto footer = recovered_.find(location.segment);
  return footer == recovered_.end() || FooterHolds(footer->second, name, location);
}

void ValueLog::ForgetRecovered() {
  MutexLock lock(state_mutex_);
  recovered_.clear();
  // The manifest on disk keeps the list until the manifest is written again. If the log is opened
  // before that, opening needlessly reads the footers of the listed segments once more.
  incomplete_.clear();
}

std::vector<ValueLog::SegmentInfo> ValueLog::segments() const {
  std::vector<SegmentInfo> infos;
  MutexLock lock(state_mutex_);
  infos.reserve(segments_.size());
  for (const auto& [id, described] : segments_) {
    const bool open = writer_ && writer_->id() == id;
    const ValueSegment segment = open ? DescriptionOf(*writer_) : described;
    SegmentInfo info{id, segment.file_bytes, segment.plain_bytes, segment.records, open};
    if (open) {
      info.plain_bytes += open_block_.plain_bytes();
      info.records += static_cast<uint32_t>(open_block_.records());
    }
    infos.push_back(info);
  }
  return infos;
}

Result<uint64_t> ValueLog::ForEachRecord(SegmentId id, const RecordVisitor& visitor) const {
  ValueSegment segment;
  {
    MutexLock lock(state_mutex_);
    const auto found = segments_.find(id);
    if (found == segments_.end()) return NoSuchSegment(id);
    if (writer_ && writer_->id() == id) {
      return Invalid("the segment is open").At(SegmentPath(options_.directory, id));
    }
    segment = found->second;
  }
  if (!segment.readable) return uint64_t{1};
  SILTFS_ASSIGN_OR_RETURN(auto reader, ReaderOf(id));
  uint64_t damaged = 0;
  ScanOptions options;
  options.committed_length = segment.data_end;
  options.end = segment.data_end;
  options.on_damage = [&damaged](uint64_t, uint64_t, const Status& cause) {
    cause.IgnoreError("it is counted");
    ++damaged;
    return Status::Ok();
  };
  auto visit = [&](const BlockHead& head, uint32_t offset) {
    auto block = ReadBlockAt(*reader, offset, 0);
    if (!block.ok()) {
      if (!block.status().Is(StatusCode::kCorruption)) return std::move(block).status();
      ++damaged;
      return Status::Ok();
    }
    for (size_t i = 0; i < (*block)->chunk_count(); ++i) {
      const Location location{id, head.first_ordinal + static_cast<uint32_t>(i), offset};
      SILTFS_RETURN_IF_ERROR(visitor((*block)->records()[i].name, location, (*block)->chunk(i)));
    }
    return Status::Ok();
  };
  auto scanned = ScanBlocks(reader->file(), IdentityOf(id), options, visit);
  if (!scanned.ok()) return std::move(scanned).status();
  return damaged;
}

Status ValueLog::Remove(SegmentId id) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  const std::string path = SegmentPath(options_.directory, id);
  ValueSegment segment;
  {
    // First remove the segment from the map. Then a Read that finds no file returns kNotFound, not
    // kCorruption.
    MutexLock lock(state_mutex_);
    const auto found = segments_.find(id);
    if (found == segments_.end()) return NoSuchSegment(id);
    if (writer_ && writer_->id() == id) return Invalid("the segment is open").At(path);
    segment = found->second;
    segments_.erase(found);
    readers_.Erase(id);
  }
  Status removed = env_.RemoveFile(path);
  {
    MutexLock lock(state_mutex_);
    if (!removed.ok()) {
      segments_[id] = segment;
      return removed;
    }
    recovered_.erase(id);
    std::erase(incomplete_, id);
  }
  return env_.SyncDirectory(SegmentDirectory(options_.directory, id));
}

ValueLogStats ValueLog::stats() const {
  ValueLogStats stats;
  for (const SegmentInfo& segment : segments()) {
    stats.records += segment.records;
    stats.flash_bytes += segment.bytes;
  }
  MutexLock lock(state_mutex_);
  stats.bytes_appended = bytes_appended_;
  stats.bytes_written = bytes_written_ + (writer_ ? writer_->size() : 0);
  stats.block_reads = block_reads_.load(std::memory_order_relaxed);
  stats.damaged = damaged_.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace siltfs
