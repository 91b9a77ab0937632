#include "index/silt/log_store.h"

#include <algorithm>
#include <cassert>

#include "store/base/checksum.h"

namespace siltfs {
namespace {

constexpr uint32_t kScanPages = 64;  // 256 KiB a read

uint64_t OffsetOfPage(uint32_t page) { return uint64_t{page} * kPageSize; }

}  // namespace

LogStore::LogStore(const Config& config, std::shared_ptr<File> file)
    : config_(config),
      file_(std::move(file)),
      counters_(std::make_shared<StoreCounters>()),
      table_(config.bucket_bits) {}

// --- Reading ---

ConstPageBytes LogStore::TailPage(uint32_t page) const {
  return ConstPageBytes(tail_.data() + OffsetOfPage(page - written_pages_), kPageSize);
}

SlotEntry LogStore::TailEntry(uint32_t slot) const {
  return DecodeLogSlot(layout(), TailPage(layout().PageOf(slot)), LogIndexOfSlot(layout(), slot));
}

Status LogStore::ReadFile(uint32_t first, MutableByteView out) const {
  SILTFS_ASSIGN_OR_RETURN(size_t got, file_->Read(OffsetOfPage(first), out));
  std::fill(out.begin() + static_cast<ptrdiff_t>(got), out.end(), 0);
  return Status::Ok();
}

std::optional<SlotEntry> LogStore::EntryInPage(uint32_t slot, ConstPageBytes bytes) const {
  const uint32_t page = config_.first_page + layout().PageOf(slot);
  const size_t index = LogIndexOfSlot(layout(), slot);
  const auto header = CheckLogPage(layout(), bytes, id(), page);
  if (!header || index >= header->count) return std::nullopt;
  return DecodeLogSlot(layout(), bytes, index);
}

Result<LogStore::Contents> LogStore::ReadAll() const {
  Contents contents;
  contents.layout = layout();
  const uint32_t pages = sealed_pages_ + (open_count_ > 0 ? 1 : 0);
  contents.bytes.resize(OffsetOfPage(pages));
  contents.page_is_damaged.resize(pages);
  for (uint32_t first = 0; first < written_pages_; first += kScanPages) {
    const uint32_t count = std::min(written_pages_ - first, kScanPages);
    SILTFS_RETURN_IF_ERROR(ReadFile(
        first, MutableByteView(contents.bytes).subspan(OffsetOfPage(first), OffsetOfPage(count))));
  }
  std::copy(tail_.begin(),
            tail_.begin() + static_cast<ptrdiff_t>(OffsetOfPage(pages - written_pages_)),
            contents.bytes.begin() + static_cast<ptrdiff_t>(OffsetOfPage(written_pages_)));
  for (uint32_t page = 0; page < written_pages_; ++page) {
    const ConstPageBytes bytes(contents.bytes.data() + OffsetOfPage(page), kPageSize);
    if (CheckLogPage(layout(), bytes, id(), config_.first_page + page)) continue;
    contents.page_is_damaged[page] = true;
    ++contents.damaged_pages;
  }
  return contents;
}

std::optional<SlotEntry> LogStore::Contents::Entry(uint32_t slot) const {
  const uint32_t page = layout.PageOf(slot);
  if (page_is_damaged[page]) return std::nullopt;
  return DecodeLogSlot(layout, ConstPageBytes(bytes.data() + OffsetOfPage(page), kPageSize),
                       LogIndexOfSlot(layout, slot));
}

std::shared_ptr<LogStore> LogStore::EmptyWith(unsigned bucket_bits) const {
  Config config = config_;
  config.bucket_bits = bucket_bits;
  return std::make_shared<LogStore>(config, file_);
}

std::shared_ptr<const LogStore> LogStore::Snapshot() const {
  return std::shared_ptr<const LogStore>(new LogStore(*this));
}

// --- Writing ---

PageBytes LogStore::OpenPage() {
  const size_t offset = OffsetOfPage(sealed_tail_pages());
  if (tail_.size() == offset) {
    tail_.reserve(offset + kPageSize);  // exactly; resize alone might reserve more
    tail_.resize(offset + kPageSize);
  }
  return PageBytes(tail_.data() + offset, kPageSize);
}

void LogStore::Append(uint64_t hash, const SlotEntry& entry, uint64_t complete) {
  SlotEntry hashed = entry;
  hashed.hash = hash;
  EncodeLogSlot(layout(), OpenPage(), open_count_++, hashed);
  if (IsTombstone(entry)) ++tombstones_;
  if (open_count_ == LogSlotsPerPage(layout())) SealPage(complete);
}

bool LogStore::Insert(uint64_t hash, const SlotEntry& entry, uint64_t complete) {
  if (!table_.Insert(hash, NextSlot())) return false;
  Append(hash, entry, complete);
  return true;
}

bool LogStore::Replace(uint64_t hash, const Resident& old, const SlotEntry& entry,
                       uint64_t complete) {
  if (!table_.Replace(hash, old.slot, NextSlot())) return false;
  if (old.tombstone) --tombstones_;
  Append(hash, entry, complete);
  return true;
}

void LogStore::SealPage(uint64_t complete) {
  SealLogPage(OpenPage(), {.log_id = id(),
                           .complete_sequence = complete,
                           .page_number = end_page(),
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

void LogStore::BeginSync() const { file_->BeginSync(0, OffsetOfPage(written_pages_)); }

Status LogStore::Sync() const { return file_->Sync(); }

// --- Replay ---

Result<LogStore::ReplayResult> LogStore::Replay(const Accepts& accepts) {
  ReplayResult result;
  result.all_valid = true;
  if (file_ == nullptr) return result;
  SILTFS_ASSIGN_OR_RETURN(const uint64_t file_size, file_->Size());
  const auto pages_there =
      static_cast<uint32_t>(std::min<uint64_t>(file_size / kPageSize, kMaxLogPages));
  Bytes buffer(OffsetOfPage(std::min(pages_there, kScanPages)));
  for (uint32_t first = 0; first < pages_there; first += kScanPages) {
    const uint32_t count = std::min(pages_there - first, kScanPages);
    SILTFS_RETURN_IF_ERROR(ReadFile(first, MutableByteView(buffer).first(OffsetOfPage(count))));
    for (uint32_t i = 0; i < count; ++i) {
      const ConstPageBytes bytes(buffer.data() + OffsetOfPage(i), kPageSize);
      SILTFS_ASSIGN_OR_RETURN(const bool entered, ReplayPage(bytes, accepts));
      if (entered) continue;
      result.all_valid = false;
      result.valid_pages = sealed_pages_;
      return result;
    }
  }
  result.valid_pages = sealed_pages_;
  result.all_valid = OffsetOfPage(pages_there) == file_size;
  return result;
}

// Replays one page. Returns false if it is not the page that was sealed next. Returns kCorruption
// if the table refuses an entry. Before the crash a table took all entries, and the same inserts in
// the same order give the same table. So either this table is smaller than that one, or the entries
// were never in the log.
Result<bool> LogStore::ReplayPage(ConstPageBytes bytes, const Accepts& accepts) {
  const auto header = CheckLogPage(layout(), bytes, id(), end_page());
  if (!header) return false;
  for (size_t i = 0; accepts && i < header->count; ++i) {
    if (!accepts(sealed_pages_, DecodeLogSlot(layout(), bytes, i))) return false;
  }
  for (size_t i = 0; i < header->count; ++i) {
    SILTFS_ASSIGN_OR_RETURN(const bool entered,
                            EnterReplayed(LogSlotNumber(layout(), sealed_pages_, i),
                                          DecodeLogSlot(layout(), bytes, i)));
    if (!entered) {
      return Status(StatusCode::kCorruption, "has entries that were never in it")
          .At(file_->path(), OffsetOfPage(sealed_pages_));
    }
  }
  ++sealed_pages_;
  written_pages_ = sealed_pages_;
  complete_sequence_ = header->complete_sequence;
  return true;
}

// Enters a replayed entry into the table. Returns false if the table is full.
Result<bool> LogStore::EnterReplayed(uint32_t slot, const SlotEntry& entry) {
  const OrderKey key = name_hash().KeyOf(entry);
  for (uint32_t candidate : Find(key.hash)) {
    std::array<uint8_t, kPageSize> page;
    SILTFS_RETURN_IF_ERROR(ReadFile(layout().PageOf(candidate), page));
    const SlotEntry old = DecodeLogSlot(layout(), page, LogIndexOfSlot(layout(), candidate));
    if (!IsEntryOf(key, layout(), old)) continue;
    if (IsTombstone(old)) --tombstones_;
    if (IsTombstone(entry)) ++tombstones_;
    return table_.Replace(key.hash, candidate, slot);
  }
  if (!table_.Insert(key.hash, slot)) return false;
  if (IsTombstone(entry)) ++tombstones_;
  return true;
}

// --- Statistics ---

IndexComponentStats LogStore::Stats() const {
  IndexComponentStats stats = counters_->Stats(file_id());
  stats.entries = table_.size() - tombstones_;
  stats.flash_bytes = OffsetOfPage(written_pages_);
  stats.memory_bytes = table_.memory_bytes() + tail_.capacity();
  stats.occupancy = table_.occupancy();
  return stats;
}

}  // namespace siltfs
