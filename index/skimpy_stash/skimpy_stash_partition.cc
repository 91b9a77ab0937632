#include "index/skimpy_stash/skimpy_stash_partition.h"

#include <algorithm>
#include <unordered_map>

#include "index/flash/payload_pages.h"
#include "store/base/aligned_buffer.h"

namespace siltfs {
namespace {

constexpr int64_t kNanosecondsPerMs = 1'000'000;

}  // namespace

SkimpyStashPartition::SkimpyStashPartition(FlashContext& context, uint64_t id,
                                           const HashPrefix& prefix, const SkimpyStashShape& shape)
    : FlashPartition(context, id, prefix),
      shape_(shape),
      buffer_share_(context.buffer_bytes),
      table_share_(context.table_bytes),
      filter_share_(context.filter_bytes),
      collector_(context.files, shape),
      buffer_(shape.BufferShape()),
      directory_(shape),
      version_(std::make_shared<SkimpyStashVersion>(context.files, shape, ChainLog())) {}

std::shared_ptr<const SkimpyStashVersion> SkimpyStashPartition::version() const {
  ReaderLock lock(mutex_);
  return version_;
}

void SkimpyStashPartition::AccountMemory() {
  buffer_share_.Set(buffer_.memory_bytes());
  table_share_.Set(directory_.head_bytes() + collector_.memory_bytes());
  filter_share_.Set(directory_.filter_bytes());
}

// --- Reading ---

std::shared_ptr<const FlashVersion> SkimpyStashPartition::Begin(LookupState& state) const {
  ReaderLock lock(mutex_);
  state.found = buffer_.Find(state.hash);
  if (state.found) return nullptr;
  version_->Begin(state, directory_);
  return version_;
}

PartitionSnapshot SkimpyStashPartition::TakeSnapshot() const {
  PartitionSnapshot snapshot;
  ReaderLock lock(mutex_);
  buffer_.ForEach([&](const FlashEntry& entry) { snapshot.buffered.push_back(entry); });
  if (directory_.has_heads()) {
    snapshot.version =
        std::make_shared<SkimpyStashVersion>(files(), shape_, version_->log(), directory_);
  }
  return snapshot;
}

uint64_t SkimpyStashPartition::buffered_entries() const {
  ReaderLock lock(mutex_);
  return buffer_.size();
}

SkimpyStashPartition::Tally SkimpyStashPartition::tally() const {
  ReaderLock lock(mutex_);
  return tally_;
}

std::vector<uint8_t> SkimpyStashPartition::counts() const {
  std::vector<uint8_t> counts;
  ReaderLock lock(mutex_);
  for (uint32_t bucket = 0; directory_.has_filters() && bucket < shape_.buckets(); ++bucket) {
    counts.push_back(directory_.count(bucket));
  }
  return counts;
}

void SkimpyStashPartition::AddStats(std::vector<IndexComponentStats>& stats) const {
  ReaderLock lock(mutex_);
  stats.push_back({.kind = "buffer",
                   .entries = buffer_.size(),
                   .memory_bytes = buffer_.memory_bytes(),
                   .occupancy = static_cast<double>(buffer_.size()) /
                                static_cast<double>(shape_.BufferRecords())});
  const uint64_t pages = uint64_t{version_->log().pages()} + written_.pages;
  stats.push_back(
      {.kind = "chains",
       .entries = directory_.entries(),
       .flash_bytes = pages * kPageSize,
       .memory_bytes = directory_.memory_bytes(),
       .filter_memory_bytes = directory_.filter_bytes(),
       .flash_reads = tally_.collector_reads,  // not those of lookups
       .flash_bytes_written = (tally_.pages_written + tally_.directory_pages) * kPageSize});
}

// --- Writing ---

bool SkimpyStashPartition::Insert(const FlashEntry& entry) {
  const int64_t now = shape_.coalesce_ms == 0 ? 0 : files().env().MonotonicNanoseconds();
  WriterLock lock(mutex_);
  if (buffer_.size() >= shape_.BufferRecords() && !buffer_.Find(entry.hash)) return false;
  if (buffer_.size() == 0) {
    buffer_begin_ = now;
  } else if (now - buffer_begin_ > static_cast<int64_t>(shape_.coalesce_ms) * kNanosecondsPerMs) {
    return false;
  }
  const bool inserted = buffer_.Insert(entry);
  buffer_share_.Set(buffer_.memory_bytes());
  return inserted;
}

void SkimpyStashPartition::InsertReplayed(const FlashEntry& entry) {
  WriterLock lock(mutex_);
  buffer_.InsertAnyway(entry);
  buffer_share_.Set(buffer_.memory_bytes());
}

bool SkimpyStashPartition::WantsRewrite() const {
  ReaderLock lock(mutex_);
  const ChainLog& log = version_->log();
  return directory_.entries() + buffer_.size() > shape_.capacity ||
         log.pages() >= shape_.MostLogPages() || log.next_page() >= ChainRecord::kMostPointer / 2;
}

Status SkimpyStashPartition::Append(std::span<ChainRecord> records, Source source) {
  const size_t per_page = shape_.layout.per_page();
  const auto count = static_cast<uint32_t>(shape_.layout.PagesFor(records.size()));
  AlignedBuffer pages(size_t{count} * kPageSize);
  ChainLog log = version()->log();
  const uint32_t first = log.next_page();
  const auto page_of = [&](size_t i) { return first + static_cast<uint32_t>(i / per_page); };
  {
    std::unordered_map<uint32_t, uint32_t> heads;  // with the records so far
    ReaderLock lock(mutex_);
    for (size_t i = 0; i < records.size(); ++i) {
      const uint32_t bucket = records[i].BucketIn(shape_);
      // A collected chain begins again.
      const uint32_t old_head = source == Source::kCollector ? 0 : directory_.head(bucket);
      uint32_t& head = heads.try_emplace(bucket, old_head).first->second;
      records[i].pointer = std::exchange(head, page_of(i) + 1);
      const PageBytes page(pages.data() + i / per_page * kPageSize, kPageSize);
      WriteChainRecord(shape_.layout, page, i % per_page, records[i]);
      SetPageKind(page, SkimpyStashShape::kRecordPage, static_cast<uint16_t>(i % per_page + 1));
    }
  }
  SILTFS_ASSIGN_OR_RETURN(const PageAddress address,
                          files().Append(kRecordLog, id(), pages.view()));
  log.Append(address, count);
  for (uint32_t i = 0; i < count; ++i) {
    collector_.NoteAppended(first + i, static_cast<uint32_t>(std::min(
                                           per_page, records.size() - size_t{i} * per_page)));
  }
  changed = true;
  auto version = std::make_shared<SkimpyStashVersion>(files(), shape_, std::move(log));
  WriterLock lock(mutex_);
  if (!directory_.has_heads()) {
    directory_.MakeHeads();
    if (shape_.enhanced) directory_.MakeFilters();
  }
  for (size_t i = 0; i < records.size(); ++i) {
    const bool update = directory_.Apply(records[i], page_of(i));
    if (update && source == Source::kBuffer) ++garbage_;
  }
  version_ = std::move(version);
  if (source == Source::kBuffer) buffer_.Clear();
  tally_.pages_written += count;
  AccountMemory();
  return Status::Ok();
}

Status SkimpyStashPartition::WriteBuffer() {
  if (buffered_entries() == 0) return Status::Ok();
  // Whatever fails, the entries of the partition are the same before and after.
  SILTFS_RETURN_IF_ERROR(Collect());
  std::vector<ChainRecord> records;
  bool old_directory = false;
  {
    std::unordered_map<uint32_t, uint32_t> more;  // records for each bucket
    ReaderLock lock(mutex_);
    buffer_.ForEach([&](const FlashEntry& entry) { records.push_back({.entry = entry}); });
    for (ChainRecord& record : records) {
      const uint64_t hash = record.entry.hash;
      const auto buckets = shape_.BucketsOf(hash);
      record.second = directory_.has_filters() &&
                      directory_.ChoosesSecond(hash, {more[buckets[0]], more[buckets[1]]});
      ++more[record.BucketIn(shape_)];
    }
    const uint32_t interval =
        kDirectoryInterval * PayloadPages(BucketDirectory::EncodedSize(shape_, shape_.enhanced));
    old_directory = version_->log().next_page() - written_.log_pages >= interval ||
                    (written_.damaged && directory_.has_heads());
  }
  if (old_directory) SILTFS_RETURN_IF_ERROR(WriteDirectory());
  return Append(records, Source::kBuffer);
}

Status SkimpyStashPartition::Fill(std::span<const FlashEntry> entries) {
  if (entries.empty()) return Status::Ok();
  std::vector<ChainRecord> records;
  std::vector<uint32_t> counts(shape_.buckets());
  for (const FlashEntry& entry : entries) {
    const auto buckets = shape_.BucketsOf(entry.hash);
    const bool second = counts[buckets[1]] < counts[buckets[0]];
    ++counts[buckets[second ? 1 : 0]];
    records.push_back({.entry = entry, .second = second});
  }
  // Each chain is in one page, or in two.
  std::ranges::stable_sort(records, {},
                           [&](const ChainRecord& record) { return record.BucketIn(shape_); });
  const size_t at_once = files().log(kRecordLog).pages_per_file * shape_.layout.per_page();
  for (size_t at = 0; at < records.size(); at += at_once) {
    const size_t count = std::min(at_once, records.size() - at);
    SILTFS_RETURN_IF_ERROR(Append(std::span(records).subspan(at, count), Source::kListing));
  }
  return WriteDirectory();
}

int64_t SkimpyStashPartition::GroupGarbage(const SkimpyStashShape& shape) {
  // A page is full with so many chains.
  const int64_t chains = std::max<int64_t>(1, shape.BufferRecords() / shape.entries_per_bucket);
  return chains * shape.garbage;
}

// Collects chains, one for each `garbage` records that became obsolete.
Status SkimpyStashPartition::Collect() {
  if (shape_.garbage == 0) return Status::Ok();
  const PageFiles::FilePin pin = files().Pin();
  while (garbage_ >= GroupGarbage(shape_)) {
    ChainGroup group;
    {
      ReaderLock lock(mutex_);
      SILTFS_ASSIGN_OR_RETURN(group,
                              collector_.Gather(version_->log(), directory_, context().gone()));
    }
    if (group.chains == 0) {
      garbage_ = 0;  // there is none, or it cannot be collected
      break;
    }
    SILTFS_RETURN_IF_ERROR(Append(group.records, Source::kCollector));
    collector_.NoteCollected(group);
    garbage_ -= static_cast<int64_t>(group.chains) * shape_.garbage;
    {
      WriterLock lock(mutex_);
      // With counts, Apply knows that the old records no longer count.
      if (!directory_.has_filters()) {
        const uint64_t entries = directory_.entries();
        directory_.SetEntries(entries - std::min<uint64_t>(entries, group.orphans.size()));
      }
      tally_.collected_chains += group.chains;
      tally_.collected_records += group.records.size();
      tally_.collector_reads = collector_.pages_read();
    }
    ReleaseOrphans();
  }
  return Status::Ok();
}

// Releases the first files of the log if they have only orphans. The last file is still written.
void SkimpyStashPartition::ReleaseOrphans() {
  for (;;) {
    ChainLog log = version()->log();
    if (log.files().size() < 2 || !collector_.IsOrphaned(log.files().front())) return;
    const ChainLog::LogFile file = log.RemoveFirst();
    std::shared_ptr<const SkimpyStashVersion> version =
        std::make_shared<SkimpyStashVersion>(files(), shape_, std::move(log));
    {
      WriterLock lock(mutex_);
      version_.swap(version);
      ++tally_.released_files;
    }
    files().Release(PageAddress::Of(file.id, 0), file.pages);
  }
}

void SkimpyStashPartition::ForEachFile(const VisitFile& visit) const {
  ReaderLock lock(mutex_);
  for (const ChainLog::LogFile& used : version_->log().files()) visit(used.id, used.pages);
  if (written_.first.value != 0) visit(written_.first.file(), written_.pages);
}

void SkimpyStashPartition::ReleaseAll() {
  const auto version = this->version();
  for (const ChainLog::LogFile& file : version->log().files()) {
    files().Release(PageAddress::Of(file.id, 0), file.pages);
  }
  files().EndFile(kRecordLog, id());  // no other partition appends to it
  ReaderLock lock(mutex_);
  if (written_.first.value != 0) files().Release(written_.first, written_.pages);
}

}  // namespace siltfs
