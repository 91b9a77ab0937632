#include "fs/dedup/chunk_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "chunker/chunk_namer.h"
#include "fs/dedup/block_pipeline.h"
#include "fs/dedup/chunk_reader.h"
#include "fs/dedup/chunk_verifier.h"
#include "fs/dedup/deduplicator.h"
#include "fs/dedup/entry_check.h"
#include "fs/dedup/footer_cache.h"
#include "fs/dedup/gone_segments.h"
#include "fs/dedup/readahead.h"
#include "fs/dedup/scrubber.h"
#include "fs/dedup/secondary_copies.h"
#include "fs/dedup/segment_cache.h"
#include "fs/dedup/segment_log.h"
#include "fs/dedup/segment_recovery.h"
#include "fs/meta/schema.h"
#include "store/base/coding.h"
#include "store/env/heap_trimmer.h"

namespace siltfs {
namespace {

// At most this many chunks are compared with the index before a mount answers; this takes some
// seconds.
constexpr uint64_t kMostComparedAtOpen = 1u << 20;

constexpr size_t kOpenSegmentFiles = 256;
constexpr size_t kNodeCacheBytes = 1u << 20;
// The index is flushed after this many segments were sealed. A mount after a crash has to replay at
// most these.
constexpr uint32_t kSegmentsPerIndexFlush = 4;
// After this many bytes were put, the heap's free space is checked. Until then, freed buffers of
// this size may stay in the heap.
constexpr uint64_t kBytesPerTrim = 4u << 20;
// One part in this many of the block cache may be filled ahead of sequential readers.
constexpr size_t kReadaheadShare = 2;
// The highest level for new chunks: Put waits for their compression, but recompression has time.
constexpr int kIngestLevel = 3;
// Recompression needs free space for this many segments beside the reserve: for a new file, and for
// chunks put meanwhile.
constexpr uint64_t kSegmentsFreeToRecompress = 2;
// Recipe nodes are smaller (recipe_node.h: 512 entries of 24 bytes, or 256 of 48).
constexpr size_t kMaxNodeBytes = 16u << 10;

Compression IngestCompression(Compression recompressed) {
  recompressed.level = std::min(recompressed.level, kIngestLevel);
  return recompressed;
}

std::shared_ptr<const SegmentSet> SetOf(
    const std::vector<std::pair<SegmentId, SegmentRecord>>& records) {
  std::vector<SegmentId> ids;
  for (const auto& [id, record] : records) ids.push_back(id);
  return std::make_shared<const SegmentSet>(std::move(ids));
}

}  // namespace

struct ChunkStore::Parts {
  Parts(Env& env_in, ChunkIndex& index_in, ChunkStoreOptions options_in)
      : env(env_in),
        index(index_in),
        options(std::move(options_in)),
        damage(options.damage),
        secondary(options.secondary, options.write_through),
        windows(options.footer_cache_bytes),
        nodes(kNodeCacheBytes) {}

  void OpenLog();
  void OpenDeduplicator();
  void OpenRecompressor();
  void OpenCollector(NodeStore& nodes_in);
  void OpenScrubber();
  // Drops the damage of removed segments. Such entries remain if an older version removed the
  // segment, or if a mount ended before it could record this.
  void ForgetDamageOfGone(const std::vector<std::pair<SegmentId, SegmentRecord>>& records);
  // Called when damage is found: from now on no new chunk is a duplicate of a chunk in a damaged
  // block, even of one put a moment ago.
  void ForgetWhatWasPut() {
    if (pipeline) pipeline->ForgetAppended();
  }
  bool IsRight(const ChunkRecord& record, ByteView bytes);
  // Makes entries for chunks of these segments for which the index leads nowhere. Returns the
  // damaged segments, and the segments with chunks to which the index does not lead. The entries
  // are durable on return.
  Result<std::vector<SegmentId>> CompareWithIndex(const std::vector<SegmentId>& ids);
  Result<SegmentRecord> ResumeOrSeal(SegmentId id, const SegmentRecord& record);
  Status CheckWritable() const;
  Status CheckLengths(SegmentKind kind, std::span<const ByteView> chunks) const;
  void TrimHeap(uint64_t bytes_put);
  Status Put(SegmentKind kind, std::span<const ByteView> chunks, std::span<ChunkName> names);

  Env& env;
  ChunkIndex& index;
  const ChunkStoreOptions options;
  const BlockCodec codec;
  DamageList damage;
  SecondaryCopies secondary;
  FooterCache windows;
  LruCache<ChunkName, const Bytes> nodes;
  std::unique_ptr<SegmentLog> log;  // null when read-only, as is the pipeline
  std::unique_ptr<SegmentCache> segments;
  std::unique_ptr<const GoneSegments> gone;
  std::unique_ptr<ChunkReader> reader;
  std::unique_ptr<BlockPipeline> pipeline;
  std::unique_ptr<Deduplicator> deduplicator;  // null when read-only
  std::unique_ptr<Readahead> readahead;
  std::unique_ptr<Recompressor> recompressor;  // null when read-only
  SegmentSet victims;
  EpochGate uses;
  std::unique_ptr<GarbageCollector> collector;  // null when read-only
  std::unique_ptr<Scrubber> scrubber;           // null when read-only
  ChunkStoreTotals base;  // of the segments as they were when the store was opened
  std::atomic<uint64_t> bytes_since_trim{0};
  std::atomic<uint32_t> sealed_since_flush{0};
  HeapTrimmer heap_trimmer;
};

ChunkStore::ChunkStore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

// Destroys users before the parts that they use. Readahead and scrubber read from the others, and
// the collector uses all others. The recompressor fails the log, the pipeline feeds the log, and
// the log's thread calls the index.
ChunkStore::~ChunkStore() {
  parts_->readahead.reset();
  parts_->scrubber.reset();
  parts_->collector.reset();
  parts_->recompressor.reset();
  parts_->deduplicator.reset();
  parts_->pipeline.reset();
  parts_->reader.reset();
  parts_->segments.reset();
  parts_->log.reset();
}

Result<std::unique_ptr<ChunkStore>> ChunkStore::Open(
    Env& env, ChunkIndex& index, ChunkStoreOptions options,
    const std::vector<std::pair<SegmentId, SegmentRecord>>& records,
    std::vector<IndexEntry> unindexed) {
  auto parts = std::make_unique<Parts>(env, index, std::move(options));
  Parts& p = *parts;
  const Superblock& superblock = p.options.superblock;
  if (!p.options.read_only) p.OpenLog();
  const bool recompresses = superblock.compression.codec != BlockCodecId::kNone;
  std::vector<std::pair<SegmentId, SegmentRecord>> to_recompress;
  std::vector<SegmentId> recompressed;
  for (auto [id, record] : records) {
    if (record.recompressed) {
      recompressed.push_back(id);
    } else if (record.sealed) {  // a segment sealed below is added when its record is committed
      to_recompress.emplace_back(id, record);
    }
    if (p.log && !record.sealed && record.chunks > 0) {
      SILTFS_ASSIGN_OR_RETURN(record, p.ResumeOrSeal(id, record));
    }
    p.base.stored_bytes += record.length;
    if (record.kind != static_cast<uint8_t>(SegmentKind::kData)) continue;
    if (recompresses && !record.recompressed) p.base.awaiting_recompression_bytes += record.length;
    p.base.chunks += record.chunks;
    p.base.plain_bytes += record.plain_bytes;
  }
  p.segments =
      std::make_unique<SegmentCache>(env, p.options.store, superblock.uuid, p.codec, p.log.get(),
                                     kOpenSegmentFiles, std::move(recompressed));
  p.gone = std::make_unique<const GoneSegments>(p.segments->removed(), SetOf(records),
                                                p.options.first_segment);
  ChunkReader::Options reader_options{
      p.options.store, p.options.block_cache_bytes, std::move(unindexed),
      [&p] { p.ForgetWhatWasPut(); },
      [&p](const ChunkRecord& record, ByteView bytes) { return p.IsRight(record, bytes); }};
  p.reader = std::make_unique<ChunkReader>(env, *p.segments, index, p.windows, p.damage,
                                           std::move(reader_options));
  if (p.log) {
    BlockPipeline::Options pipeline_options;
    pipeline_options.worker_threads = p.options.worker_threads;
    pipeline_options.capacity_bytes = p.options.pipeline_bytes;
    pipeline_options.block_plain_bytes = superblock.block_plain_bytes;
    pipeline_options.idle_block_plain_bytes = p.options.idle_block_plain_bytes;
    pipeline_options.chunk_max = std::max<size_t>(superblock.chunk_max, kMaxNodeBytes);
    pipeline_options.compression = IngestCompression(superblock.compression);
    p.pipeline = std::make_unique<BlockPipeline>(*p.log, index, p.codec, pipeline_options);
    p.OpenDeduplicator();
    p.OpenRecompressor();
    for (const auto& [id, record] : to_recompress) p.recompressor->Add(id, record);
  }
  Readahead::Options readahead_options;
  readahead_options.threads = p.options.readahead_threads;
  readahead_options.total_bytes = p.options.block_cache_bytes / kReadaheadShare;
  readahead_options.stream_bytes = readahead_options.total_bytes / 3 * 2;
  // The last chunk of a block may extend beyond the block's size.
  readahead_options.block_bytes = superblock.block_plain_bytes + superblock.block_plain_bytes / 4;
  ChunkReader& chunk_reader = *p.reader;
  std::unique_ptr<ChunkStore> store(new ChunkStore(std::move(parts)));
  store->parts_->readahead = std::make_unique<Readahead>(*store, chunk_reader, readahead_options);
  if (store->parts_->log) {
    store->parts_->ForgetDamageOfGone(records);
    store->parts_->OpenCollector(*store);
    store->parts_->OpenScrubber();
    // The index drops entries that lead into removed segments.
    index.SetGone([gone = *store->parts_->gone](SegmentId id) { return gone.Contains(id); });
  }
  return store;
}

void ChunkStore::Parts::OpenLog() {
  SegmentLog::Options log_options;
  log_options.store = options.store;
  log_options.uuid = options.superblock.uuid;
  log_options.segment_bytes = options.superblock.segment_bytes;
  log_options.first_segment = options.first_segment;
  log_options.segment_limit = options.segment_limit;
  log_options.claim_segments = options.claim_segments;
  log_options.first_sequence = options.first_sequence;
  log_options.last_commit = options.last_commit;
  log_options.before_moved = [this](SegmentId id) { return secondary.Note(id); };
  log_options.retired = [this](SegmentId id, const SegmentRecord& record) {
    if (record.recompressed) segments->SetRecompressed(id);
    if (recompressor) recompressor->Add(id, record);
  };
  log = std::make_unique<SegmentLog>(env, log_options, [this](SegmentId) {
    if (sealed_since_flush.fetch_add(1) + 1 < kSegmentsPerIndexFlush) return;
    sealed_since_flush = 0;
    index.Flush().IgnoreError("the index records how far it is durable; a mount replays the rest");
  });
}

void ChunkStore::Parts::OpenDeduplicator() {
  Deduplicator::Options dedup;
  dedup.store = options.store;
  dedup.uuid = options.superblock.uuid;
  dedup.tag_secret = options.superblock.tag_secret;
  dedup.sha1_collisions = options.sha1_collisions;
  deduplicator = std::make_unique<Deduplicator>(
      Deduplicator::Dependencies{index, *pipeline, *gone, windows, *reader, victims, damage,
                                 secondary},
      std::move(dedup));
}

void ChunkStore::Parts::OpenRecompressor() {
  const Superblock& superblock = options.superblock;
  Recompressor::Options recompress;
  recompress.store = options.store;
  recompress.uuid = superblock.uuid;
  recompress.compression = superblock.compression;
  recompress.block_plain_bytes = std::max(superblock.block_plain_bytes, kRecompressedBlockBytes);
  recompress.needed_bytes =
      options.spare_bytes + kSegmentsFreeToRecompress * superblock.segment_bytes;
  recompress.write_through = options.write_through;
  recompress.report = options.report;
  recompress.is_victim = [this](SegmentId id) {
    return victims.Contains(id) || gone->Contains(id);
  };
  recompress.is_damaged = [this](SegmentId id) { return damage.HasAnyOf(id); };
  recompress.quiet = options.recompress_after;
  recompressor = std::make_unique<Recompressor>(env, index, *log, *segments, std::move(recompress));
}

void ChunkStore::Parts::OpenCollector(NodeStore& nodes_in) {
  const Superblock& superblock = options.superblock;
  GarbageCollector::Options collect;
  collect.store = options.store;
  collect.compression = superblock.compression;
  collect.block_plain_bytes = std::max(superblock.block_plain_bytes, kRecompressedBlockBytes);
  collect.segment_bytes = superblock.segment_bytes;
  collect.known = options.garbage;
  collect.spill_directory = options.spill_directory;
  collect.commit = options.commit;
  collect.snapshot = options.snapshot;
  collect.write_through = options.write_through;
  collect.report = options.report;
  collect.reserve_bytes = options.reserve_bytes;
  collect.room_for_others = options.room_for_others;
  if (options.check_room) collect.is_full = [this] { return !options.check_room(0).ok(); };
  collector = std::make_unique<GarbageCollector>(
      GarbageCollector::Dependencies{env, index, *log, *segments, windows, *reader, *pipeline,
                                     *recompressor, codec, nodes_in, uses, victims, damage, *gone,
                                     secondary},
      std::move(collect));
}

void ChunkStore::Parts::OpenScrubber() {
  Scrubber::Options scrub;
  scrub.store = options.store;
  scrub.uuid = options.superblock.uuid;
  scrub.tag_secret = options.superblock.tag_secret;
  scrub.reached = options.scrub;
  scrub.snapshot = options.snapshot;
  scrub.write_through = options.write_through;
  scrub.report = options.report;
  scrub.on_damage = [this] { ForgetWhatWasPut(); };
  scrubber = std::make_unique<Scrubber>(
      Scrubber::Dependencies{env, *log, *segments, *recompressor, damage}, std::move(scrub));
}

Result<std::vector<SegmentId>> ChunkStore::Parts::CompareWithIndex(
    const std::vector<SegmentId>& ids) {
  EntryCheck check(
      index, *segments, *reader, *pipeline, [this](SegmentId id) { return gone->Contains(id); },
      [](uint64_t) { return Status::Ok(); });
  std::vector<SegmentId> others;
  for (const SegmentId id : ids) {
    SILTFS_ASSIGN_OR_RETURN(const bool leads_here, check.Check(id));
    if (!leads_here || damage.HasAnyOf(id)) others.push_back(id);
  }
  // The entries made must be durable before the notes are written: the index must be right for all
  // segments without a note.
  if (check.made() > 0) {
    SILTFS_RETURN_IF_ERROR(pipeline->EndSequence().status());
    SILTFS_RETURN_IF_ERROR(index.Flush());
  }
  return others;
}

void ChunkStore::Parts::ForgetDamageOfGone(
    const std::vector<std::pair<SegmentId, SegmentRecord>>& records) {
  const auto known = SetOf(records);
  for (const DamagedBlock& block : damage.All()) {
    if (!known->Contains(block.segment)) damage.Forget(block.segment);
  }
}

bool ChunkStore::Parts::IsRight(const ChunkRecord& record, ByteView bytes) {
  auto namer = ChunkNamer::Create(options.superblock.uuid.bytes);
  if (!namer.ok()) {
    namer.status().IgnoreError("bytes that cannot be verified do not count");
    return false;
  }
  ChunkVerifier verifier(std::move(namer).value(), options.superblock.tag_secret);
  return verifier.Verify(record, bytes) == ChunkVerifier::Verdict::kRight;
}

Result<SegmentRecord> ChunkStore::Parts::ResumeOrSeal(SegmentId id, const SegmentRecord& record) {
  const Status resumed = log->Resume(id, record);
  if (resumed.ok()) return record;
  const bool damaged = resumed.Is(StatusCode::kCorruption) || resumed.Is(StatusCode::kNotFound);
  if (!damaged) return resumed;
  const ReportFinding report = [this](const std::string& finding) {
    if (options.report) options.report(finding);
  };
  report(resumed.ToString());
  const StoreIdentity identity{options.store, options.superblock.uuid, options.last_commit};
  SILTFS_ASSIGN_OR_RETURN(SegmentRecord after, RecoverSegment(env, identity, id, record, report));
  if (!(after == record)) log->Tell(id, after);
  // The names of the chunks lost at the end of the segment are unknown. Their places are listed as
  // damaged, so that index entries leading there still count as entries of chunks.
  for (uint64_t begin = after.chunks; begin < std::min<uint64_t>(record.chunks, kMaxSegmentChunks);
       begin += DamagedBlock::kMostChunks) {
    const uint64_t count = std::min<uint64_t>(record.chunks - begin, DamagedBlock::kMostChunks);
    damage.Add({id, static_cast<uint32_t>(begin), std::vector<DamagedChunk>(count)});
  }
  return after;
}

Status ChunkStore::Parts::CheckWritable() const {
  if (!pipeline) return Status(StatusCode::kReadOnly, "is mounted read-only").At(options.store);
  return log->failure();
}

Status ChunkStore::Parts::CheckLengths(SegmentKind kind, std::span<const ByteView> chunks) const {
  const size_t longest =
      kind == SegmentKind::kRecipeNodes ? kMaxNodeBytes : options.superblock.chunk_max;
  for (ByteView chunk : chunks) {
    if (!chunk.empty() && chunk.size() <= longest) continue;
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("a chunk of {} bytes is not between 1 and {}", chunk.size(), longest))
        .At(options.store);
  }
  return Status::Ok();
}

void ChunkStore::Parts::TrimHeap(uint64_t bytes_put) {
  if (bytes_since_trim.fetch_add(bytes_put) + bytes_put < kBytesPerTrim) return;
  bytes_since_trim = 0;
  heap_trimmer.Trim();
}

Status ChunkStore::Parts::Put(SegmentKind kind, std::span<const ByteView> chunks,
                              std::span<ChunkName> names) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  SILTFS_RETURN_IF_ERROR(CheckLengths(kind, chunks));
  uint64_t total = 0;
  for (ByteView chunk : chunks) total += chunk.size();
  if (options.check_room) SILTFS_RETURN_IF_ERROR(options.check_room(total));
  TrimHeap(total);

  return deduplicator->Put(kind, chunks, names);
}

Status ChunkStore::Put(std::span<const ByteView> chunks, std::span<ChunkName> names) {
  Parts& p = *parts_;
  if (p.recompressor) p.recompressor->NoteUse();
  return p.Put(SegmentKind::kData, chunks, names);
}

Result<ChunkBytes> ChunkStore::Get(const ChunkName& name, uint32_t length) {
  ReadCursor read_cursor;
  return Get(name, length, read_cursor);
}

Result<ChunkBytes> ChunkStore::Get(const ChunkName& name, uint32_t length,
                                   ReadCursor& read_cursor) {
  Parts& p = *parts_;
  if (auto found = p.reader->Follow(name, length, read_cursor)) {
    return ChunkBytes{std::move(found->block), found->bytes};
  }
  if (p.pipeline) {
    if (auto pending = p.pipeline->GetPending(name)) {
      if (pending->bytes.size() == length) return ChunkBytes{pending->owner, pending->bytes};
    }
  }
  SILTFS_ASSIGN_OR_RETURN(ChunkReader::Found found, p.reader->Get(name, length, read_cursor));
  return ChunkBytes{found.block, found.bytes};
}

void ChunkStore::NoteUse() {
  if (parts_->recompressor) parts_->recompressor->NoteUse();
}

void ChunkStore::NoteRead(uint64_t file, const Recipe& recipe, uint64_t limit, uint64_t offset,
                          uint64_t length) {
  if (parts_->readahead) parts_->readahead->Note(file, recipe, limit, offset, length);
}

void ChunkStore::ForgetReads(uint64_t file) {
  if (parts_->readahead) parts_->readahead->Forget(file);
}

ChunkStore::ReadStats ChunkStore::read_stats() const {
  return {parts_->reader->blocks_decoded(), parts_->readahead->blocks_ahead()};
}

void ChunkStore::WaitForReadahead() { parts_->readahead->WaitUntilIdle(); }

Result<ChunkName> ChunkStore::PutNode(ByteView node) {
  ChunkName name;
  SILTFS_RETURN_IF_ERROR(parts_->Put(SegmentKind::kRecipeNodes, {&node, 1}, {&name, 1}));
  return name;
}

Result<std::shared_ptr<const Bytes>> ChunkStore::GetNode(const ChunkName& name,
                                                         uint32_t node_bytes) {
  Parts& p = *parts_;
  if (auto node = p.nodes.Get(name); node && node->size() == node_bytes) return node;
  SILTFS_ASSIGN_OR_RETURN(ChunkBytes chunk, Get(name, node_bytes));
  auto node = std::make_shared<const Bytes>(chunk.bytes.begin(), chunk.bytes.end());
  p.nodes.Put(name, node, node->size() + sizeof(Bytes));
  return node;
}

Status ChunkStore::PrepareCommit(uint64_t, std::vector<Mutation>& extra) {
  Parts& p = *parts_;
  SILTFS_RETURN_IF_ERROR(p.CheckWritable());
  SILTFS_RETURN_IF_ERROR(p.pipeline->Flush());
  std::vector<std::pair<SegmentId, SegmentRecord>> changed;
  SILTFS_RETURN_IF_ERROR(p.log->SyncAll(changed));
  for (const auto& [id, record] : changed) extra.push_back({SegmentKey(id), record.Encode()});
  p.damage.TellChanges(extra);
  extra.push_back(
      {std::string(kCollisionsKey), Encoder().U64(p.deduplicator->sha1_collisions()).Take()});
  extra.push_back({std::string(kGarbageKey), p.collector->known().Encode()});
  return Status::Ok();
}

void ChunkStore::CommitDone(uint64_t number) {
  parts_->damage.CommitDone();
  parts_->log->CommitDone(number);
}

ChunkStoreTotals ChunkStore::totals() const {
  const Parts& p = *parts_;
  ChunkStoreTotals totals = p.base;
  totals.sha1_collisions =
      p.deduplicator ? p.deduplicator->sha1_collisions() : p.options.sha1_collisions;
  const DamageList::Totals damaged = p.damage.totals();
  totals.damaged_blocks = damaged.blocks;
  totals.damaged_chunks = damaged.chunks;
  if (p.log) {
    SegmentLog::Growth growth = p.log->growth();
    const GarbageCollector::Totals garbage = p.collector->totals();
    totals.stored_bytes +=
        growth.stored_bytes - p.recompressor->saved_bytes() - garbage.removed_bytes;
    if (p.options.superblock.compression.codec != BlockCodecId::kNone) {
      totals.awaiting_recompression_bytes += growth.not_recompressed_bytes -
                                             p.recompressor->recompressed_bytes() -
                                             garbage.removed_not_recompressed_bytes;
    }
    totals.chunks += growth.chunks - garbage.removed_chunks;
    totals.plain_bytes += growth.plain_bytes - garbage.removed_plain_bytes;
  }
  // After a crash the known dead chunks may belong to segments that are gone.
  const GarbageRecord known = p.collector ? p.collector->known() : p.options.garbage;
  totals.dead_bytes = std::min(known.dead_bytes, totals.stored_bytes);
  totals.chunks -= std::min(known.dead_chunks, totals.chunks);
  totals.plain_bytes -= std::min(known.dead_plain_bytes, totals.plain_bytes);
  return totals;
}

void ChunkStore::WaitUntilSealed() {
  if (!parts_->log) return;
  parts_->pipeline->Flush().IgnoreError("the next commit fails with it, too");
  parts_->log->WaitUntilSealed();
}

Result<RecompressionOutcome> ChunkStore::Recompress() {
  Parts& p = *parts_;
  SILTFS_RETURN_IF_ERROR(p.CheckWritable());
  return p.recompressor->Recompress();
}

void ChunkStore::StartRecompression() {
  if (parts_->recompressor) parts_->recompressor->StartInBackground();
}

void ChunkStore::StopRecompression() {
  if (parts_->recompressor) parts_->recompressor->Stop();
}

Status ChunkStore::BeginNotes(const std::vector<std::pair<SegmentId, SegmentRecord>>& records) {
  Parts& p = *parts_;
  std::vector<SegmentId> ids;
  uint64_t chunks = 0;
  for (const auto& [id, record] : records) {
    if (record.chunks == 0) continue;
    ids.push_back(id);
    chunks += record.chunks;
  }
  if (chunks <= kMostComparedAtOpen) {
    SILTFS_ASSIGN_OR_RETURN(ids, p.CompareWithIndex(ids));
  }
  SILTFS_RETURN_IF_ERROR(p.secondary.Note(ids));
  return p.options.write_through({{std::string(kNotesKey), std::string()}});
}

Status ChunkStore::CompareVictims(const std::vector<SegmentId>& victims, bool crashed) {
  if (crashed) SILTFS_RETURN_IF_ERROR(parts_->CompareWithIndex(victims).status());
  return parts_->secondary.Compared(victims);
}

ChunkStore::Use::Use(ChunkStore& store) : Pin(store.parts_->uses) {}

Result<GarbageOutcome> ChunkStore::CollectGarbage() {
  SILTFS_RETURN_IF_ERROR(parts_->CheckWritable());
  return parts_->collector->Collect();
}

Result<GarbageOutcome> ChunkStore::EstimateGarbage() {
  SILTFS_RETURN_IF_ERROR(parts_->CheckWritable());
  return parts_->collector->Estimate();
}

void ChunkStore::StartCollecting() {
  if (parts_->collector) parts_->collector->StartInBackground();
}

void ChunkStore::NoteReleased(uint64_t bytes) {
  if (parts_->collector) parts_->collector->NoteReleased(bytes);
}

void ChunkStore::StopCollecting() {
  if (parts_->collector) parts_->collector->Stop();
}

ChunkStore::ScrubCall::ScrubCall(ChunkStore& store) : store_(store) {
  if (store_.parts_->scrubber) store_.parts_->scrubber->Enter();
}

ChunkStore::ScrubCall::~ScrubCall() {
  if (store_.parts_->scrubber) store_.parts_->scrubber->Leave();
}

Result<ScrubOutcome> ChunkStore::Scrub(ScrubPace pace) {
  SILTFS_RETURN_IF_ERROR(parts_->CheckWritable());
  return parts_->scrubber->Scrub(pace);
}

void ChunkStore::InterruptScrub() {
  if (parts_->scrubber) parts_->scrubber->Interrupt();
}

Status ChunkStore::CheckScrubbing() const { return parts_->scrubber->CheckRunning(); }

void ChunkStore::StopScrubbing() {
  if (parts_->scrubber) parts_->scrubber->Stop();
}

std::vector<DamagedBlock> ChunkStore::damage() const { return parts_->damage.All(); }

Status ChunkStore::failure() const { return parts_->log ? parts_->log->failure() : Status::Ok(); }

SegmentId ChunkStore::next_segment_id() const { return parts_->log->next_segment(); }

Status ChunkStore::Finish(std::vector<Mutation>& extra) {
  Parts& p = *parts_;
  p.readahead.reset();
  p.scrubber->Stop();
  p.recompressor->Stop();  // the collector may wait for it
  p.collector->Stop();
  SILTFS_RETURN_IF_ERROR(p.CheckWritable());
  SILTFS_RETURN_IF_ERROR(p.pipeline->Flush());
  p.pipeline.reset();
  p.log->StopSealing();
  SILTFS_RETURN_IF_ERROR(p.log->RemoveEmpty());
  std::vector<std::pair<SegmentId, SegmentRecord>> changed;
  SILTFS_RETURN_IF_ERROR(p.log->SyncAll(changed));
  for (const auto& [id, record] : changed) extra.push_back({SegmentKey(id), record.Encode()});
  extra.push_back({std::string(kGarbageKey), p.collector->known().Encode()});
  p.damage.TellChanges(extra);
  p.recompressor->TakeOwed(extra);
  return Status::Ok();
}

}  // namespace siltfs
