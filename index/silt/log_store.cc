#include "index/silt/log_store.h"

#include <algorithm>
#include <cassert>

#include "store/base/checksum.h"

namespace siltfs {
namespace {

constexpr uint32_t kScanPages = 64;  // 256 KiB a read

uint64_t OffsetOfPage(uint32_t page) { return uint64_t{page} * kLogPageSize; }

}  // namespace

LogStore::LogStore(const Config& config, std::shared_ptr<File> file)
    : config_(config),
      file_(std::move(file)),
      counters_(std::make_shared<Counters>()),
      table_(config.bucket_bits) {}

// Keyed, because names can be ground: whoever knew the buckets could choose chunks that share two
// of them, and have a LogStore frozen every 17 chunks. SHA-1 leaves an attacker no choice of a
// name's bytes beyond grinding blindly, so a fast keyed hash does. The slices come from its 64
// bits; moving an entry needs its tag only, as in the paper.
uint64_t LogStore::HashOf(const ChunkName& name, uint64_t secret) {
  return Checksum(name.view(), secret);
}

// --- Reading ---

ConstLogPageBytes LogStore::TailPage(uint32_t page) const {
  return ConstLogPageBytes(tail_.data() + OffsetOfPage(page - written_pages_), kLogPageSize);
}

IndexEntry LogStore::TailEntry(uint32_t slot) const {
  return DecodeLogSlot(TailPage(LogPageOfSlot(slot)), LogIndexOfSlot(slot));
}

Status LogStore::ReadFile(uint32_t first, MutableByteView out) const {
  SILTFS_ASSIGN_OR_RETURN(size_t got, file_->Read(OffsetOfPage(first), out));
  std::fill(out.begin() + static_cast<ptrdiff_t>(got), out.end(), 0);
  return Status::Ok();
}

Status LogStore::ReadPages(uint32_t first, MutableByteView out) const {
  counters_->flash_reads.fetch_add(out.size() / kLogPageSize, std::memory_order_relaxed);
  return ReadFile(first, out);
}

Status LogStore::ScanFile(uint32_t page_count, const PageVisitor& visit) const {
  Bytes buffer(OffsetOfPage(std::min(page_count, kScanPages)));
  for (uint32_t first = 0; first < page_count;) {
    const uint32_t count = std::min(page_count - first, kScanPages);
    SILTFS_RETURN_IF_ERROR(ReadFile(first, MutableByteView(buffer).first(OffsetOfPage(count))));
    for (uint32_t i = 0; i < count; ++i) {
      const ConstLogPageBytes bytes(buffer.data() + OffsetOfPage(i), kLogPageSize);
      SILTFS_RETURN_IF_ERROR(visit(first + i, CheckLogPage(bytes, id(), first + i), bytes));
    }
    first += count;
  }
  return Status::Ok();
}

Status LogStore::ForEachPage(const PageVisitor& visit) const {
  SILTFS_RETURN_IF_ERROR(ScanFile(written_pages_, visit));
  for (uint32_t page = written_pages_; page < sealed_pages_; ++page) {
    SILTFS_RETURN_IF_ERROR(visit(page, CheckLogPage(TailPage(page), id(), page), TailPage(page)));
  }
  if (open_count_ == 0) return Status::Ok();
  const LogPageHeader open{
      .log_id = id(), .page_number = sealed_pages_, .count = static_cast<uint16_t>(open_count_)};
  return visit(sealed_pages_, open, TailPage(sealed_pages_));
}

std::shared_ptr<const LogStore> LogStore::Snapshot() const {
  return std::shared_ptr<const LogStore>(new LogStore(*this));
}

// --- Writing ---

LogPageBytes LogStore::OpenPage() {
  const size_t offset = OffsetOfPage(sealed_tail_pages());
  if (tail_.size() == offset) tail_.resize(offset + kLogPageSize);
  return LogPageBytes(tail_.data() + offset, kLogPageSize);
}

void LogStore::Append(const IndexEntry& entry, uint64_t complete) {
  EncodeLogSlot(OpenPage(), open_count_++, entry);
  if (IsTombstone(entry)) ++tombstones_;
  if (open_count_ == kLogSlotsPerPage) SealPage(complete);
}

bool LogStore::Insert(uint64_t hash, const IndexEntry& entry, uint64_t complete) {
  if (!table_.Insert(hash, NextSlot())) return false;
  Append(entry, complete);
  return true;
}

bool LogStore::Replace(uint64_t hash, const Resident& old, const IndexEntry& entry,
                       uint64_t complete) {
  if (!table_.Replace(hash, old.slot, NextSlot())) return false;
  if (old.tombstone) --tombstones_;
  Append(entry, complete);
  return true;
}

void LogStore::SealPage(uint64_t complete) {
  SealLogPage(OpenPage(), {.log_id = id(),
                           .complete_sequence = complete,
                           .page_number = sealed_pages_,
                           .count = static_cast<uint16_t>(open_count_)});
  ++sealed_pages_;
  open_count_ = 0;
  complete_sequence_ = complete;
}

Status LogStore::WriteOut() const {
  if (sealed_tail_pages() == 0) return Status::Ok();
  const uint64_t size = OffsetOfPage(sealed_tail_pages());
  SILTFS_RETURN_IF_ERROR(file_->Write(OffsetOfPage(written_pages_), ByteView(tail_).first(size)));
  counters_->bytes_written.fetch_add(size, std::memory_order_relaxed);
  return Status::Ok();
}

void LogStore::DropWritten() {
  tail_.erase(tail_.begin(),
              tail_.begin() + static_cast<ptrdiff_t>(OffsetOfPage(sealed_tail_pages())));
  if (tail_.empty()) tail_.shrink_to_fit();
  written_pages_ = sealed_pages_;
}

Status LogStore::Sync() const { return file_->Sync(); }

// --- Replay ---

Result<LogStore::ReplayResult> LogStore::Replay(const ReplayOptions& options) {
  ReplayResult result;
  result.complete_sequence = options.complete_sequence;
  if (file_ == nullptr) return result;

  // A page count comes from a file that may lie; the pages that are there bound the work.
  SILTFS_ASSIGN_OR_RETURN(const uint64_t file_size, file_->Size());
  const auto pages_there = static_cast<uint32_t>(
      std::min<uint64_t>(file_size / kLogPageSize, options.page_count.value_or(kMaxLogPages)));
  const bool was_open = !options.page_count.has_value();
  std::span<const uint32_t> skip = options.skip;
  bool torn = false;

  auto note_damage = [&](uint32_t page) {
    result.damaged_pages.push_back(page);
    ++result.newly_damaged;
    if (!result.undamaged_sequence) result.undamaged_sequence = result.complete_sequence;
  };
  SILTFS_RETURN_IF_ERROR(ScanFile(pages_there,
                                  [&](uint32_t page, const std::optional<LogPageHeader>& header,
                                      ConstLogPageBytes bytes) -> Status {
                                    if (torn) return Status::Ok();
                                    if (!skip.empty() && skip.front() == page) {
                                      skip = skip.subspan(1);
                                      result.damaged_pages.push_back(page);
                                      return Status::Ok();
                                    }
                                    if (!header) {
                                      if (was_open) {
                                        torn = true;
                                      } else {
                                        note_damage(page);
                                      }
                                      return Status::Ok();
                                    }
                                    written_pages_ = page + 1;
                                    sealed_pages_ = page + 1;
                                    complete_sequence_ = header->complete_sequence;
                                    bool all_entered = true;
                                    for (size_t i = 0; i < header->count; ++i) {
                                      SILTFS_ASSIGN_OR_RETURN(
                                          bool entered, EnterReplayed(LogSlotNumber(page, i),
                                                                      DecodeLogSlot(bytes, i)));
                                      all_entered = all_entered && entered;
                                    }
                                    result.valid_pages = page + 1;
                                    if (!all_entered) {
                                      note_damage(page);
                                    } else {
                                      result.complete_sequence = header->complete_sequence;
                                    }
                                    return Status::Ok();
                                  }));
  if (!was_open && pages_there < *options.page_count) {
    result.newly_damaged += *options.page_count - pages_there;
    if (!result.undamaged_sequence) result.undamaged_sequence = result.complete_sequence;
  }
  while (!result.damaged_pages.empty() && result.damaged_pages.back() >= result.valid_pages) {
    result.damaged_pages.pop_back();
  }
  return result;
}

// False: the table refuses what it once took, so pages before this one are missing (the same
// inserts in the same order would have given the same table).
Result<bool> LogStore::EnterReplayed(uint32_t slot, const IndexEntry& entry) {
  const uint64_t hash = HashOf(entry.name, config_.hash_secret);
  for (uint32_t candidate : Find(hash)) {
    std::array<uint8_t, kLogPageSize> page;
    SILTFS_RETURN_IF_ERROR(ReadFile(LogPageOfSlot(candidate), page));
    const IndexEntry old = DecodeLogSlot(page, LogIndexOfSlot(candidate));
    if (old.name != entry.name) continue;
    if (IsTombstone(old)) --tombstones_;
    if (IsTombstone(entry)) ++tombstones_;
    return table_.Replace(hash, candidate, slot);
  }
  if (!table_.Insert(hash, slot)) return false;
  if (IsTombstone(entry)) ++tombstones_;
  return true;
}

// --- Statistics ---

IndexComponentStats LogStore::Stats() const {
  return {.kind = "log_store",
          .entries = table_.size() - tombstones_,
          .flash_bytes = OffsetOfPage(written_pages_),
          .memory_bytes = table_.memory_bytes() + tail_.capacity(),
          .occupancy = table_.occupancy(),
          .flash_reads = counters_->flash_reads.load(std::memory_order_relaxed),
          .flash_bytes_written = counters_->bytes_written.load(std::memory_order_relaxed)};
}

}  // namespace siltfs
