#include "index/silt/hash_store.h"

namespace siltfs {
namespace {

// The slots of a log in the order of its table: -1 for a place that is free.
constexpr uint32_t kFree = UINT32_MAX;

std::vector<uint32_t> SlotsInTableOrder(const CuckooTable& table) {
  std::vector<uint32_t> slots(table.capacity(), kFree);
  table.ForEachPlace([&](size_t place, uint16_t, uint32_t slot) { slots[place] = slot; });
  table.ForEachStashed([&](const CuckooPlace&, uint32_t slot) { slots.push_back(slot); });
  return slots;
}

}  // namespace

Result<HashStore::Written> HashStore::WriteFrom(const LogStore& log, Env& env,
                                                const std::string& directory, const StoreFileId& id,
                                                Throttle& throttle) {
  SILTFS_ASSIGN_OR_RETURN(const LogStore::Contents contents, log.ReadAll());
  SILTFS_ASSIGN_OR_RETURN(auto writer, FrozenFileWriter::Create(env, directory, id, throttle));
  FrozenFileInfo info;
  info.bucket_bits = log.bucket_bits();
  for (const uint32_t slot : SlotsInTableOrder(log.table())) {
    // What a damaged page held is left empty: the filter's tag then leads to a slot of zeros.
    const auto entry = slot == kFree ? std::nullopt : contents.Entry(slot);
    SILTFS_RETURN_IF_ERROR(entry ? writer->Append(*entry) : writer->AppendEmpty());
    if (!entry) continue;
    ++info.entries;
    if (IsTombstone(*entry)) ++info.tombstones;
  }
  const std::string filter = CuckooFilter(log.table()).Encode();
  SILTFS_RETURN_IF_ERROR(writer->Finish(info, AsBytes(filter)));
  return Written{.file = std::move(writer), .damaged_pages = contents.damaged_pages};
}

Result<std::shared_ptr<const HashStore>> HashStore::Open(Env& env, const std::string& directory,
                                                         const StoreFileId& id) {
  SILTFS_ASSIGN_OR_RETURN(auto file, FrozenFile::Open(env, directory, id));
  SILTFS_ASSIGN_OR_RETURN(const Bytes payload, file->ReadPayload(file->MostPayloadBytes()));
  auto filter = CuckooFilter::Decode(file->info().bucket_bits, payload);
  if (!filter.ok()) return std::move(filter).status().At(file->file().path());
  if (file->info().pages != (filter->slots() + kSlotsPerPage - 1) / kSlotsPerPage) {
    return Status(StatusCode::kCorruption, "has a filter for another number of slots")
        .At(file->file().path());
  }
  return std::shared_ptr<const HashStore>(new HashStore(std::move(file), std::move(*filter)));
}

IndexComponentStats HashStore::Stats() const {
  IndexComponentStats stats = counters_.Stats(file_id());
  stats.entries = entries() - file_->info().tombstones;
  stats.flash_bytes = file_->size();
  stats.flash_bytes_written = file_->size();
  stats.memory_bytes = filter_.memory_bytes();
  stats.occupancy = static_cast<double>(entries()) / static_cast<double>(filter_.places());
  return stats;
}

}  // namespace siltfs
