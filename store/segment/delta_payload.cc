#include "store/segment/delta_payload.h"

#include <fmt/format.h>

#include <cassert>
#include <string>
#include <utility>

#include "store/base/coding.h"

namespace siltfs {
namespace {

static_assert(4 + 4 + kBaseRefSize == kDeltaTableEntrySize);

Status Corrupt(std::string cause) { return Status(StatusCode::kCorruption, std::move(cause)); }

struct TableEntry {
  DeltaBase delta;
  uint32_t frame_bytes = 0;
};

// Decodes the delta table, and compares it with the chunk table. `in` has all its bytes.
Result<std::vector<TableEntry>> DecodeTable(const BlockHead& head, uint32_t count, Decoder& in) {
  std::vector<TableEntry> table(count);
  uint64_t next = 0;  // the least position of the next entry
  for (TableEntry& entry : table) {
    entry.delta.position = in.U32();
    entry.frame_bytes = in.U32();
    entry.delta.base = DecodeBaseRef(in);
    if (entry.delta.position < next || entry.delta.position >= head.records.size()) {
      return Corrupt(
          fmt::format("delta table has position {} out of order, or outside of the block's {} "
                      "chunks",
                      entry.delta.position, head.records.size()));
    }
    next = uint64_t{entry.delta.position} + 1;
    const ChunkRecord& record = head.records[entry.delta.position];
    const BaseRef& base = entry.delta.base;
    if (entry.frame_bytes == 0 || !IsBaseLength(base.length) ||
        (base.name == record.name && base.tag == record.tag)) {
      return Corrupt(fmt::format("delta table has a delta of {} bytes for chunk {} against base {}",
                                 entry.frame_bytes, record.name.ToHex(), base.ToString()));
    }
  }
  return table;
}

// Rejects whole chunks of a size that no writer produces.
Status CheckWhole(const DeltaPayload& out) {
  const bool plain = out.whole_codec == BlockCodecId::kNone;
  const size_t stored = out.whole.size();
  if (plain ? stored == out.whole_plain : stored > 0 && stored < out.whole_plain)
    return Status::Ok();
  return Corrupt(
      fmt::format("block with deltas has {} bytes for {} uncompressed bytes of whole "
                  "chunks",
                  stored, out.whole_plain));
}

}  // namespace

Bytes EncodeDeltaPayload(const std::vector<DeltaFrame>& deltas, BlockCodecId whole_codec,
                         ByteView whole) {
  assert(!deltas.empty() && whole_codec != BlockCodecId::kZstdDelta);
  Encoder out;
  out.U32(static_cast<uint32_t>(deltas.size()))
      .U8(static_cast<uint8_t>(whole_codec))
      .Zeros(3)
      .U32(static_cast<uint32_t>(whole.size()));
  for (const DeltaFrame& delta : deltas) {
    out.U32(delta.delta.position).U32(static_cast<uint32_t>(delta.frame.size()));
    EncodeBaseRef(delta.delta.base, out);
  }
  const ByteView tables = out.view();
  size_t size = tables.size() + whole.size();
  for (const DeltaFrame& delta : deltas) size += delta.frame.size();
  Bytes payload;
  payload.reserve(size);
  payload.insert(payload.end(), tables.begin(), tables.end());
  payload.insert(payload.end(), whole.begin(), whole.end());
  for (const DeltaFrame& delta : deltas)
    payload.insert(payload.end(), delta.frame.begin(), delta.frame.end());
  return payload;
}

Result<DeltaPayload> DecodeDeltaPayload(const BlockHead& head, ByteView payload) {
  if (payload.size() < kDeltaHeaderSize)
    return Corrupt(fmt::format("block with deltas has only {} payload bytes", payload.size()));
  Decoder in(payload);
  const uint32_t count = in.U32();
  const uint8_t codec = in.U8();
  const uint32_t reserved = in.U24();
  const uint32_t whole_bytes = in.U32();
  if (codec > static_cast<uint8_t>(BlockCodecId::kZstd) || reserved != 0) {
    return Status(StatusCode::kNeedsNewer,
                  fmt::format("block with deltas has codec {} for its whole chunks and flags {}, "
                              "which this siltfs doesn't know",
                              codec, reserved));
  }
  if (count == 0 || count > head.records.size() ||
      uint64_t{count} * kDeltaTableEntrySize + whole_bytes > in.remaining()) {
    return Corrupt(
        fmt::format("block with deltas claims {} deltas and {} bytes of whole chunks in "
                    "{} payload bytes",
                    count, whole_bytes, payload.size()));
  }
  SILTFS_ASSIGN_OR_RETURN(const std::vector<TableEntry> table, DecodeTable(head, count, in));
  DeltaPayload out;
  out.whole_codec = static_cast<BlockCodecId>(codec);
  out.whole = in.Raw(whole_bytes);
  out.deltas.reserve(count);
  out.frames.reserve(count);
  uint64_t whole_plain = 0;
  for (const ChunkRecord& record : head.records) whole_plain += record.length;
  for (const TableEntry& entry : table) {
    out.deltas.push_back(entry.delta);
    out.frames.push_back(in.Raw(entry.frame_bytes));
    whole_plain -= head.records[entry.delta.position].length;
  }
  if (!in.Done()) return Corrupt("the deltas don't fill the block's payload");
  out.whole_plain = static_cast<uint32_t>(whole_plain);
  SILTFS_RETURN_IF_ERROR(CheckWhole(out));
  return out;
}

}  // namespace siltfs
