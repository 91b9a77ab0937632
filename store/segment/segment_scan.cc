#include "store/segment/segment_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "store/segment/block_io.h"

namespace siltfs {
namespace {

constexpr size_t kSearchBytes = 64U << 10;

class BlockScan {
 public:
  BlockScan(const ReadableFile& file, const SegmentIdentity& identity, const ScanOptions& options,
            const BlockVisitor& visitor)
      : file_(file), identity_(identity), options_(options), visitor_(visitor) {}

  Result<ScanResult> Run();

 private:
  // The head of the block at `offset`; an error if no block can follow there.
  Result<BlockHead> HeadAt(uint64_t offset) const;
  Status CheckPayloadAt(const BlockHead& head, uint64_t offset) const;
  Status Accept(const BlockHead& head, uint64_t offset);
  // Reports the damage at `offset`; returns the offset at which to continue, or the end.
  Result<uint64_t> SkipDamage(uint64_t offset, const BlockHead* intact_head, const Status& cause);
  Result<std::optional<uint64_t>> FindNextBlock(uint64_t damaged, uint64_t from) const;
  bool FollowsGap(const BlockHead& head, uint64_t gap_bytes) const;

  const ReadableFile& file_;
  const SegmentIdentity& identity_;
  const ScanOptions& options_;
  const BlockVisitor& visitor_;
  uint64_t end_ = 0;
  // Empty until the first block is found, if the scan begins in the middle of the segment.
  std::optional<uint32_t> next_ordinal_;
  uint64_t last_sequence_ = 0;
  // Whether the next block follows damage. If so, ordinals may be missing before this block.
  bool after_gap_ = false;
  ScanResult result_;
};

Status Corrupt(const ReadableFile& file, uint64_t offset, std::string cause) {
  return Status(StatusCode::kCorruption, std::move(cause)).At(file.path(), offset);
}

Result<BlockHead> BlockScan::HeadAt(uint64_t offset) const {
  SILTFS_ASSIGN_OR_RETURN(BlockHead head, ReadBlockHeadAt(file_, identity_, offset));
  if (offset + head.total_bytes() > end_) {
    return Corrupt(
        file_, offset,
        fmt::format("block is cut off after {} of {} bytes", end_ - offset, head.total_bytes()));
  }
  if (next_ordinal_ && !after_gap_ && head.first_ordinal != *next_ordinal_) {
    return Corrupt(file_, offset,
                   fmt::format("block begins with ordinal {} instead of {}", head.first_ordinal,
                               *next_ordinal_));
  }
  if (head.sequence <= last_sequence_) {
    return Corrupt(
        file_, offset,
        fmt::format("block of sequence {} follows one of {}", head.sequence, last_sequence_));
  }
  return head;
}

Status BlockScan::CheckPayloadAt(const BlockHead& head, uint64_t offset) const {
  if (!options_.verify_payloads) return Status::Ok();
  auto payload = ReadPayloadAt(file_, head, offset);
  return std::move(payload).status();
}

Status BlockScan::Accept(const BlockHead& head, uint64_t offset) {
  SILTFS_RETURN_IF_ERROR(visitor_(head, static_cast<uint32_t>(offset)));
  if (result_.blocks == 0) result_.first_sequence = head.sequence;
  ++result_.blocks;
  result_.end_ordinal = head.end_ordinal();
  result_.last_sequence = head.sequence;
  result_.plain_bytes += head.plain_bytes;
  result_.valid_end = offset + head.total_bytes();
  next_ordinal_ = head.end_ordinal();
  last_sequence_ = head.sequence;
  after_gap_ = false;
  return Status::Ok();
}

// Whether this block can follow an ordinal gap: the missing chunks must have fitted into the lost
// bytes.
bool BlockScan::FollowsGap(const BlockHead& head, uint64_t gap_bytes) const {
  if (!next_ordinal_) return true;
  return head.first_ordinal >= *next_ordinal_ &&
         uint64_t{head.first_ordinal - *next_ordinal_} * kChunkTableEntrySize <= gap_bytes;
}

Result<std::optional<uint64_t>> BlockScan::FindNextBlock(uint64_t damaged, uint64_t from) const {
  Bytes window;
  for (uint64_t offset = from; offset < end_; offset += kSearchBytes) {
    // Search windows overlap, so that no header is split.
    window.resize(std::min<uint64_t>(kSearchBytes + kBlockHeaderSize - 1, end_ - offset));
    SILTFS_ASSIGN_OR_RETURN(size_t got, file_.Read(offset, window));
    for (size_t i = 0; i < kSearchBytes && i + kBlockHeaderSize <= got; ++i) {
      if (!BeginsLikeBlock(ByteView(window).subspan(i))) continue;
      auto head = HeadAt(offset + i);
      if (head.ok() && FollowsGap(*head, offset + i - damaged)) return std::optional(offset + i);
      if (!head.ok() && !head.status().Is(StatusCode::kCorruption)) return std::move(head).status();
    }
  }
  return std::optional<uint64_t>();
}

Result<uint64_t> BlockScan::SkipDamage(uint64_t offset, const BlockHead* intact_head,
                                       const Status& cause) {
  if (intact_head != nullptr) {
    const uint64_t next = offset + intact_head->total_bytes();
    next_ordinal_ = intact_head->end_ordinal();
    last_sequence_ = intact_head->sequence;
    after_gap_ = false;  // the intact head gives the next ordinal
    SILTFS_RETURN_IF_ERROR(options_.on_damage(offset, next, cause));
    return next;
  }
  after_gap_ = true;
  SILTFS_ASSIGN_OR_RETURN(auto next, FindNextBlock(offset, offset + 1));
  SILTFS_RETURN_IF_ERROR(
      options_.on_damage(offset, next.value_or(options_.committed_length), cause));
  if (next) return *next;
  result_.torn = end_ > options_.committed_length;
  if (result_.torn) result_.stopped_reason = "no block follows the damage";
  return std::max(end_, options_.committed_length);
}

Result<ScanResult> BlockScan::Run() {
  SILTFS_ASSIGN_OR_RETURN(end_, file_.Size());
  // No block ends beyond this, even if the file was made longer.
  end_ = std::min<uint64_t>(end_, kMaxSegmentTargetSize + kMaxBlockHeadSize + kMaxBlockPlainBytes);
  if (options_.end != 0) end_ = std::min(end_, options_.end);
  if (options_.from == kSegmentHeaderSize) next_ordinal_ = 0;
  result_.valid_end = options_.from;
  uint64_t offset = options_.from;
  while (offset < std::max(end_, options_.committed_length)) {
    auto head = HeadAt(offset);
    Status fault = head.ok() ? CheckPayloadAt(*head, offset) : head.status();
    if (fault.ok()) {
      SILTFS_RETURN_IF_ERROR(Accept(*head, offset));
      offset = result_.valid_end;
      continue;
    }
    if (!fault.Is(StatusCode::kCorruption)) return fault;
    if (offset >= options_.committed_length) {
      result_.torn = true;
      result_.stopped_reason = fault.ToString();
      break;
    }
    if (!options_.on_damage) return fault;
    SILTFS_ASSIGN_OR_RETURN(offset, SkipDamage(offset, head.ok() ? &*head : nullptr, fault));
  }
  return std::move(result_);
}

}  // namespace

Result<ScanResult> ScanBlocks(const ReadableFile& file, const SegmentIdentity& identity,
                              const ScanOptions& options, const BlockVisitor& visitor) {
  return BlockScan(file, identity, options, visitor).Run();
}

}  // namespace siltfs
