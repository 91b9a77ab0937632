#include "index/key_value/segregated_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/env/files.h"

namespace siltfs {
namespace {

void Add(KeyValueStats& sum, const KeyValueStats& stats) {
  sum.index.entries += stats.index.entries;
  sum.index.memory_bytes += stats.index.memory_bytes;
  sum.index.flash_bytes += stats.index.flash_bytes;
  sum.index.lookups += stats.index.lookups;
  sum.index.flash_reads += stats.index.flash_reads;
  sum.index.flash_pages_read += stats.index.flash_pages_read;
  sum.index.put_flash_reads += stats.index.put_flash_reads;
  sum.index.entry_bytes_put += stats.index.entry_bytes_put;
  sum.index.flash_bytes_written += stats.index.flash_bytes_written;
  sum.index.damaged_pages += stats.index.damaged_pages;
  sum.index.damaged_filters += stats.index.damaged_filters;
  sum.index.conversions += stats.index.conversions;
  sum.index.merges += stats.index.merges;
  sum.index.merge_backlog += stats.index.merge_backlog;
  sum.index.load_backlog += stats.index.load_backlog;
  sum.values.records += stats.values.records;
  sum.values.flash_bytes += stats.values.flash_bytes;
  sum.values.bytes_appended += stats.values.bytes_appended;
  sum.values.bytes_written += stats.values.bytes_written;
  sum.values.block_reads += stats.values.block_reads;
  sum.values.damaged += stats.values.damaged;
  sum.flash_reads += stats.flash_reads;
  sum.flash_bytes += stats.flash_bytes;
}

std::string DirectoryOf(size_t slot_size) { return fmt::format("{:04}", slot_size); }

// An InstanceId is an index into slot_sizes, so inserting or removing a size would change the
// meaning of the ids that callers keep. Instances with larger slots than all existing ones may be
// missing: they are new, or their creation was interrupted.
Status CheckSameInstances(Env& env, const SegregatedOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const auto entries, env.ListDirectory(options.directory));
  std::vector<std::string> there;
  for (const auto& entry : entries) there.push_back(entry.name);
  std::sort(there.begin(), there.end());
  bool same = there.size() <= options.slot_sizes.size();
  for (size_t i = 0; same && i < there.size(); ++i) {
    same = there[i] == DirectoryOf(options.slot_sizes[i]);
  }
  if (same) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, "has instances with other slot sizes")
      .At(options.directory);
}

}  // namespace

Result<std::unique_ptr<SegregatedStore>> SegregatedStore::Open(Env& env,
                                                               const SegregatedOptions& options) {
  const std::vector<size_t>& sizes = options.slot_sizes;
  if (sizes.empty() || sizes.size() > UINT8_MAX ||
      std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()) != sizes.end()) {
    return Status(StatusCode::kInvalidArgument, "slot sizes must rise from instance to instance");
  }
  for (const size_t size : sizes) SILTFS_RETURN_IF_ERROR(KeyValueStore::CheckSlotSize(size));
  SILTFS_RETURN_IF_ERROR(CheckSameInstances(env, options));
  std::vector<std::unique_ptr<KeyValueStore>> instances;
  for (const size_t size : sizes) {
    KeyValueOptions instance{.directory = JoinPath(options.directory, DirectoryOf(size)),
                             .read_only = options.read_only,
                             .slot_size = size,
                             .index = options.index,
                             .values = options.values};
    if (!options.read_only) {
      SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(env, options.directory, instance.directory));
    }
    SILTFS_ASSIGN_OR_RETURN(auto store, KeyValueStore::Open(env, instance));
    if (store->slot_size() != size) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("has slots of {} bytes", store->slot_size()))
          .At(instance.directory);
    }
    instances.push_back(std::move(store));
  }
  return std::unique_ptr<SegregatedStore>(new SegregatedStore(std::move(instances)));
}

SegregatedStore::InstanceId SegregatedStore::InstanceFor(size_t key_size, size_t value_size) const {
  for (size_t i = 0; i < instances_.size(); ++i) {
    if (instances_[i]->IsInlined(key_size, value_size)) return static_cast<InstanceId>(i);
  }
  return 0;
}

Result<KeyValueStore*> SegregatedStore::Instance(InstanceId id) {
  if (id < instances_.size()) return instances_[id].get();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("there is no instance {}; the store has {}", id, instances_.size()));
}

Result<SegregatedStore::InstanceId> SegregatedStore::Put(ByteView key, ByteView value) {
  const InstanceId id = InstanceFor(key.size(), value.size());
  SILTFS_RETURN_IF_ERROR(instances_[id]->Put(key, value));
  return id;
}

Result<std::optional<Bytes>> SegregatedStore::Get(InstanceId instance, ByteView key) {
  SILTFS_ASSIGN_OR_RETURN(KeyValueStore* const store, Instance(instance));
  return store->Get(key);
}

Status SegregatedStore::Delete(InstanceId instance, ByteView key) {
  SILTFS_ASSIGN_OR_RETURN(KeyValueStore* const store, Instance(instance));
  return store->Delete(key);
}

Status SegregatedStore::Flush() {
  for (const auto& store : instances_) SILTFS_RETURN_IF_ERROR(store->Flush());
  return Status::Ok();
}

Result<ReclaimResult> SegregatedStore::Reclaim(const ReclaimOptions& options) {
  ReclaimResult sum;
  for (const auto& store : instances_) {
    SILTFS_ASSIGN_OR_RETURN(const ReclaimResult result, store->Reclaim(options));
    sum.segments_removed += result.segments_removed;
    sum.bytes_removed += result.bytes_removed;
    sum.records_moved += result.records_moved;
    sum.segments_damaged += result.segments_damaged;
  }
  return sum;
}

// Closes all instances, even if one fails.
Status SegregatedStore::Close() {
  Status status;
  for (const auto& store : instances_) {
    Status closed = store->Close();
    if (status.ok()) {
      status = std::move(closed);
    } else {
      closed.IgnoreError("the first error is returned");
    }
  }
  return status;
}

KeyValueStats SegregatedStore::stats() const {
  KeyValueStats sum;
  for (const auto& store : instances_) Add(sum, store->stats());
  return sum;
}

}  // namespace siltfs
