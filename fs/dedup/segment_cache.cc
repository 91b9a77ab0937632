#include "fs/dedup/segment_cache.h"

namespace siltfs {

SegmentCache::SegmentCache(Env& env, std::string store, StoreUuid uuid, const BlockCodec& codec,
                           const SegmentLog* log, size_t open_files)
    : env_(env),
      store_(std::move(store)),
      uuid_(uuid),
      codec_(codec),
      log_(log),
      readers_(open_files) {}

Result<std::shared_ptr<SegmentReader>> SegmentCache::Open(SegmentId segment) {
  if (auto reader = readers_.Get(segment)) return reader;
  SILTFS_ASSIGN_OR_RETURN(auto opened, SegmentReader::Open(env_, store_, {uuid_, segment}, codec_));
  std::shared_ptr<SegmentReader> reader = std::move(opened);
  readers_.Put(segment, reader, 1);
  return reader;
}

Result<std::vector<FooterChunk>> SegmentCache::Window(SegmentId segment, uint32_t first_ordinal,
                                                      uint32_t count) {
  if (log_ != nullptr) {
    if (auto writer = log_->WriterOf(segment)) return writer->Window(first_ordinal, count);
  }
  SILTFS_ASSIGN_OR_RETURN(auto reader, Open(segment));
  return reader->ReadFooterWindow(first_ordinal, count);
}

Result<std::shared_ptr<const BlockTable>> SegmentCache::TableOf(SegmentId segment) {
  if (auto table = tables_.Get(segment)) return table;
  SILTFS_ASSIGN_OR_RETURN(auto reader, Open(segment));
  SILTFS_ASSIGN_OR_RETURN(BlockTable read, reader->ReadBlockTable());
  auto table = std::make_shared<const BlockTable>(std::move(read));
  tables_.Put(segment, table, table->memory_bytes());
  return table;
}

Result<std::optional<BlockTable::Found>> SegmentCache::FindBlock(SegmentId segment,
                                                                 uint32_t ordinal) {
  if (log_ != nullptr) {
    if (auto writer = log_->WriterOf(segment)) {
      const auto place = writer->FindBlock(ordinal);
      if (!place) return std::optional<BlockTable::Found>();
      return std::optional(BlockTable::Found{*place, place->first_ordinal, 0});
    }
  }
  SILTFS_ASSIGN_OR_RETURN(auto table, TableOf(segment));
  return table->Find(ordinal);
}

}  // namespace siltfs
