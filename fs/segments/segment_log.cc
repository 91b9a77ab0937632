#include "fs/segments/segment_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "store/segment/segment_files.h"

namespace siltfs {
namespace {

// How soon sealing is tried again after a full disk.
constexpr std::chrono::seconds kSealAgain{1};
// How soon a SegmentStore that was full is tried again. Uploads make room all the time.
constexpr std::chrono::milliseconds kPutAgain{100};

void Add(SegmentLog::Growth& sum, const SegmentWriter& writer, LogStream stream) {
  sum.stored_bytes += writer.size();
  if (writer.kind() != SegmentKind::kData) return;
  if (stream == LogStream::kData) sum.not_recompressed_bytes += writer.size();
  sum.chunks += writer.chunk_count();
  sum.plain_bytes += writer.plain_bytes();
}

// True if the disk was full: then the segment is unchanged, and the call may be repeated.
bool IsFullDisk(const Status& failed, const SegmentWriter& writer) {
  return failed.Is(StatusCode::kNoSpace) && writer.failure().ok();
}

}  // namespace

SegmentLog::SegmentLog(Env& env, Options options, std::function<void(SegmentId)> sealed)
    : env_(env),
      options_(std::move(options)),
      sealed_(std::move(sealed)),
      next_segment_(options_.first_segment),
      segment_limit_(options_.segment_limit),
      next_sequence_(options_.first_sequence),
      last_commit_(options_.last_commit),
      sealer_([this] { SealLoop(); }) {}

SegmentLog::~SegmentLog() { StopSealing(); }

void SegmentLog::StopSealing() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (sealer_.joinable()) sealer_.join();
}

SegmentRecord SegmentLog::RecordOf(const SegmentWriter& writer, LogStream stream) {
  SegmentRecord record;
  record.kind = static_cast<uint8_t>(writer.kind());
  record.sealed = writer.sealed();
  record.recompressed = record.sealed && stream == LogStream::kMovedData;
  record.length = writer.synced_size();
  // If the segment was sealed just now, after record.sealed was set, the record must not include
  // the footer.
  const SegmentTrailer totals = writer.totals();
  if (!record.sealed && totals.block_count > 0) {
    record.length = std::min<uint64_t>(record.length, totals.data_end);
  }
  record.chunks = totals.chunk_count;
  record.plain_bytes = totals.plain_bytes;
  record.first_sequence = totals.first_sequence;
  record.last_sequence = totals.last_sequence;
  return record;
}

Status SegmentLog::Fail(const Status& status) {
  MutexLock lock(mutex_);
  if (failure_.ok()) {
    failure_ = Status(StatusCode::kReadOnly,
                      fmt::format("the store turned read-only: {}", status.ToString()));
  }
  changed_.NotifyAll();
  return failure_;
}

Status SegmentLog::failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

Status SegmentLog::Resume(SegmentId segment, const SegmentRecord& record, bool moved) {
  SegmentWriterOptions writer_options{.target_size = options_.segment_bytes};
  auto opened = SegmentWriter::Resume(env_, options_.store, {options_.uuid, segment}, record.length,
                                      writer_options);
  if (!opened.ok()) return std::move(opened).status();
  WriterPtr writer = std::move(opened).value();
  MutexLock lock(mutex_);
  // Its stream was not recorded.
  const LogStream stream = moved ? MovedStreamOf(writer->kind()) : NewStreamOf(writer->kind());
  Add(resumed_, *writer, stream);
  tracked_.push_back({writer, stream, record, record, false});
  WriterPtr& open = open_[static_cast<size_t>(stream)];
  if (open) {
    sealing_.push_back(open);
    changed_.NotifyAll();
  }
  open = writer;
  return Status::Ok();
}

void SegmentLog::Tell(SegmentId segment, const SegmentRecord& record) {
  MutexLock lock(mutex_);
  to_tell_.emplace_back(segment, record);
}

Result<SegmentLog::WriterPtr> SegmentLog::OpenSegment(LogStream stream) {
  SegmentId id;
  uint64_t last_commit;
  bool claim;
  {
    MutexLock lock(mutex_);
    id = next_segment_;
    last_commit = last_commit_;
    claim = id >= segment_limit_;
  }
  if (claim) {
    SILTFS_ASSIGN_OR_RETURN(SegmentId limit, options_.claim_segments());
    MutexLock lock(mutex_);
    segment_limit_ = limit;
    if (id >= limit)
      return Status(StatusCode::kFileTooLarge, "the store has used up its segment ids");
  }
  const bool moved = stream == LogStream::kMovedData || stream == LogStream::kMovedNodes;
  if (moved && options_.before_moved) SILTFS_RETURN_IF_ERROR(options_.before_moved(id));
  SegmentWriterOptions writer_options{.target_size = options_.segment_bytes};
  auto created = SegmentWriter::Create(env_, options_.store, {options_.uuid, id}, KindOf(stream),
                                       last_commit, writer_options);
  MutexLock lock(mutex_);
  // After a failure other than kNoSpace a file with this id may exist, so the id is not used again.
  if (!created.status().Is(StatusCode::kNoSpace)) next_segment_ = id + 1;
  if (!created.ok()) return std::move(created).status();
  WriterPtr writer = std::move(created).value();
  open_[static_cast<size_t>(stream)] = writer;
  tracked_.push_back({writer, stream, {}, {}, false});
  return writer;
}

uint64_t SegmentLog::TakeSequence() {
  MutexLock lock(mutex_);
  return next_sequence_++;
}

Result<AppendedBlock> SegmentLog::Append(LogStream stream, const EncodedBlock& block) {
  WriterPtr writer;
  uint64_t sequence;
  uint64_t last_commit;
  {
    MutexLock lock(mutex_);
    if (!failure_.ok()) return failure_;
    WriterPtr& open = open_[static_cast<size_t>(stream)];
    if (open && !open->HasRoomFor(block)) {
      if (!MayWait(stream)) {
        Status sealed = WaitToSeal(kMaxSealing - 1);
        if (!sealed.ok() && !MayWait(stream)) return sealed;
      }
      sealing_.push_back(std::move(open));
      open = nullptr;
      changed_.NotifyAll();
    }
    writer = open;
    sequence = next_sequence_++;
    last_commit = last_commit_;
  }
  if (!writer) {
    auto opened = OpenSegment(stream);
    if (opened.status().Is(StatusCode::kNoSpace)) return std::move(opened).status();
    if (!opened.ok()) return Fail(opened.status());
    writer = *opened;
  }
  auto place = writer->Append(block, sequence, last_commit);
  if (!place.ok())
    return IsFullDisk(place.status(), *writer) ? place.status() : Fail(place.status());
  return AppendedBlock{writer->id(), *place, sequence};
}

bool SegmentLog::MayWait(LogStream stream) const {
  const bool is_new = stream == LogStream::kData || stream == LogStream::kRecipeNodes;
  return is_new && !store_full_.ok() && sealing_.size() < kMaxWaiting;
}

Status SegmentLog::WaitForRoom(std::chrono::nanoseconds patience) {
  MutexLock lock(mutex_);
  while (!store_full_.ok() && sealing_.size() >= kMaxSealing && failure_.ok() && !stopping_ &&
         !waiting_ended_) {
    const auto waited = std::chrono::steady_clock::now() - store_full_since_;
    if (waited >= patience) return store_full_;
    changed_.WaitFor(mutex_, patience - waited);
  }
  return failure_;
}

void SegmentLog::EndWaitingForRoom() {
  MutexLock lock(mutex_);
  waiting_ended_ = true;
  changed_.NotifyAll();
}

Status SegmentLog::WaitToSeal(size_t most) {
  // The value of sealed_count_ to wait for. Segments that fill up during the wait do not prolong
  // it.
  const uint64_t enough = sealed_count_ + sealing_.size() - std::min(most, sealing_.size());
  // A seal attempt that began before this call does not count, because it may have found the disk
  // full before space became free.
  const uint64_t before = seals_begun_;
  if (!seal_delay_.ok()) {
    seal_now_ = true;
    changed_.NotifyAll();
  }
  while (sealed_count_ < enough && failure_.ok() && !stopping_) {
    if (!seal_delay_.ok() && delayed_seal_ > before) return seal_delay_;
    changed_.Wait(mutex_);
  }
  return failure_;
}

Status SegmentLog::SyncAll(std::vector<std::pair<SegmentId, SegmentRecord>>& changed) {
  std::vector<std::pair<WriterPtr, LogStream>> writers;
  {
    MutexLock lock(mutex_);
    if (!failure_.ok()) return failure_;
    for (const Tracked& tracked : tracked_) {
      // A segment without a block gets no record, because RemoveEmpty may still remove its file.
      if (tracked.writer->block_count() > 0) writers.emplace_back(tracked.writer, tracked.stream);
    }
  }
  std::vector<SegmentRecord> records;
  for (const auto& [writer, stream] : writers) {
    // If blocks are appended at this time, the counts in the record may include blocks beyond the
    // record's length. Callers of SyncAll stop the appends for which this matters.
    if (!writer->sealed()) {
      Status synced = writer->Sync();
      if (!synced.ok()) return Fail(synced);
    }
    records.push_back(RecordOf(*writer, stream));
  }
  MutexLock lock(mutex_);
  changed.insert(changed.end(), to_tell_.begin(), to_tell_.end());
  for (size_t i = 0; i < writers.size(); ++i) {
    const WriterPtr& writer = writers[i].first;
    auto tracked = std::find_if(tracked_.begin(), tracked_.end(),
                                [&](const Tracked& t) { return t.writer == writer; });
    tracked->told = records[i];
    if (!(tracked->told == tracked->committed)) changed.emplace_back(writer->id(), records[i]);
  }
  return Status::Ok();
}

Status SegmentLog::RemoveEmpty() {
  MutexLock lock(mutex_);
  for (WriterPtr& open : open_) {
    if (!open || open->block_count() > 0) continue;
    SILTFS_RETURN_IF_ERROR(RemoveSegment(env_, options_.store, open->id()));
    std::erase_if(tracked_, [&](const Tracked& tracked) { return tracked.writer == open; });
    open = nullptr;
  }
  return Status::Ok();
}

void SegmentLog::CommitDone(uint64_t number) {
  std::vector<std::pair<SegmentId, SegmentRecord>> retired;
  {
    MutexLock lock(mutex_);
    last_commit_ = number;
    to_tell_.clear();
    for (Tracked& tracked : tracked_) tracked.committed = tracked.told;
    std::erase_if(tracked_, [&](const Tracked& tracked) SILTFS_NO_THREAD_SAFETY_ANALYSIS {
      if (!tracked.committed.sealed || !tracked.put) return false;
      Add(retired_, *tracked.writer, tracked.stream);
      retired.emplace_back(tracked.writer->id(), tracked.committed);
      return true;
    });
  }
  if (!options_.retired) return;
  for (const auto& [id, record] : retired) options_.retired(id, record);
}

void SegmentLog::WaitUntilSealed() {
  MutexLock lock(mutex_);
  WaitToSeal(0).IgnoreError("the next Append gets it");
}

Status SegmentLog::SealAndPut(SegmentWriter& writer) {
  if (!writer.sealed()) SILTFS_RETURN_IF_ERROR(writer.Seal());
  if (options_.segments == nullptr) return Status::Ok();
  return options_.segments->Put(writer.id(), BuiltSegment(env_, options_.store, writer.id()));
}

void SegmentLog::NoteSealing(const SegmentWriter& writer, Status sealed) {
  if (sealed.ok() || !writer.sealed()) {
    store_full_ = Status::Ok();
  } else {
    if (store_full_.ok()) store_full_since_ = std::chrono::steady_clock::now();
    store_full_ = sealed;
  }
  store_full_.IgnoreError("callers of WaitForRoom get it");
  seal_delay_ = std::move(sealed);
  seal_delay_.IgnoreError("callers that wait get it");
}

void SegmentLog::SealLoop() {
  for (;;) {
    WriterPtr writer;
    uint64_t number;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && (sealing_.empty() || !failure_.ok())) changed_.Wait(mutex_);
      if (!stopping_ && !seal_delay_.ok() && !seal_now_) {
        store_full_.ok() ? changed_.WaitFor(mutex_, kSealAgain)
                         : changed_.WaitFor(mutex_, kPutAgain);
      }
      if (stopping_) return;
      seal_now_ = false;
      number = ++seals_begun_;
      writer = sealing_.front();
    }
    Status sealed = SealAndPut(*writer);
    const bool full = IsFullDisk(sealed, *writer);
    if (!sealed.ok() && !full) {
      Fail(sealed).IgnoreError("kept in failure_, which every later call returns");
      continue;
    }
    {
      MutexLock lock(mutex_);
      NoteSealing(*writer, std::move(sealed));
      delayed_seal_ = number;
      changed_.NotifyAll();
      if (full) continue;
      sealing_.erase(sealing_.begin());
      for (Tracked& tracked : tracked_) tracked.put |= tracked.writer == writer;
      ++sealed_count_;
    }
    sealed_(writer->id());
  }
}

std::shared_ptr<const SegmentWriter> SegmentLog::WriterOf(SegmentId segment) const {
  MutexLock lock(mutex_);
  for (const Tracked& tracked : tracked_) {
    if (tracked.writer->id() == segment) return tracked.writer;
  }
  return nullptr;
}

SegmentLog::Growth SegmentLog::growth() const {
  MutexLock lock(mutex_);
  Growth sum = retired_;
  for (const Tracked& tracked : tracked_) Add(sum, *tracked.writer, tracked.stream);
  sum.stored_bytes -= resumed_.stored_bytes;
  sum.not_recompressed_bytes -= resumed_.not_recompressed_bytes;
  sum.chunks -= resumed_.chunks;
  sum.plain_bytes -= resumed_.plain_bytes;
  return sum;
}

SegmentId SegmentLog::next_segment() const {
  MutexLock lock(mutex_);
  return next_segment_;
}

}  // namespace siltfs
