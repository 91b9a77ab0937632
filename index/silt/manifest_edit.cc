#include "index/silt/manifest_edit.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/base/coding.h"

namespace siltfs {
namespace {

Status Damaged(std::string cause) { return {StatusCode::kCorruption, std::move(cause)}; }

// Whether the edit of a partition leads to a valid record.
Status Check(const PartitionEdit& edit, const ManifestEdit& whole, const StoreManifest& manifest) {
  if (edit.partition >= manifest.partitions.size()) {
    return Damaged(
        fmt::format("changes partition {} of {}", edit.partition, manifest.partitions.size()));
  }
  const std::vector<uint64_t>& present = manifest.partitions[edit.partition].hash_ids;
  if (edit.merged > present.size()) {
    return Damaged(fmt::format("removes {} of {} HashStores", edit.merged, present.size()));
  }
  uint64_t last = edit.merged < present.size() ? present.back() : 0;
  for (const uint64_t id : edit.new_hash_ids) {
    if (id <= last || id >= whole.next_id) {
      return Damaged(fmt::format("lists store {} out of order", id));
    }
    last = id;
  }
  if (edit.sorted_id >= whole.next_id || edit.first_log_id > whole.next_id) {
    return Damaged("lists a store that was never made");
  }
  return Status::Ok();
}

}  // namespace

ManifestEdit EditOf(const StoreManifest& manifest) {
  return {.complete_sequence = manifest.complete_sequence,
          .next_id = manifest.next_id,
          .entries_lost = manifest.entries_lost,
          .partitions = {}};
}

PartitionEdit& ChangeOf(uint32_t partition, const StoreManifest& manifest, ManifestEdit& edit) {
  const auto at =
      std::ranges::lower_bound(edit.partitions, partition, {}, &PartitionEdit::partition);
  if (at != edit.partitions.end() && at->partition == partition) return *at;
  const PartitionRecord& record = manifest.partitions[partition];
  return *edit.partitions.insert(at, {.partition = partition,
                                      .first_log_id = record.first_log_id,
                                      .first_page = record.first_page,
                                      .durable_page = record.durable_page,
                                      .complete_sequence = record.complete_sequence,
                                      .sorted_id = record.sorted_id,
                                      .merged = 0,
                                      .new_hash_ids = {}});
}

Status CheckEdit(const ManifestEdit& edit, const StoreManifest& manifest) {
  if (edit.next_id < manifest.next_id) return Damaged("lowers the next id");
  for (const PartitionEdit& change : edit.partitions) {
    SILTFS_RETURN_IF_ERROR(Check(change, edit, manifest));
  }
  return Status::Ok();
}

void Apply(const ManifestEdit& edit, StoreManifest& manifest) {
  manifest.complete_sequence = edit.complete_sequence;
  manifest.next_id = edit.next_id;
  manifest.entries_lost = edit.entries_lost;
  for (const PartitionEdit& change : edit.partitions) {
    PartitionRecord& record = manifest.partitions[change.partition];
    record.first_log_id = change.first_log_id;
    record.first_page = change.first_page;
    record.durable_page = change.durable_page;
    record.complete_sequence = change.complete_sequence;
    record.sorted_id = change.sorted_id;
    record.hash_ids.erase(record.hash_ids.begin(), record.hash_ids.begin() + change.merged);
    record.hash_ids.insert(record.hash_ids.end(), change.new_hash_ids.begin(),
                           change.new_hash_ids.end());
  }
}

std::string EncodeManifestEdit(const ManifestEdit& edit) {
  Encoder out;
  out.U64(edit.complete_sequence).U64(edit.next_id).U32(edit.entries_lost ? 1 : 0);
  out.U32(static_cast<uint32_t>(edit.partitions.size()));
  for (const PartitionEdit& change : edit.partitions) {
    out.U32(change.partition).U32(change.first_page).U32(change.durable_page).U32(change.merged);
    out.U64(change.first_log_id).U64(change.complete_sequence).U64(change.sorted_id);
    out.U32(static_cast<uint32_t>(change.new_hash_ids.size())).U32(0);
    for (const uint64_t id : change.new_hash_ids) out.U64(id);
  }
  return out.Take();
}

Result<ManifestEdit> DecodeManifestEdit(ByteView bytes) {
  Decoder in(bytes);
  ManifestEdit edit;
  edit.complete_sequence = in.U64();
  edit.next_id = in.U64();
  const uint32_t lost = in.U32();
  edit.entries_lost = lost == 1;
  const uint32_t count = in.U32();
  if (!in.ok() || lost > 1) return Damaged("has a wrong header");
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    PartitionEdit change;
    change.partition = in.U32();
    change.first_page = in.U32();
    change.durable_page = in.U32();
    change.merged = in.U32();
    change.first_log_id = in.U64();
    change.complete_sequence = in.U64();
    change.sorted_id = in.U64();
    const uint32_t added = in.U32();
    const uint32_t reserved = in.U32();
    if (!in.ok() || added > in.remaining() / 8) return Damaged("ends within a partition");
    if (reserved != 0) return Damaged("has a wrong partition");
    if (i > 0 && change.partition <= edit.partitions.back().partition) {
      return Damaged("changes partitions out of order");
    }
    for (uint32_t k = 0; k < added; ++k) change.new_hash_ids.push_back(in.U64());
    edit.partitions.push_back(std::move(change));
  }
  if (!in.Done()) return Damaged("has a wrong length");
  return edit;
}

}  // namespace siltfs
