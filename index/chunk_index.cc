#include "index/chunk_index.h"

#include <fmt/format.h>

#include <algorithm>

namespace siltfs {
namespace {

constexpr uint64_t kEntryBytes = ChunkName::kSize + Location::kEncodedSize;

Status CheckEntry(const IndexEntry& entry) {
  const Location& at = entry.location;
  if (at.segment == kNoSegment) {
    return {StatusCode::kInvalidArgument,
            fmt::format("the entry of {} names no segment", entry.name.ToHex())};
  }
  if (at.ordinal > Location::kMaxOrdinal || at.block_offset > Location::kMaxBlockOffset) {
    return {StatusCode::kInvalidArgument,
            fmt::format("the location of {} does not fit its 12 bytes", entry.name.ToHex())};
  }
  return Status::Ok();
}

Status CheckEntries(std::span<const IndexEntry> entries) {
  for (const IndexEntry& entry : entries) SILTFS_RETURN_IF_ERROR(CheckEntry(entry));
  return Status::Ok();
}

}  // namespace

double IndexStats::ReadAmplification() const {
  return lookups == 0 ? 0 : static_cast<double>(flash_reads) / static_cast<double>(lookups);
}

double IndexStats::WriteAmplification() const {
  return entry_bytes_put == 0
             ? 0
             : static_cast<double>(flash_bytes_written) / static_cast<double>(entry_bytes_put);
}

Status ChunkIndex::CheckOpen() const {
  if (closed_.load(std::memory_order_acquire)) {
    return {StatusCode::kInvalidArgument, "the chunk index is closed"};
  }
  return Status::Ok();
}

Status ChunkIndex::CheckWritable() const {
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  if (read_only_) return {StatusCode::kReadOnly, "the chunk index was opened read-only"};
  return Status::Ok();
}

uint64_t ChunkIndex::CompleteUpTo(uint64_t sequence) const {
  return failed_sequence_ == 0 ? sequence : std::min(sequence, failed_sequence_ - 1);
}

Status ChunkIndex::Get(std::span<const ChunkName> names,
                       std::span<std::optional<Location>> results) {
  if (names.size() != results.size()) {
    return {StatusCode::kInvalidArgument,
            fmt::format("{} names were looked up, with {} results", names.size(), results.size())};
  }
  std::fill(results.begin(), results.end(), std::nullopt);
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  if (names.empty()) return Status::Ok();
  lookups_.fetch_add(names.size(), std::memory_order_relaxed);
  return GetImpl(names, results);
}

Result<std::optional<Location>> ChunkIndex::Get(const ChunkName& name) {
  std::optional<Location> result;
  SILTFS_RETURN_IF_ERROR(Get({&name, 1}, {&result, 1}));
  return result;
}

Status ChunkIndex::Put(std::span<const IndexEntry> entries, uint64_t sequence) {
  MutexLock lock(write_mutex_);
  return PutLocked(entries, sequence);
}

Status ChunkIndex::PutAgain(std::span<const IndexEntry> entries, uint64_t sequence) {
  MutexLock lock(write_mutex_);
  const bool mends = no_room_ && sequence == failed_sequence_;
  SILTFS_RETURN_IF_ERROR(PutLocked(entries, sequence));
  if (mends) failed_sequence_ = 0;
  return Status::Ok();
}

Status ChunkIndex::PutLocked(std::span<const IndexEntry> entries, uint64_t sequence) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  if (sequence < last_sequence_) {
    return {StatusCode::kInvalidArgument,
            fmt::format("sequence {} was put after sequence {}", sequence, last_sequence_)};
  }
  SILTFS_RETURN_IF_ERROR(WaitUntilOpenImpl());
  const uint64_t durable = DurableSequenceImpl();
  if (sequence <= durable) {
    return {StatusCode::kInvalidArgument,
            fmt::format("sequence {} was put, but all sequences up to {} are durable", sequence,
                        durable)};
  }
  last_sequence_ = sequence;
  Status put = CheckEntries(entries);
  if (put.ok()) {
    if (entries.empty()) return put;
    entry_bytes_put_.fetch_add(entries.size() * kEntryBytes, std::memory_order_relaxed);
    put = PutImpl(entries, CompleteUpTo(sequence - 1));
  }
  if (put.ok()) return put;
  const bool first = failed_sequence_ == 0;
  if (first) failed_sequence_ = sequence;
  no_room_ = put.Is(StatusCode::kNoSpace) && (first || (no_room_ && sequence == failed_sequence_));
  return put;
}

Status ChunkIndex::Delete(const ChunkName& name) {
  MutexLock lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  SILTFS_RETURN_IF_ERROR(WaitUntilOpenImpl());
  entry_bytes_put_.fetch_add(kEntryBytes, std::memory_order_relaxed);
  return DeleteImpl(name);
}

Status ChunkIndex::Flush() {
  MutexLock lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  if (read_only_) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(WaitUntilOpenImpl());
  return FlushImpl(last_sequence_ == 0 ? DurableSequenceImpl() : CompleteUpTo(last_sequence_ - 1));
}

Status ChunkIndex::DropGone(const std::function<Status()>& pace) {
  for (size_t part = 0;; ++part) {
    {
      MutexLock lock(write_mutex_);
      SILTFS_RETURN_IF_ERROR(CheckWritable());
      SILTFS_RETURN_IF_ERROR(WaitUntilOpenImpl());
      SILTFS_ASSIGN_OR_RETURN(
          const bool more,
          DropGoneImpl(part, last_sequence_ == 0 ? DurableSequenceImpl()
                                                 : CompleteUpTo(last_sequence_ - 1)));
      if (!more) return Status::Ok();
    }
    if (pace) SILTFS_RETURN_IF_ERROR(pace());
  }
}

Status ChunkIndex::WaitUntilOpen() {
  MutexLock lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  return WaitUntilOpenImpl();
}

Status ChunkIndex::SetMemoryLimit(uint64_t bytes) {
  MutexLock lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  return SetMemoryLimitImpl(bytes);
}

uint64_t ChunkIndex::durable_sequence() const { return DurableSequenceImpl(); }

double IndexComponentStats::FalsePositiveRate() const {
  // The rate is over lookups of absent names, so probes that found their name are subtracted.
  const uint64_t true_positives = flash_reads - std::min(flash_reads, false_positives);
  const uint64_t vain = probes - std::min(probes, true_positives);
  return vain == 0 ? 0 : static_cast<double>(false_positives) / static_cast<double>(vain);
}

Status ChunkIndex::Verify(const std::function<void(const IndexFinding&)>& report) {
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  return VerifyImpl(report);
}

Status ChunkIndex::ForEach(const Visit& visit) {
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  uint64_t last = 0;
  // A caller that merges by this order would treat an entry out of order as absent.
  return ForEachImpl([&](const OrderedEntry& entry) -> Status {
    if (entry.order < last) {
      return {StatusCode::kCorruption,
              fmt::format("the chunk index has the entry {:016x} out of order", entry.order)};
    }
    last = entry.order;
    return visit(entry);
  });
}

IndexStats ChunkIndex::stats() const {
  IndexStats stats = StatsImpl();
  stats.lookups = lookups_.load(std::memory_order_relaxed);
  stats.entry_bytes_put = entry_bytes_put_.load(std::memory_order_relaxed);
  return stats;
}

Status ChunkIndex::Close() {
  MutexLock lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  closed_.store(true, std::memory_order_release);
  if (read_only_) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(WaitUntilOpenImpl());
  return CloseImpl(last_sequence_ == 0 ? DurableSequenceImpl() : CompleteUpTo(last_sequence_));
}

}  // namespace siltfs
