#include "fs/chunks/chunk_parts.h"

#include <algorithm>
#include <utility>

#include "chunker/chunk_namer.h"
#include "fs/recovery/segment_recovery.h"
#include "fs/segments/chunk_verifier.h"

namespace siltfs {
namespace {

constexpr size_t kIdleCacheBytes = size_t{8} << 20;

constexpr size_t kOpenSegmentFiles = 256;
// The index is flushed after this many segments were sealed, so that a mount after a crash has few
// segments to replay.
constexpr uint32_t kSegmentsPerIndexFlush = 4;
// The highest compression level for new chunks. Put waits for their compression, so higher levels
// are left to recompression.
constexpr int kIngestLevel = 3;

Compression IngestCompression(Compression recompressed) {
  recompressed.level = std::min(recompressed.level, kIngestLevel);
  return recompressed;
}

std::shared_ptr<const SegmentSet> SetOf(const SegmentRecords& records) {
  std::vector<SegmentId> ids;
  for (const auto& [id, record] : records) ids.push_back(id);
  return std::make_shared<const SegmentSet>(std::move(ids));
}

}  // namespace

ChunkParts::ChunkParts(Env& env_in, ChunkIndex& index_in, ChunkStoreOptions options_in)
    : env(env_in),
      index(index_in),
      options(std::move(options_in)),
      activity(env, options.quiet_after),
      account(options.garbage),
      damage(options.damage),
      secondary(options.secondary, options.metadata),
      windows(options.footer_cache_bytes) {}

// Destroys users before the parts that they use. The pipeline feeds the log, and the log's thread
// calls the index.
ChunkParts::~ChunkParts() {
  pipeline.reset();
  reader.reset();
  segments.reset();
  log.reset();
}

Result<std::unique_ptr<ChunkParts>> ChunkParts::Open(Env& env, ChunkIndex& index,
                                                     ChunkStoreOptions options,
                                                     const SegmentRecords& records,
                                                     std::vector<IndexEntry> unindexed) {
  if (!options.segments) options.segments = OpenSegmentStore(env, options.store, nullptr);
  std::unique_ptr<ChunkParts> parts(new ChunkParts(env, index, std::move(options)));
  ChunkParts& p = *parts;
  if (!p.options.read_only) p.OpenLog();
  SILTFS_RETURN_IF_ERROR(p.OpenSegments(records));
  const SegmentId first_new = p.options.ids != nullptr ? p.options.ids->first_segment() : 1;
  const std::shared_ptr<const SegmentSet> known = SetOf(records);
  p.gone = std::make_unique<const GoneSegments>(p.segments->removed(), known, first_new);
  p.OpenReader(std::move(unindexed));
  if (p.log) {
    p.OpenPipeline();
    p.ForgetDamageOfGone(*known);
    // The index may drop entries that lead into removed segments.
    index.SetGone([gone = *p.gone](SegmentId id) { return gone.Contains(id); });
  }
  return parts;
}

Status ChunkParts::OpenSegments(const SegmentRecords& records) {
  bases.Add(records);
  // If a device failure has prevented resolving an intent, the new file may be in place.
  bases.Add(options.replacements);
  const bool recompresses = options.superblock.compression.codec != BlockCodecId::kNone;
  std::vector<SegmentId> recompressed;
  for (auto [id, record] : records) {
    if (log && !record.sealed && record.chunks > 0) {
      SILTFS_ASSIGN_OR_RETURN(record, ResumeOrSeal(id, record));
    }
    if (record.recompressed) recompressed.push_back(id);
    base.stored_bytes += record.length;
    if (record.kind != static_cast<uint8_t>(SegmentKind::kData)) continue;
    const bool is_final = record.recompressed || (log && !record.sealed && MustStayWhole(id));
    if (recompresses && !is_final) base.awaiting_recompression_bytes += record.length;
    base.chunks += record.chunks;
    base.plain_bytes += record.plain_bytes;
  }
  segments = std::make_unique<SegmentCache>(*options.segments, options.superblock.uuid, codec,
                                            log.get(), kOpenSegmentFiles, std::move(recompressed));
  return Status::Ok();
}

void ChunkParts::OpenLog() {
  IdAllocator* const ids = options.ids;
  SegmentLog::Options log_options;
  log_options.store = options.store;
  log_options.segments = options.segments.get();
  log_options.uuid = options.superblock.uuid;
  log_options.segment_bytes = options.superblock.segment_bytes;
  log_options.first_segment = ids->first_segment();
  log_options.segment_limit = ids->segment_limit();
  log_options.claim_segments = [ids] { return ids->ClaimSegments(); };
  log_options.first_sequence = ids->first_sequence();
  log_options.last_commit = options.last_commit;
  log_options.before_moved = [this](SegmentId id) { return secondary.Note(id); };
  log_options.retired = [this](SegmentId id, const SegmentRecord& record) {
    if (record.recompressed) segments->SetRecompressed(id);
    for (CommittedSegments* receiver : sealed_to) receiver->Add(id, record);
  };
  log = std::make_unique<SegmentLog>(env, log_options, [this](SegmentId) {
    if (sealed_since_flush_.fetch_add(1) + 1 < kSegmentsPerIndexFlush) return;
    sealed_since_flush_ = 0;
    index.Flush().IgnoreError("the index records how far it is durable; a mount replays the rest");
  });
}

void ChunkParts::OpenReader(std::vector<IndexEntry> unindexed) {
  // Called when damage was found. Makes the pipeline forget the chunks that it has just appended,
  // because some of them may lie in the damaged block. After that, no new chunk becomes a duplicate
  // of a damaged chunk.
  const auto on_damage = [this] {
    if (pipeline) pipeline->ForgetAppended();
  };
  ChunkReader::Options reader_options{
      options.store,
      options.block_cache_bytes,
      options.guide,
      std::move(unindexed),
      on_damage,
      [this](const ChunkRecord& record, ByteView bytes) { return IsRight(record, bytes); }};
  reader =
      std::make_unique<ChunkReader>(*segments, index, windows, damage, std::move(reader_options));
  if (!options.superblock.deltas()) return;
  idle_blocks = std::make_unique<BlockReader>(*segments, damage, kIdleCacheBytes, on_damage);
  idle_bases = std::make_unique<BaseReader>(
      *segments, *idle_blocks, reader->places(), damage,
      [this](const ChunkRecord& record, ByteView bytes) { return IsRight(record, bytes); });
}

void ChunkParts::OpenPipeline() {
  const Superblock& superblock = options.superblock;
  BlockPipeline::Options pipeline_options;
  pipeline_options.worker_threads = options.worker_threads;
  pipeline_options.capacity_bytes = options.pipeline_bytes;
  pipeline_options.block_plain_bytes = superblock.block_plain_bytes;
  pipeline_options.idle_block_plain_bytes = options.idle_block_plain_bytes;
  pipeline_options.chunk_max = std::max<size_t>(superblock.chunk_max, kMaxNodeBytes);
  pipeline_options.compression = IngestCompression(superblock.compression);
  pipeline = std::make_unique<BlockPipeline>(*log, index, codec, pipeline_options);
}

void ChunkParts::ForgetDamageOfGone(const SegmentSet& known) {
  for (const DamagedBlock& block : damage.All()) {
    if (!known.Contains(block.segment)) damage.Forget(block.segment);
  }
}

bool ChunkParts::IsRight(const ChunkRecord& record, ByteView bytes) {
  auto namer = ChunkNamer::Create(options.superblock.uuid.bytes);
  if (!namer.ok()) {
    namer.status().IgnoreError("bytes that cannot be verified do not count");
    return false;
  }
  ChunkVerifier verifier(std::move(namer).value(), options.superblock.tag_secret);
  return verifier.Verify(record, bytes) == ChunkVerifier::Verdict::kRight;
}

Result<SegmentRecord> ChunkParts::ResumeOrSeal(SegmentId id, const SegmentRecord& record) {
  const bool moved = MustStayWhole(id);
  const Status resumed = log->Resume(id, record, moved);
  if (resumed.ok()) return record;
  const bool damaged = resumed.Is(StatusCode::kCorruption) || resumed.Is(StatusCode::kNotFound);
  if (!damaged) return resumed;
  const ReportFinding report = [this](const std::string& finding) {
    if (options.report) options.report(finding);
  };
  report(resumed.ToString());
  StoreIdentity identity{options.store, options.superblock.uuid, options.last_commit};
  if (moved) identity.moved = {id};
  SILTFS_ASSIGN_OR_RETURN(SegmentRecord after,
                          RecoverSegment(env, *options.segments, identity, id, record, report));
  if (!(after == record)) log->Tell(id, after);
  salvaged.emplace_back(id, after);
  // The names of the chunks lost at the end of the segment are unknown. Their places are listed as
  // damaged, so that an index entry that leads there does not count as stale.
  for (uint64_t begin = after.chunks; begin < std::min<uint64_t>(record.chunks, kMaxSegmentChunks);
       begin += DamagedBlock::kMostChunks) {
    const uint64_t count = std::min<uint64_t>(record.chunks - begin, DamagedBlock::kMostChunks);
    damage.Add({id, static_cast<uint32_t>(begin), std::vector<DamagedChunk>(count)});
  }
  return after;
}

Status ChunkParts::CheckWritable() const {
  if (!pipeline) return Status(StatusCode::kReadOnly, "is mounted read-only").At(options.store);
  return log->failure();
}

}  // namespace siltfs
