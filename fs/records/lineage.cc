#include "fs/records/lineage.h"

#include <utility>

#include "fs/records/snapshot_id_coding.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint8_t kChanged = 1;
constexpr uint8_t kIncoming = 2;
constexpr uint8_t kHasBase = 4;

Status Malformed() {
  return {StatusCode::kCorruption, "metadata holds a malformed record of a lineage"};
}

void PutText(Encoder& out, std::string_view text) {
  out.U32(static_cast<uint32_t>(text.size())).Raw(text);
}

std::string TakeText(Decoder& in) {
  const uint32_t size = in.U32();
  return std::string(AsText(in.Raw(size)));
}

}  // namespace

std::string LineageRecord::Encode() const {
  Encoder out;
  out.U8(static_cast<uint8_t>((changed ? kChanged : 0) | (incoming ? kIncoming : 0) |
                              (incoming && incoming->base ? kHasBase : 0)));
  if (!incoming) return out.Take();
  EncodeSnapshotId(out, incoming->id);
  if (incoming->base) EncodeSnapshotId(out, *incoming->base);
  out.U64(incoming->inode_limit);
  PutText(out, incoming->name);
  PutText(out, incoming->position);
  return out.Take();
}

Result<LineageRecord> LineageRecord::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  LineageRecord record;
  const uint8_t flags = in.U8();
  if (flags > (kChanged | kIncoming | kHasBase)) return Malformed();
  record.changed = (flags & kChanged) != 0;
  if ((flags & kIncoming) != 0) {
    IncomingSnapshot& incoming = record.incoming.emplace();
    incoming.id = DecodeSnapshotId(in);
    if ((flags & kHasBase) != 0) incoming.base = DecodeSnapshotId(in);
    incoming.inode_limit = in.U64();
    incoming.name = TakeText(in);
    incoming.position = TakeText(in);
    if (incoming.inode_limit > kInodesPerLineage || incoming.name.empty()) return Malformed();
  } else if ((flags & kHasBase) != 0) {
    return Malformed();
  }
  if (!in.Done()) return Malformed();
  return record;
}

Result<Lineages> ReadLineages(const KvSnapshot& metadata) {
  Lineages found;
  const KeyRange range = RangeOf(Table::kLineage);
  const auto iterator = metadata.NewIteratorBelow(range.end);
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    const auto number = ParseInodeKey(Table::kLineage, iterator->key());
    if (!number || *number == kLiveLineage || *number >= kLineageLimit) return Malformed();
    SILTFS_ASSIGN_OR_RETURN(found[*number], LineageRecord::Decode(iterator->value()));
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  return found;
}

}  // namespace siltfs
