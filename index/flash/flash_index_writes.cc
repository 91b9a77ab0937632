#include "index/flash/flash_index_impl.h"

#include <algorithm>
#include <set>

#include "index/flash/entry_listing.h"
#include "store/env/page_allocator.h"

namespace siltfs {
namespace {

// A rewrite of so many entries leaves much free memory in the heap.
constexpr size_t kManyEntries = 1U << 14;

}  // namespace

Status FlashIndex::StopUnlessNoSpace(Status status) {
  if (status.ok() || status.Is(StatusCode::kNoSpace)) return status;
  if (status.Is(StatusCode::kCorruption)) RecordLostEntries();
  stopped_ = status;
  stopped_.IgnoreError("the next write returns it");
  return status;
}

// The structure on flash contradicts itself, so the next opening must refuse it.
void FlashIndex::RecordLostEntries() {
  CountDamage(1);
  Commit(durable_.load(std::memory_order_relaxed))
      .IgnoreError("the structure is refused when it is read again");
}

Status FlashIndex::WithRoom(const std::function<Status()>& write) {
  Status written = write();
  if (!written.Is(StatusCode::kNoSpace)) return written;
  const bool reaped = files_.ReapRetired();
  if (files_.AnyUnneeded()) {
    // This needs little room, because the log of puts stays as it is.
    SILTFS_RETURN_IF_ERROR(Commit(durable_.load(std::memory_order_relaxed)));
  } else if (!reaped) {
    return written;
  }
  return write();
}

Status FlashIndex::PutImpl(std::span<const IndexEntry> entries, uint64_t complete) {
  SILTFS_RETURN_IF_ERROR(CheckWriting());
  complete_ = complete;
  for (const IndexEntry& entry : entries) {
    const FlashEntry put{.hash = name_hash_.Of(entry.name), .location = entry.location};
    SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(WithRoom([&] { return Enter(put); })));
  }
  // Files are removed only after a checkpoint.
  const uint64_t dead = files_.flash_bytes() / kPageSize - files_.live_pages();
  const bool many = dead > dead_at_checkpoint_ + options_.pages_per_checkpoint;
  return many ? StopUnlessNoSpace(Checkpoint()) : Status::Ok();
}

Status FlashIndex::DeleteImpl(const ChunkName& name) {
  SILTFS_RETURN_IF_ERROR(CheckWriting());
  FlashLookup lookup(name_hash_.Of(name));
  {
    const PageFiles::FilePin pin = files_.Pin();
    lookup.Begin(partitions()->Find(lookup.hash()), files_);
    FinishLookup(lookup);
  }
  put_flash_reads_.fetch_add(lookup.pages_read(), std::memory_order_relaxed);
  if (lookup.damaged_pages() > 0) CountDamage(lookup.damaged_pages());
  SILTFS_RETURN_IF_ERROR(lookup.status());
  const bool absent = !lookup.found() || lookup.found()->tombstone();
  if (absent && lookup.damaged_pages() == 0) return Status::Ok();
  const FlashEntry tombstone{.hash = lookup.hash(), .location = {}};
  return StopUnlessNoSpace(WithRoom([&] { return Enter(tombstone); }));
}

Status FlashIndex::Enter(const FlashEntry& entry) {
  SILTFS_RETURN_IF_ERROR(FitBuffers());
  SILTFS_RETURN_IF_ERROR(puts_.MakeRoom());
  // The map holds the partition until MoveBuffer has replaced it.
  auto partitions = this->partitions();
  if (FlashPartition& partition = partitions->Find(entry.hash); !partition.Insert(entry)) {
    SILTFS_RETURN_IF_ERROR(MoveBuffer(partition));
    partitions = this->partitions();
    if (!partitions->Find(entry.hash).Insert(entry)) {
      return {StatusCode::kIoError, "an empty buffer refused an entry"};
    }
  }
  puts_.Add(entry);
  return Status::Ok();
}

// Moves a buffer to flash. This may replace the partition.
Status FlashIndex::MoveBuffer(FlashPartition& partition) {
  changed_ = true;
  if (partition.WantsRewrite()) {
    SILTFS_RETURN_IF_ERROR(Rewrite(partition, gone()));
    FitFilters();
  } else {
    SILTFS_RETURN_IF_ERROR(partition.WriteBuffer());
    partition.log_from = puts_.next_number();
    partition.changed = true;
    conversions_.fetch_add(1, std::memory_order_relaxed);
    // The filters of other partitions are as they were.
    DropFiltersToFit();
    LoadFittingFilters(partition);
    LoadFittingExtras(partition);
  }
  Status cleaned = CleanSome();
  if (!cleaned.Is(StatusCode::kNoSpace)) return cleaned;
  cleaned.IgnoreError("the buffer is on flash; the next one cleans again");
  return Status::Ok();
}

// Replaces a partition by partitions with its live entries.
Status FlashIndex::Rewrite(FlashPartition& partition, const std::function<bool(SegmentId)>& gone) {
  EntryListing listing;
  {
    const PageFiles::FilePin pin = files_.Pin();
    SILTFS_ASSIGN_OR_RETURN(listing, ListEntries(partition.TakeSnapshot(), gone));
  }
  // Only damage puts an entry into a foreign partition, where no lookup finds it.
  const HashPrefix prefix = partition.prefix();
  if (std::erase_if(listing.entries, [&prefix](const FlashEntry& entry) {
        return entry.hash == 0 || !prefix.Has(entry.hash);
      }) > 0) {
    CountDamage(1);
  }
  if (listing.damaged_pages > 0) CountDamage(listing.damaged_pages);
  PartitionMap::Partitions made;
  const PageFiles::Mark mark = files_.MarkEnds();
  Status divided = Divide(partition.prefix(), listing.entries, made);
  if (!divided.ok()) {
    for (const auto& half : made) half->ReleaseAll();
    made.clear();
    files_.CutBack(mark);
    return divided;
  }
  changed_ = true;
  for (const auto& half : made) {
    half->log_from = puts_.next_number();
    half->lookups = partition.lookups / made.size();
  }
  const auto old = partitions();  // holds the partition until it has released its pages
  Install(old->With(partition, made));
  replaced_partitions_.push_back(partition.id());
  partition.ReleaseAll();
  // Its filters must not count beside the new ones.
  partition.DropExtras();
  partition.DropFilters();
  DropFiltersToFit();
  if (listing.entries.size() >= kManyEntries) ReleaseFreePages();
  merges_.fetch_add(1, std::memory_order_relaxed);
  return Status::Ok();
}

Status FlashIndex::Divide(const HashPrefix& prefix, std::span<const FlashEntry> entries,
                          PartitionMap::Partitions& made) {
  auto partition = engine_->Make(context_, header_.next_partition_id, prefix);
  if (entries.size() <= partition->MostEntries() || prefix.depth == HashPrefix::kMostDepth) {
    ++header_.next_partition_id;
    made.push_back(std::move(partition));
    return made.back()->Fill(entries);
  }
  const HashPrefix second = prefix.Child(true);
  const auto middle = std::ranges::lower_bound(entries, second.first, {}, &FlashEntry::hash);
  const auto lower = static_cast<size_t>(middle - entries.begin());
  SILTFS_RETURN_IF_ERROR(Divide(prefix.Child(false), entries.first(lower), made));
  return Divide(second, entries.subspan(lower), made);
}

// If the files of a log have more pages that are not in use than others, empties the oldest such
// file that partitions use by one partition. A file without pages in use does not count, because
// the next checkpoint removes it.
Status FlashIndex::CleanSome() {
  for (size_t log = 0; log + 1 < logs_.size(); ++log) {
    const uint64_t most_dead =
        std::max<uint64_t>(options_.least_dead_pages, files_.live_pages(log) + 1);
    if (logs_[log].pages_per_file == 1 || files_.dead_pages(log) < most_dead) continue;
    uint64_t dead = 0;
    std::set<uint64_t> wasteful;
    for (const PageFiles::FileUse& use : files_.Uses()) {
      if (use.log != log || !use.ended || use.live == 0 || use.live == use.pages) continue;
      dead += use.pages - use.live;
      wasteful.insert(use.id);
    }
    if (dead < most_dead) continue;
    uint64_t oldest = UINT64_MAX;
    FlashPartition* user = nullptr;
    const auto partitions = this->partitions();
    for (const auto& partition : partitions->all()) {
      partition->ForEachFile([&](uint64_t file, uint64_t) {
        if (file >= oldest || !wasteful.contains(file)) return;
        oldest = file;
        user = partition.get();
      });
    }
    if (user != nullptr) return CleanFile(*user, oldest);
  }
  return Status::Ok();
}

Status FlashIndex::CleanFile(FlashPartition& partition, uint64_t file) {
  SILTFS_ASSIGN_OR_RETURN(const bool moved, partition.MoveOut(file));
  if (!moved) return Rewrite(partition, gone());
  partition.changed = true;
  DropFiltersToFit();
  return Status::Ok();
}

Status FlashIndex::FlushImpl(uint64_t complete) {
  SILTFS_RETURN_IF_ERROR(CheckWriting());
  complete_ = complete;
  return StopUnlessNoSpace(Checkpoint());
}

Result<bool> FlashIndex::DropGoneImpl(size_t part, uint64_t /*complete*/) {
  SILTFS_RETURN_IF_ERROR(CheckWriting());
  complete_ = durable_.load(std::memory_order_relaxed);  // it must not change
  if (part == 0) drop_cursor_ = 0;
  const auto gone = this->gone();
  if (!gone) return false;
  uint64_t last = 0;
  const auto rewrite = [&] {
    const auto partitions = this->partitions();
    FlashPartition& partition = partitions->Find(drop_cursor_);
    last = partition.prefix().last();
    return Rewrite(partition, gone);
  };
  SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(WithRoom(rewrite)));
  // The checkpoint removes the old files.
  SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(Checkpoint()));
  drop_cursor_ = last + 1;
  return drop_cursor_ != 0;
}

Status FlashIndex::CloseImpl(uint64_t complete) {
  SILTFS_RETURN_IF_ERROR(FlushImpl(complete));
  return StopUnlessNoSpace(state_.Fold());
}

}  // namespace siltfs
