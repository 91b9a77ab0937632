#include "store/segment/block_head.h"

#include <fmt/format.h>

#include <cassert>

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint32_t kBlockMagic = 0x4b4c4253;  // "SBLK"
// The head checksum lies between the two ranges that it covers.
constexpr size_t kChecksumOffset = 48;

static_assert(kChecksumOffset + 8 == kBlockHeaderSize);
static_assert(ChunkName::kSize + 8 + 3 + 1 == kChunkTableEntrySize);

Status Corrupt(std::string cause) { return Status(StatusCode::kCorruption, std::move(cause)); }

uint64_t HeadChecksum(ByteView head, const SegmentIdentity& identity) {
  return Checksum(head.first(kChecksumOffset), head.subspan(kBlockHeaderSize),
                  identity.ChecksumSeed());
}

// Rejects a head with sizes that no writer produces, even if its checksum is right.
Status CheckSizes(const BlockHead& head) {
  uint64_t sum = 0;
  for (const ChunkRecord& record : head.records) {
    if (record.length == 0) return Corrupt("block has a chunk of no bytes");
    sum += record.length;
  }
  if (sum != head.plain_bytes || head.plain_bytes > kMaxBlockPlainBytes) {
    return Corrupt(fmt::format("block has {} uncompressed bytes and chunks of {} bytes",
                               head.plain_bytes, sum));
  }
  bool stored_plainly = head.codec == BlockCodecId::kNone;
  if (stored_plainly ? head.payload_bytes != head.plain_bytes
                     : head.payload_bytes == 0 || head.payload_bytes >= head.plain_bytes) {
    return Corrupt(fmt::format("block has {} payload bytes for {} uncompressed bytes",
                               head.payload_bytes, head.plain_bytes));
  }
  if (uint64_t{head.first_ordinal} + head.records.size() > kMaxSegmentChunks) {
    return Corrupt(
        fmt::format("block begins at ordinal {}, beyond the last one allowed", head.first_ordinal));
  }
  return Status::Ok();
}

}  // namespace

std::string EncodeBlockHead(const BlockHead& head, const SegmentIdentity& identity) {
  assert(head.segment == identity.id);
  assert(!head.records.empty() && head.records.size() <= kMaxBlockChunks);
  Encoder table;
  for (const ChunkRecord& record : head.records) {
    table.Raw(record.name.view()).U64(record.tag).U24(record.length).U8(record.salt);
  }
  Encoder out;
  out.U32(kBlockMagic)
      .U8(static_cast<uint8_t>(head.codec))
      .U8(0)  // flags
      .U16(static_cast<uint16_t>(head.records.size()))
      .U32(head.first_ordinal)
      .U32(head.payload_bytes)
      .U32(head.plain_bytes)
      .U32(head.segment)
      .U64(head.sequence)
      .U64(head.last_commit)
      .U64(head.payload_checksum);
  out.U64(Checksum(out.view(), table.view(), identity.ChecksumSeed()));
  out.Raw(table.view());
  return out.Take();
}

bool BeginsLikeBlock(ByteView bytes) {
  // The first byte is compared first, because this check runs at every offset after damage.
  return bytes.size() >= 4 && bytes[0] == (kBlockMagic & 0xff) &&
         Decoder(bytes).U32() == kBlockMagic;
}

Result<uint32_t> BlockHeadSize(ByteView header) {
  if (header.size() < kBlockHeaderSize) {
    return Corrupt(fmt::format("block header is cut off after {} bytes", header.size()));
  }
  Decoder in(header);
  if (!BeginsLikeBlock(header)) return Corrupt("no block begins here: the magic number is wrong");
  in.Skip(6);
  uint32_t count = in.U16();
  if (count == 0 || count > kMaxBlockChunks)
    return Corrupt(fmt::format("block claims to have {} chunks", count));
  return kBlockHeaderSize + count * kChunkTableEntrySize;
}

Result<BlockHead> DecodeBlockHead(ByteView bytes, const SegmentIdentity& identity) {
  SILTFS_ASSIGN_OR_RETURN(uint32_t size, BlockHeadSize(bytes));
  if (bytes.size() != size) {
    return Corrupt(fmt::format("block head is cut off after {} of {} bytes", bytes.size(), size));
  }
  Decoder stored(bytes.subspan(kChecksumOffset));
  if (stored.U64() != HeadChecksum(bytes, identity)) {
    return Corrupt("block head has a wrong checksum");
  }
  BlockHead head;
  Decoder in(bytes);
  in.Skip(4);
  uint8_t codec = in.U8();
  uint8_t flags = in.U8();
  uint16_t count = in.U16();
  if (codec > static_cast<uint8_t>(BlockCodecId::kZstdDelta) || flags != 0) {
    return Status(StatusCode::kNeedsNewer,
                  fmt::format("block has codec {} and flags {}, which this siltfs doesn't know",
                              codec, flags));
  }
  head.codec = static_cast<BlockCodecId>(codec);
  head.first_ordinal = in.U32();
  head.payload_bytes = in.U32();
  head.plain_bytes = in.U32();
  head.segment = in.U32();
  head.sequence = in.U64();
  head.last_commit = in.U64();
  head.payload_checksum = in.U64();
  in.Skip(8);
  if (head.segment != identity.id) {
    return Corrupt(fmt::format("block belongs to segment {}, but is in segment {}", head.segment,
                               identity.id));
  }
  head.records.resize(count);
  for (ChunkRecord& record : head.records) {
    record.name = ChunkName::FromBytes(in.Raw(ChunkName::kSize));
    record.tag = in.U64();
    record.length = in.U24();
    record.salt = in.U8();
  }
  SILTFS_RETURN_IF_ERROR(CheckSizes(head));
  return head;
}

Status CheckPayload(const BlockHead& head, ByteView payload) {
  if (payload.size() != head.payload_bytes) {
    return Corrupt(fmt::format("block is cut off after {} of {} payload bytes", payload.size(),
                               head.payload_bytes));
  }
  if (Checksum(payload) != head.payload_checksum)
    return Corrupt("block's payload has a wrong checksum");
  return Status::Ok();
}

}  // namespace siltfs
