#include "fs/records/snapshot_record.h"

#include <algorithm>
#include <map>
#include <utility>

#include "fs/records/lineage.h"
#include "fs/records/schema.h"
#include "fs/records/snapshot_id_coding.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint8_t kRemoving = 1;
constexpr uint8_t kRestoring = 2;
constexpr uint8_t kReceived = 4;

Status Malformed() {
  return {StatusCode::kCorruption, "metadata holds a malformed record of a snapshot"};
}

bool IsUsableName(std::string_view name) {
  constexpr size_t kMostBytes = 255;
  return name.size() <= kMostBytes && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

}  // namespace

std::string SnapshotRecord::Encode() const {
  Encoder out;
  out.U8(static_cast<uint8_t>((removing    ? kRemoving
                               : restoring ? kRestoring
                                           : 0) |
                              (lineage != kLiveLineage ? kReceived : 0)))
      .I64(created)
      .U64(commit)
      .U64(inode_limit)
      .I64(logical_bytes)
      .I64(files)
      .I64(directories)
      .I64(chunk_references);
  if (lineage != kLiveLineage) {
    out.U64(lineage);
    EncodeSnapshotId(out, source);
  }
  return out.Raw(name).Take();
}

Result<SnapshotRecord> SnapshotRecord::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  SnapshotRecord record;
  const uint8_t all_flags = in.U8();
  const bool received = (all_flags & kReceived) != 0;
  const auto flags = static_cast<uint8_t>(all_flags & ~kReceived);
  record.removing = flags == kRemoving;
  record.restoring = flags == kRestoring;
  record.created = in.I64();
  record.commit = in.U64();
  record.inode_limit = in.U64();
  record.logical_bytes = in.I64();
  record.files = in.I64();
  record.directories = in.I64();
  record.chunk_references = in.I64();
  if (received) {
    record.lineage = in.U64();
    record.source = DecodeSnapshotId(in);
    if (record.lineage == kLiveLineage || record.lineage >= kLineageLimit ||
        record.inode_limit > kInodesPerLineage || record.restoring)
      return Malformed();
  }
  if (!in.ok() || flags > kRestoring) return Malformed();
  record.name = value.substr(value.size() - in.remaining());
  if (record.name.empty()) return Malformed();
  return record;
}

Result<std::vector<NumberedSnapshot>> ReadSnapshots(const KvSnapshot& metadata) {
  std::vector<NumberedSnapshot> found;
  std::map<LineageNumber, uint64_t> limits;
  SILTFS_ASSIGN_OR_RETURN(const uint64_t next, ReadNextSnapshot(metadata));
  const KeyRange range = RangeOf(Table::kSnapshot);
  const auto iterator = metadata.NewIteratorBelow(range.end);
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    if (iterator->key() == kNextSnapshotKey) continue;
    const auto number = ParseSnapshotKey(iterator->key());
    if (!number || *number == 0 || *number >= std::min(next, kSnapshotNumberLimit))
      return Malformed();
    SILTFS_ASSIGN_OR_RETURN(SnapshotRecord record, SnapshotRecord::Decode(iterator->value()));
    // The keeper of versions relies on limits that rise, and listings on names.
    if (record.inode_limit < std::exchange(limits[record.lineage], record.inode_limit))
      return Malformed();
    if (!IsUsableName(record.name)) return Malformed();
    found.push_back({*number, std::move(record)});
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  return found;
}

Result<std::vector<NumberedSnapshot>> ReadIntactSnapshots(const KvSnapshot& metadata) {
  std::vector<NumberedSnapshot> found;
  const KeyRange range = RangeOf(Table::kSnapshot);
  const auto iterator = metadata.NewIteratorBelow(range.end);
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    const auto number = ParseSnapshotKey(iterator->key());
    auto record = SnapshotRecord::Decode(iterator->value());
    if (record.ok() && number && *number != 0) found.push_back({*number, *std::move(record)});
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  return found;
}

Result<uint64_t> ReadNextSnapshot(const KvSnapshot& metadata) {
  SILTFS_ASSIGN_OR_RETURN(const auto value, metadata.Get(kNextSnapshotKey));
  if (!value) return uint64_t{1};
  Decoder in(AsBytes(*value));
  const uint64_t number = in.U64();
  if (!in.Done() || number == 0) return Malformed();
  return number;
}

std::string EncodeNextSnapshot(uint64_t number) { return Encoder().U64(number).Take(); }

}  // namespace siltfs
