#include "fs/transfer/entry_record.h"

#include <algorithm>

#include "fs/transfer/lane_message.h"

namespace siltfs::transfer {
namespace {

constexpr uint8_t kHasSource = 1;
// The least bytes that an extended attribute and an extent take, to limit what a number of them
// makes the decoder allocate.
constexpr size_t kMinXattrBytes = 6;
constexpr size_t kExtentBytes = 12;

Status Malformed() { return {StatusCode::kInvalidArgument, "an entry's record is malformed"}; }
Status NotUnderstood() {
  return {StatusCode::kCorruption, "the daemon's answer is not understood"};
}

Status DecodeXattrs(Decoder& in, DecodedRecord& record) {
  const size_t count = in.U16();
  if (count > in.remaining() / kMinXattrBytes) return Malformed();
  record.xattrs.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = in.Text16();
    const size_t length = in.U32();
    record.xattrs.push_back({name, AsText(in.Raw(length))});
  }
  return Status::Ok();
}

// Decodes the places of extents, and then their bytes from `data`.
Status DecodeExtents(Decoder& in, Decoder& data, DecodedRecord& record) {
  const size_t count = in.U16();
  if (count > in.remaining() / kExtentBytes) return Malformed();
  record.extents.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t offset = in.U64();
    record.extents.push_back({offset, data.Raw(in.U32())});
  }
  return data.ok() ? Status::Ok() : Malformed();
}

Status DecodeOne(Decoder& bytes, DecodedRecord& record) {
  const ByteView fields = bytes.Raw(bytes.U32());
  if (!bytes.ok()) return Malformed();
  Decoder in(fields);
  const uint8_t kind = in.U8();
  if (kind > static_cast<uint8_t>(RecordKind::kFinishDirectory)) return Malformed();
  record.kind = static_cast<RecordKind>(kind);
  const uint8_t flags = in.U8();
  record.number = in.U64();
  EntryImage& image = record.image;
  image.parent = in.U64();
  image.mode = in.U32();
  image.uid = in.U32();
  image.gid = in.U32();
  image.device = in.U64();
  image.size = in.U64();
  image.atime = in.I64();
  image.mtime = in.I64();
  const uint64_t source_inode = in.U64();
  const int64_t source_ctime = in.I64();
  if ((flags & kHasSource) != 0) {
    image.source = {
        .inode = source_inode, .ctime = source_ctime, .size = image.size, .mtime = image.mtime};
  }
  image.name = in.Text16();
  image.target = in.Text16();
  SILTFS_RETURN_IF_ERROR(DecodeXattrs(in, record));
  SILTFS_RETURN_IF_ERROR(DecodeExtents(in, bytes, record));
  return in.Done() ? Status::Ok() : Malformed();
}

}  // namespace

std::string EncodeRecord(const EntryRecord& record) {
  Encoder in;
  in.U8(static_cast<uint8_t>(record.kind)).U8(record.source ? kHasSource : 0);
  in.U64(record.number).U64(record.parent).U32(record.mode).U32(record.uid).U32(record.gid);
  in.U64(record.device).U64(record.size).I64(record.atime).I64(record.mtime);
  in.U64(record.source ? record.source->first : 0).I64(record.source ? record.source->second : 0);
  in.Text16(record.name).Text16(record.target);
  in.U16(static_cast<uint16_t>(record.xattrs.size()));
  for (const RecordXattr& xattr : record.xattrs)
    in.Text16(xattr.name).U32(static_cast<uint32_t>(xattr.value.size())).Raw(xattr.value);
  in.U16(static_cast<uint16_t>(record.extents.size()));
  for (const EntryRecord::Extent& extent : record.extents) in.U64(extent.offset).U32(extent.length);
  Encoder out;
  out.U32(static_cast<uint32_t>(in.size())).Raw(in.view());
  return out.Take();
}

EntryImage DecodedRecord::Image() const {
  EntryImage whole = image;
  whole.xattrs = xattrs;
  whole.extents = extents;
  return whole;
}

Result<std::vector<DecodedRecord>> DecodeRecords(ByteView bytes, size_t count) {
  constexpr size_t kLeast = 90;  // bytes of the shortest record
  if (count > bytes.size() / kLeast) return Malformed();
  Decoder in(bytes);
  std::vector<DecodedRecord> records(count);
  for (DecodedRecord& record : records) SILTFS_RETURN_IF_ERROR(DecodeOne(in, record));
  if (!in.Done()) return Malformed();
  return records;
}

void EncodeOutcome(const Outcome& outcome, size_t room, size_t left, Encoder& out) {
  const size_t reserved = (left + 1) * kMinOutcomeBytes;
  const size_t for_cause = room > out.size() + reserved ? room - out.size() - reserved : 0;
  out.U8(static_cast<uint8_t>(outcome.code)).U8(static_cast<uint8_t>(outcome.effect));
  out.U64(outcome.inode);
  out.Text16(std::string_view(outcome.cause).substr(0, std::min(for_cause, kMaxCauseBytes)));
}

Result<std::vector<Outcome>> DecodeOutcomes(ByteView bytes, size_t count) {
  if (count > bytes.size() / kMinOutcomeBytes) return NotUnderstood();
  Decoder in(bytes);
  std::vector<Outcome> outcomes(count);
  for (Outcome& outcome : outcomes) {
    outcome.code = CodeOfNumber(in.U8());
    const uint8_t effect = in.U8();
    if (effect > static_cast<uint8_t>(PutEffect::kNeeded)) return NotUnderstood();
    outcome.effect = static_cast<PutEffect>(effect);
    outcome.inode = in.U64();
    outcome.cause = in.Text16();
    if (outcome.cause.size() > kMaxCauseBytes) return NotUnderstood();
  }
  if (!in.Done()) return NotUnderstood();
  return outcomes;
}

void EncodeListedName(std::string_view name, uint32_t mode, Encoder& out) {
  out.U32(mode).Text16(name);
}

Result<std::vector<ListedName>> DecodeListedNames(ByteView bytes, size_t count) {
  if (count > bytes.size() / ListedBytes({})) return NotUnderstood();
  Decoder in(bytes);
  std::vector<ListedName> names(count);
  for (ListedName& listed : names) {
    listed.mode = in.U32();
    listed.name = in.Text16();
  }
  if (!in.Done()) return NotUnderstood();
  return names;
}

}  // namespace siltfs::transfer
