#include "tests/fs/chunks/store_under_test.h"

#include <algorithm>

#include "fs/chunks/index_comparison.h"
#include "fs/records/schema.h"
#include "fs/recovery/segment_replacement.h"
#include "index/open_index.h"
#include "index/silt/silt_index.h"
#include "store/base/coding.h"
#include "store/base/random.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_scan.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

Superblock MakeSuperblock(const StoreSettings& settings) {
  Superblock superblock;
  Random random(20);
  random.Fill(superblock.uuid.bytes);
  random.Fill(superblock.tag_secret);
  superblock.chunk_max = settings.chunk_max;
  superblock.compression = settings.compression;
  superblock.block_plain_bytes = settings.block_plain_bytes;
  superblock.segment_bytes = settings.segment_bytes;
  superblock.rabin_polynomial = 1;
  if (settings.chooser != nullptr) superblock.incompat_features |= kIncompatDeltas;
  return superblock;
}

}  // namespace

void CommittedState::Apply(const std::vector<Mutation>& mutations) {
  for (const Mutation& mutation : mutations) {
    if (auto id = ParseSegmentKey(mutation.key)) {
      segments.erase(*id);
      if (!mutation.value) continue;
      auto record = SegmentRecord::Decode(*mutation.value);
      REQUIRE_OK(record);
      segments[*id] = *record;
    } else if (auto replaced = ParseReplacementKey(mutation.key)) {
      replacements.erase(*replaced);
      if (!mutation.value) continue;
      auto record = SegmentRecord::Decode(*mutation.value);
      REQUIRE_OK(record);
      replacements[*replaced] = *record;
    } else if (auto damaged = ParseDamageKey(mutation.key)) {
      damage.erase(*damaged);
      if (!mutation.value) continue;
      auto chunks = DamagedBlock::DecodeChunks(*mutation.value);
      REQUIRE_OK(chunks);
      damage[*damaged] = {damaged->first, damaged->second, *chunks};
    } else if (auto noted = ParseSecondaryKey(mutation.key)) {
      secondary.erase(*noted);
      victims.erase(*noted);
      if (mutation.value) secondary.insert(*noted);
      if (mutation.value == kVictimNote) victims.insert(*noted);
    } else if (mutation.key == kCollisionsKey) {
      collisions = Decoder(AsBytes(*mutation.value)).U64();
    } else if (mutation.key == kGarbageKey) {
      REQUIRE_OK(GarbageRecord::Decode(*mutation.value));
    } else {
      REQUIRE(mutation.key == kIdRangesKey);
      auto ranges = IdRanges::Decode(*mutation.value);
      REQUIRE_OK(ranges);
      ids = *ranges;
    }
  }
}

StoreUnderTest::StoreUnderTest(StoreSettings settings)
    : settings_(settings), superblock_(MakeSuperblock(settings)) {
  REQUIRE_OK(ValidateSuperblock(superblock_));
  REQUIRE_OK(env_.CreateDirectory(path_));
  REQUIRE_OK(CreateSegmentsDirectory(env_, path_));
  REQUIRE_OK(env_.CreateDirectory(JoinPath(path_, "index")));
  REQUIRE_OK(env_.SyncDirectory(path_));
  REQUIRE_OK(env_.SyncDirectory("/"));
}

StoreUnderTest::~StoreUnderTest() { Kill(); }

StoreIdentity StoreUnderTest::identity() const {
  return {path_, superblock_.uuid, committed_.last_commit};
}

Status StoreUnderTest::TryOpen(bool read_only) {
  REQUIRE(!is_open());
  SegmentRecords records(committed_.segments.begin(), committed_.segments.end());
  const ReportFinding report = [this](const std::string& finding) { findings_.push_back(finding); };
  const SegmentRecords intents(committed_.replacements.begin(), committed_.replacements.end());
  std::vector<Mutation> changes;
  ResolveReplacements(segments_, identity(), intents, records, changes);
  if (!read_only && !committed_.ids.clean) {
    SILTFS_RETURN_IF_ERROR(RecoverSegments(env_, segments_, identity(), records, changes, report));
    committed_.Apply(changes);
  }
  const std::string directory = JoinPath(path_, "index");
  SiltIndexOptions silt;
  silt.directory = directory;
  silt.read_only = read_only;
  if (settings_.index == TestIndex::kSilt) {
    silt.partition_bits = 1;
    silt.bucket_bits = 4;
    silt.max_hash_stores = 3;
    silt.background = false;
    silt.max_log_pages = 4;
    silt.write_batch_pages = 1;
  }
  // With these options a small store has converted and merged as large a part of its index as a
  // large store.
  if (settings_.index == TestIndex::kLargeSilt) {
    silt.partition_bits = 0;
    silt.bucket_bits = 9;
    silt.sorted_filters = true;
    silt.background = false;
  }
  const IndexOptions map{
      .engine = IndexEngine::kMap, .directory = directory, .read_only = read_only};
  auto opened =
      settings_.index == TestIndex::kMap ? OpenIndex(env_, map) : OpenSiltIndex(env_, silt);
  if (!opened.ok()) return std::move(opened).status();
  auto index = std::make_unique<HintIndex>(std::move(opened).value());
  std::vector<IndexEntry> aside;
  const std::vector<SegmentId> noted(committed_.secondary.begin(), committed_.secondary.end());
  std::vector<DamagedBlock> known_damage;
  for (const auto& [place, block] : committed_.damage) known_damage.push_back(block);
  const DamageList damage(known_damage);
  ReplayedEntries replayed(*index, records, noted, damage);
  ReplayOptions replay;
  replay.durable_sequence = index->durable_sequence();
  replay.put = [&](std::span<const IndexEntry> entries, uint64_t sequence) {
    if (!read_only) return replayed.Put(entries, sequence);
    aside.insert(aside.end(), entries.begin(), entries.end());
    return Status::Ok();
  };
  replay.report = report;
  SILTFS_RETURN_IF_ERROR(ReplayBlocks(segments_, identity(), records, replay));

  ChunkStoreOptions options;
  options.store = path_;
  options.superblock = superblock_;
  options.read_only = read_only;
  options.last_commit = committed_.last_commit;
  options.sha1_collisions = committed_.collisions;
  for (const auto& [place, block] : committed_.damage) options.damage.push_back(block);
  options.secondary = noted;
  options.worker_threads = settings_.worker_threads;
  options.pipeline_bytes = settings_.pipeline_bytes;
  options.idle_block_plain_bytes = settings_.idle_block_plain_bytes;
  options.block_cache_bytes = settings_.block_cache_bytes;
  options.footer_cache_bytes = settings_.footer_cache_bytes;
  options.readahead_threads = 2;
  if (settings_.minimum_free_bytes > 0) {
    SILTFS_ASSIGN_OR_RETURN(
        reserve_,
        SpaceReserve::Open(
            env_, {.store = path_, .directory = {}, .spare_bytes = settings_.minimum_free_bytes}));
    options.reserve = reserve_.get();
  }
  const bool crashed = !committed_.ids.clean;
  if (!read_only) {
    ids_ = std::make_unique<IdAllocator>(
        committed_.ids, [this](const std::vector<Mutation>& m) { return WriteThrough(m); });
    SILTFS_RETURN_IF_ERROR(ids_->BeginMount());
    options.ids = ids_.get();
    options.metadata = this;
  }
  auto parts = ChunkParts::Open(env_, *index, std::move(options), records, std::move(aside));
  if (!parts.ok()) return std::move(parts).status();
  index_ = std::move(index);
  parts_ = std::move(parts).value();
  chunks_ = std::make_unique<ChunkStore>(*parts_);
  if (read_only) return Status::Ok();
  MaintenanceJobs::Options job_options;
  job_options.chooser = settings_.chooser;
  jobs_ = std::make_unique<MaintenanceJobs>(*parts_, *chunks_, records, std::move(job_options));
  const std::vector<SegmentId> victims(committed_.victims.begin(), committed_.victims.end());
  return CompareVictims(*parts_, victims, crashed);
}

void StoreUnderTest::Open(bool read_only) { REQUIRE_OK(TryOpen(read_only)); }

Status StoreUnderTest::TryCommit() {
  std::vector<Mutation> extra;
  const uint64_t number = committed_.last_commit + 1;
  SILTFS_RETURN_IF_ERROR(chunks_->PrepareCommit(number, extra));
  committed_.Apply(extra);
  committed_.last_commit = number;
  chunks_->CommitDone(number);
  return Status::Ok();
}

void StoreUnderTest::Commit() { REQUIRE_OK(TryCommit()); }

Status StoreUnderTest::TryClose() {
  SILTFS_RETURN_IF_ERROR(TryCommit());
  std::vector<Mutation> last;
  jobs_->Stop();
  SILTFS_RETURN_IF_ERROR(chunks_->Finish(last));
  jobs_->recompressor().TakeOwed(last);
  SILTFS_RETURN_IF_ERROR(index_->Close());
  committed_.Apply(last);
  SILTFS_RETURN_IF_ERROR(ids_->EndMount(chunks_->next_segment_id()));
  Kill();
  return Status::Ok();
}

void StoreUnderTest::Close() { REQUIRE_OK(TryClose()); }

void StoreUnderTest::Kill() {
  jobs_.reset();
  chunks_.reset();
  parts_.reset();
  index_.reset();
}

void StoreUnderTest::Crash(CrashPolicy policy) {
  Kill();
  env_.PowerCut(policy);
}

void StoreUnderTest::RemoveIndex() {
  REQUIRE(!is_open());
  const std::string directory = JoinPath(path_, "index");
  auto entries = env_.ListDirectory(directory);
  REQUIRE_OK(entries);
  for (const auto& entry : *entries) {
    REQUIRE_OK(env_.RemoveFile(JoinPath(directory, entry.name)));
  }
  REQUIRE_OK(env_.SyncDirectory(directory));
}

Bytes RandomChunk(uint64_t seed, size_t size) {
  Bytes bytes(size);
  Random(seed).Fill(bytes);
  return bytes;
}

Bytes DullChunk(uint64_t seed, size_t size) {
  Bytes bytes(size, 'x');
  Random(seed).Fill(MutableByteView(bytes).first(std::min<size_t>(size, 16)));
  return bytes;
}

void PutChunks::Append(const PutChunks& others) {
  chunks.insert(chunks.end(), others.chunks.begin(), others.chunks.end());
  names.insert(names.end(), others.names.begin(), others.names.end());
}

Status TryPut(ChunkStore& store, PutChunks& batch) {
  const std::vector<ByteView> views(batch.chunks.begin(), batch.chunks.end());
  batch.names.resize(views.size());
  return store.Put(views, batch.names);
}

ChunkName PutOne(ChunkStore& store, ByteView chunk) {
  ChunkName name;
  REQUIRE_OK(store.Put({&chunk, 1}, {&name, 1}));
  return name;
}

PutChunks PutMany(ChunkStore& store, uint64_t first_seed, size_t count, size_t size) {
  PutChunks batch;
  for (size_t i = 0; i < count; ++i) batch.chunks.push_back(RandomChunk(first_seed + i, size));
  REQUIRE_OK(TryPut(store, batch));
  return batch;
}

PutChunks PutRepetitive(ChunkStore& store, size_t count, size_t size) {
  constexpr size_t kLine = 80;
  constexpr size_t kLines = 300;
  const Bytes dictionary = RandomChunk(0, kLines * kLine);
  Random random(5);
  PutChunks put;
  for (size_t i = 0; i < count; ++i) {
    Bytes& chunk = put.chunks.emplace_back();
    while (chunk.size() < size) {
      const ByteView line = ByteView(dictionary).subspan(random.Below(kLines) * kLine, kLine);
      chunk.insert(chunk.end(), line.begin(), line.end());
    }
    chunk.resize(size);
  }
  REQUIRE_OK(TryPut(store, put));
  return put;
}

bool ComesBack(ChunkStore& store, const ChunkName& name, ByteView chunk) {
  auto got = store.Get(name, static_cast<uint32_t>(chunk.size()));
  UNSCOPED_INFO(name.ToHex() << ": " << got.status().ToString());
  return got.ok() && std::equal(got->bytes.begin(), got->bytes.end(), chunk.begin(), chunk.end());
}

void RequireAll(ChunkStore& store, const PutChunks& put) {
  for (size_t i = 0; i < put.chunks.size(); ++i) {
    if (!ComesBack(store, put.names[i], put.chunks[i])) FAIL("chunk " << i << " did not come back");
  }
}

std::vector<FoundBlock> AllBlocks(StoreUnderTest& store) {
  auto listing = ListSegments(store.env(), store.path());
  REQUIRE_OK(listing);
  const BlockCodec codec;
  std::vector<FoundBlock> found;
  for (SegmentId id : listing->ids) {
    const SegmentIdentity identity{store.identity().uuid, id};
    auto reader = SegmentReader::Open(store.env(), store.path(), identity, codec);
    REQUIRE_OK(reader);
    auto header = (*reader)->ReadHeader();
    const SegmentKind kind = header.ok() ? header->kind : SegmentKind::kData;
    REQUIRE_OK(
        ScanBlocks((*reader)->file(), identity, {}, [&](const BlockHead& head, uint32_t offset) {
          found.push_back({id, offset, kind, head});
          return Status::Ok();
        }));
  }
  return found;
}

std::optional<Location> Find(StoreUnderTest& store, const ChunkName& name) {
  std::optional<Location> location;
  for (const FoundBlock& block : AllBlocks(store)) {
    for (size_t i = 0; i < block.head.records.size(); ++i) {
      if (block.head.records[i].name != name) continue;
      location = {block.segment, block.head.first_ordinal + static_cast<uint32_t>(i), block.offset};
    }
  }
  return location;
}

size_t CountCopies(StoreUnderTest& store, const ChunkName& name) {
  size_t copies = 0;
  for (const FoundBlock& block : AllBlocks(store)) {
    for (const ChunkRecord& record : block.head.records) copies += record.name == name ? 1 : 0;
  }
  return copies;
}

void FlipByte(StoreUnderTest& store, const std::string& path, uint64_t offset) {
  auto file = store.env().OpenFile(path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  Bytes byte(1);
  REQUIRE_OK(ReadExactly(**file, offset, byte));
  byte[0] ^= 0x40;
  REQUIRE_OK((*file)->Write(offset, byte));
  REQUIRE_OK((*file)->Sync());
}

}  // namespace siltfs::testing
