#include "fs/chunks/chunk_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "fs/chunks/deduplicator.h"
#include "fs/chunks/readahead.h"
#include "fs/records/schema.h"
#include "fs/segments/segment_bases.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr size_t kNodeCacheBytes = 1u << 20;
// The heap is trimmed (HeapTrimmer) each time this many bytes were put. Until then, about as many
// freed bytes may stay in the heap.
constexpr uint64_t kBytesPerTrim = 4u << 20;
// 1/kReadaheadShare of the block cache may have blocks that are ahead of sequential readers.
constexpr size_t kReadaheadShare = 2;

std::unique_ptr<Deduplicator> MakeDeduplicator(ChunkParts& parts) {
  const Superblock& superblock = parts.options.superblock;
  Deduplicator::Options options;
  options.store = parts.options.store;
  options.uuid = superblock.uuid;
  options.tag_secret = superblock.tag_secret;
  options.sha1_collisions = parts.options.sha1_collisions;
  return std::make_unique<Deduplicator>(
      Deduplicator::Dependencies{parts.index, *parts.pipeline, *parts.gone, parts.windows,
                                 *parts.reader, parts.victims, parts.damage, parts.secondary,
                                 parts.bases, parts.traffic},
      std::move(options));
}

Readahead::Options ReadaheadOptions(const ChunkStoreOptions& options) {
  Readahead::Options readahead;
  readahead.threads = options.readahead_threads;
  readahead.total_bytes = options.block_cache_bytes / kReadaheadShare;
  readahead.stream_bytes = readahead.total_bytes / 3 * 2;
  // The last chunk of a block may extend beyond the block's nominal size.
  const size_t block_bytes = options.superblock.block_plain_bytes;
  readahead.block_bytes = block_bytes + block_bytes / 4;
  return readahead;
}

}  // namespace

ChunkStore::ChunkStore(ChunkParts& parts) : parts_(parts), nodes_(kNodeCacheBytes) {
  if (parts_.pipeline) deduplicator_ = MakeDeduplicator(parts_);
  readahead_ = std::make_unique<Readahead>(*this, *parts_.reader, ReadaheadOptions(parts_.options));
}

// Readahead reads nodes from this store, so it is destroyed first.
ChunkStore::~ChunkStore() { readahead_.reset(); }

Status ChunkStore::CheckLengths(SegmentKind kind, std::span<const ByteView> chunks) const {
  const size_t longest =
      kind == SegmentKind::kRecipeNodes ? kMaxNodeBytes : parts_.options.superblock.chunk_max;
  for (ByteView chunk : chunks) {
    if (!chunk.empty() && chunk.size() <= longest) continue;
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("a chunk of {} bytes is not between 1 and {}", chunk.size(), longest))
        .At(parts_.options.store);
  }
  return Status::Ok();
}

void ChunkStore::TrimHeap(uint64_t bytes_put) {
  if (bytes_since_trim_.fetch_add(bytes_put) + bytes_put < kBytesPerTrim) return;
  bytes_since_trim_ = 0;
  heap_trimmer_.Trim();
}

Status ChunkStore::Put(SegmentKind kind, std::span<const ByteView> chunks,
                       std::span<ChunkName> names) {
  SILTFS_RETURN_IF_ERROR(parts_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(CheckLengths(kind, chunks));
  SILTFS_RETURN_IF_ERROR(WaitUntilIndexed());
  uint64_t total = 0;
  for (ByteView chunk : chunks) total += chunk.size();
  if (parts_.options.reserve != nullptr)
    SILTFS_RETURN_IF_ERROR(parts_.options.reserve->CheckRoom(total));
  TrimHeap(total);

  return deduplicator_->Put(kind, chunks, names);
}

Status ChunkStore::Put(std::span<const ByteView> chunks, std::span<ChunkName> names) {
  NoteUse();
  return Put(SegmentKind::kData, chunks, names);
}

Result<ChunkBytes> ChunkStore::Get(const ChunkName& name, uint32_t length) {
  ReadCursor read_cursor;
  return Get(name, length, read_cursor);
}

Result<ChunkBytes> ChunkStore::Get(const ChunkName& name, uint32_t length,
                                   ReadCursor& read_cursor) {
  if (auto found = parts_.reader->Follow(name, length, read_cursor)) {
    return ChunkBytes{std::move(found->owner), found->bytes};
  }
  if (parts_.pipeline) {
    if (auto pending = parts_.pipeline->GetPending(name)) {
      if (pending->bytes.size() == length) return ChunkBytes{pending->owner, pending->bytes};
    }
  }
  SILTFS_ASSIGN_OR_RETURN(ChunkReader::Found found, parts_.reader->Get(name, length, read_cursor));
  return ChunkBytes{std::move(found.owner), found.bytes};
}

Result<ChunkBytes> ChunkStore::GetAt(const Location& place, const ChunkName& name, uint32_t length,
                                     ReadCursor& read_cursor) {
  if (auto found = parts_.reader->FindAt(place, name, length, read_cursor)) {
    return ChunkBytes{std::move(found->owner), found->bytes};
  }
  return Get(name, length, read_cursor);
}

void ChunkStore::Locate(std::span<const ChunkName> names, ChunkReader::Place& last,
                        std::span<std::optional<ChunkReader::Place>> places) {
  parts_.reader->Locate(names, last, places);
}

Result<EncodedBlock> ChunkStore::ReadStored(const ChunkReader::Place& place) {
  SILTFS_ASSIGN_OR_RETURN(const OpenSegmentPtr segment, parts_.segments->Open(place.segment));
  if (place.file == SegmentFile::kUnknown || segment->file != place.file)
    return Status(StatusCode::kNotFound, "the block's place is not known");
  return segment->reader->ReadEncodedBlock(place.block_offset);
}

std::vector<bool> ChunkStore::Have(std::span<const ChunkName> names,
                                   std::span<const uint32_t> lengths) {
  std::vector<bool> have(names.size());
  std::vector<std::optional<ChunkReader::Place>> places(names.size());
  ChunkReader::Place last;
  Locate(names, last, places);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!places[i] || parts_.victims.Contains(places[i]->segment)) continue;
    const auto record =
        parts_.reader->RecordAt({places[i]->segment, places[i]->ordinal, places[i]->block_offset});
    have[i] = record.ok() && *record && (*record)->name == names[i] &&
              (*record)->length == lengths[i] &&
              !parts_.damage.Contains(places[i]->segment, places[i]->ordinal);
  }
  return have;
}

Status ChunkStore::Require(std::span<const ChunkName> names, std::span<const uint32_t> lengths,
                           SegmentKind kind) {
  const std::vector<bool> have = Have(names, lengths);
  for (size_t i = 0; i < names.size(); ++i) {
    if (have[i]) continue;
    const auto got = Get(names[i], lengths[i]);
    if (!got.ok() && !got.status().Is(StatusCode::kCorruption)) return got.status();
    if (!got.ok() || got->bytes.size() != lengths[i]) {
      return {StatusCode::kNotFound,
              fmt::format("the store does not have the chunk {}", names[i].ToHex())};
    }
    ChunkName name;
    SILTFS_RETURN_IF_ERROR(Put(kind, {&got->bytes, 1}, {&name, 1}));
    if (name != names[i])
      return {StatusCode::kNotFound, fmt::format("another chunk has the name {}", name.ToHex())};
  }
  return Status::Ok();
}

void ChunkStore::NoteRead(uint64_t file, const Recipe& recipe, uint64_t limit, uint64_t offset,
                          uint64_t length) {
  if (readahead_) readahead_->Note(file, recipe, limit, offset, length);
}

void ChunkStore::ForgetReads(uint64_t file) {
  if (readahead_) readahead_->Forget(file);
}

ChunkStore::ReadStats ChunkStore::read_stats() const {
  return {parts_.reader->blocks_decoded(), parts_.reader->block_hits(), readahead_->blocks_ahead(),
          parts_.reader->segments_searched()};
}

void ChunkStore::WaitForReadahead() { readahead_->WaitUntilIdle(); }

Result<ChunkName> ChunkStore::PutNode(ByteView node) {
  ChunkName name;
  SILTFS_RETURN_IF_ERROR(Put(SegmentKind::kRecipeNodes, {&node, 1}, {&name, 1}));
  return name;
}

Result<std::shared_ptr<const Bytes>> ChunkStore::GetNode(const ChunkName& name,
                                                         uint32_t node_bytes) {
  if (auto node = nodes_.Get(name); node && node->size() == node_bytes) return node;
  SILTFS_ASSIGN_OR_RETURN(ChunkBytes chunk, Get(name, node_bytes));
  auto node = std::make_shared<const Bytes>(chunk.bytes.begin(), chunk.bytes.end());
  nodes_.Put(name, node, node->size() + sizeof(Bytes));
  return node;
}

Status ChunkStore::PrepareCommit(uint64_t, std::vector<Mutation>& extra) {
  SILTFS_RETURN_IF_ERROR(parts_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(parts_.pipeline->Flush());
  std::vector<std::pair<SegmentId, SegmentRecord>> changed;
  SILTFS_RETURN_IF_ERROR(parts_.log->SyncAll(changed));
  for (const auto& [id, record] : changed) extra.push_back({SegmentKey(id), record.Encode()});
  parts_.damage.TellChanges(extra);
  extra.push_back(
      {std::string(kCollisionsKey), Encoder().U64(deduplicator_->sha1_collisions()).Take()});
  extra.push_back({std::string(kGarbageKey), parts_.account.known().Encode()});
  return Status::Ok();
}

void ChunkStore::CommitDone(uint64_t number) {
  parts_.damage.CommitDone();
  parts_.log->CommitDone(number);
}

ChunkStoreTotals ChunkStore::totals() const {
  ChunkStoreTotals totals = parts_.base;
  totals.sha1_collisions =
      deduplicator_ ? deduplicator_->sha1_collisions() : parts_.options.sha1_collisions;
  totals.added_bytes = deduplicator_ ? deduplicator_->added_bytes() : 0;
  const DamageList::Totals damaged = parts_.damage.totals();
  totals.damaged_blocks = damaged.blocks;
  totals.damaged_chunks = damaged.chunks;
  totals.found_damaged_blocks = parts_.options.found_damaged_blocks + damaged.found_blocks;
  if (parts_.log) {
    SegmentLog::Growth growth = parts_.log->growth();
    const SpaceAccount::Totals changes = parts_.account.totals();
    totals.stored_bytes += growth.stored_bytes - changes.saved_bytes - changes.removed_bytes;
    if (parts_.options.superblock.compression.codec != BlockCodecId::kNone) {
      totals.awaiting_recompression_bytes += growth.not_recompressed_bytes -
                                             changes.recompressed_bytes -
                                             changes.removed_not_recompressed_bytes;
    }
    totals.chunks += growth.chunks - changes.removed_chunks;
    totals.plain_bytes += growth.plain_bytes - changes.removed_plain_bytes;
  }
  // After a crash the counted dead chunks may include chunks of segments that are gone, so the
  // counts may be too high.
  const GarbageRecord known = parts_.account.known();
  totals.dead_bytes = std::min(known.dead_bytes, totals.stored_bytes);
  totals.chunks -= std::min(known.dead_chunks, totals.chunks);
  totals.plain_bytes -= std::min(known.dead_plain_bytes, totals.plain_bytes);
  return totals;
}

Status ChunkStore::ForEachBase(const std::function<Status(const BaseRef&)>& visit) {
  for (const SegmentId segment : parts_.bases.All())
    SILTFS_RETURN_IF_ERROR(siltfs::ForEachBase(*parts_.segments, segment, visit));
  return Status::Ok();
}

void ChunkStore::WaitUntilSealed() {
  if (!parts_.log) return;
  parts_.pipeline->Flush().IgnoreError("the next commit fails with it, too");
  parts_.log->WaitUntilSealed();
}

Status ChunkStore::failure() const { return parts_.log ? parts_.log->failure() : Status::Ok(); }

Status ChunkStore::Finish(std::vector<Mutation>& extra) {
  readahead_.reset();
  SILTFS_RETURN_IF_ERROR(parts_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(parts_.pipeline->Flush());
  parts_.pipeline.reset();
  parts_.log->StopSealing();
  SILTFS_RETURN_IF_ERROR(parts_.log->RemoveEmpty());
  std::vector<std::pair<SegmentId, SegmentRecord>> changed;
  SILTFS_RETURN_IF_ERROR(parts_.log->SyncAll(changed));
  for (const auto& [id, record] : changed) extra.push_back({SegmentKey(id), record.Encode()});
  extra.push_back({std::string(kGarbageKey), parts_.account.known().Encode()});
  parts_.damage.TellChanges(extra);
  return Status::Ok();
}

}  // namespace siltfs
