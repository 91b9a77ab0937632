#include "fs/records/segment_record.h"

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint8_t kSealedFlag = 1;
constexpr uint8_t kRecompressedFlag = 2;
constexpr uint8_t kDeltasFlag = 4;
constexpr uint8_t kKnownFlags = kSealedFlag | kRecompressedFlag | kDeltasFlag;

uint8_t FlagsOf(const SegmentRecord& record) {
  return static_cast<uint8_t>((record.sealed ? kSealedFlag : 0) |
                              (record.recompressed ? kRecompressedFlag : 0) |
                              (record.deltas ? kDeltasFlag : 0));
}

}  // namespace

std::string SegmentRecord::Encode() const {
  return Encoder()
      .U8(kind)
      .U8(FlagsOf(*this))
      .U64(length)
      .U64(chunks)
      .U64(plain_bytes)
      .U64(first_sequence)
      .U64(last_sequence)
      .Take();
}

Result<SegmentRecord> SegmentRecord::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  SegmentRecord record;
  record.kind = in.U8();
  const uint8_t flags = in.U8();
  record.sealed = (flags & kSealedFlag) != 0;
  record.recompressed = (flags & kRecompressedFlag) != 0;
  record.deltas = (flags & kDeltasFlag) != 0;
  record.length = in.U64();
  record.chunks = in.U64();
  record.plain_bytes = in.U64();
  record.first_sequence = in.U64();
  record.last_sequence = in.U64();
  const bool flags_known = (flags & ~kKnownFlags) == 0;
  const bool contradicts = (record.recompressed || record.deltas) && !record.sealed;
  if (!in.Done() || !flags_known || contradicts)
    return Status(StatusCode::kCorruption, "metadata holds a malformed segment record");
  return record;
}

std::string IdRanges::Encode() const {
  return Encoder().U64(epoch).U64(inode_limit).U32(segment_limit).U8(clean ? 1 : 0).Take();
}

Result<IdRanges> IdRanges::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  IdRanges ranges;
  ranges.epoch = in.U64();
  ranges.inode_limit = in.U64();
  ranges.segment_limit = in.U32();
  ranges.clean = in.U8() != 0;
  if (!in.Done() || ranges.epoch >= (uint64_t{1} << 24) || ranges.segment_limit == 0) {
    return Status(StatusCode::kCorruption, "metadata holds a malformed id-range record");
  }
  return ranges;
}

}  // namespace siltfs
