#include "tools/bench/mark_store.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "fs/interface/file_system.h"
#include "fs/meta/metadata_store.h"
#include "fs/open/make_store.h"
#include "fs/open/store_index.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_metadata.h"
#include "fs/recipe/recipe_builder.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/schema.h"
#include "index/open_index.h"
#include "store/base/coding.h"
#include "store/env/files.h"
#include "store/superblock/superblock.h"
#include "tools/bench/bench_threads.h"

namespace siltfs {
namespace {

constexpr uint32_t kChunkBytes = 8192;
constexpr uint64_t kLargeFileChunks = 100'000;
constexpr uint64_t kSmallFileChunks = 20;
constexpr uint64_t kCopyEvery = 4;
constexpr uint64_t kOverlayEvery = 16;
constexpr size_t kPutBatch = 4096;
constexpr size_t kGroupRecords = 2048;

// Passes all calls on to `nodes`, and counts the nodes that are put.
class CountedNodes final : public NodeStore {
 public:
  CountedNodes(NodeStore& nodes, uint64_t& count) : nodes_(nodes), count_(count) {}
  Result<ChunkName> PutNode(ByteView node) override {
    ++count_;
    return nodes_.PutNode(node);
  }
  Result<std::shared_ptr<const Bytes>> GetNode(const ChunkName& name, uint32_t bytes) override {
    return nodes_.GetNode(name, bytes);
  }

 private:
  NodeStore& nodes_;
  uint64_t& count_;
};

InodeRecord FileOf(uint64_t size) {
  InodeRecord record;
  record.mode = 0100644;
  record.links = 1;
  record.size = size;
  return record;
}

}  // namespace

MarkStore::MarkStore(Env& env, std::string directory, uint64_t entries, uint64_t seed)
    : env_(env), directory_(std::move(directory)), entries_(entries), keys_(MixNumber(seed)) {}

std::string MarkStore::SpillDirectory() const { return JoinPath(directory_, "mark"); }

SegmentId MarkStore::SegmentOf(uint64_t number) const {
  return kFirstSegment + static_cast<SegmentId>(number / kSegmentChunks);
}

uint32_t MarkStore::LiveIn(SegmentId segment) const {
  const uint64_t begin = (segment - kFirstSegment) * kSegmentChunks;
  const uint64_t chunks = std::min(kSegmentChunks, entries_ - begin);
  static_assert(kSegmentChunks % kDeadEvery == 0);
  return static_cast<uint32_t>(chunks - chunks / kDeadEvery);
}

std::vector<FooterChunk> MarkStore::ChunksOf(SegmentId segment) const {
  std::vector<FooterChunk> chunks;
  const uint64_t begin = (segment - kFirstSegment) * kSegmentChunks;
  const uint64_t end = std::min(begin + kSegmentChunks, entries_);
  for (uint64_t number = begin; number < end; ++number) {
    chunks.push_back({.name_prefix = keys_.NameOf(number).Prefix64(), .tag = 1});
  }
  return chunks;
}

// --- Making ---

MarkStoreStatistics MarkStore::Make() {
  Require(MakeStore(env_, {.path = directory_}));
  OpenMetadata();
  OpenIndexFor(false);
  FillIndex();
  OpenChunks(false);
  WriteFiles();
  Close();
  return statistics_;
}

void MarkStore::FillIndex() {
  const uint64_t sequence = index_->durable_sequence() + 1;
  std::vector<IndexEntry> batch;
  for (uint64_t number = 0; number < entries_;) {
    batch.clear();
    for (; number < entries_ && batch.size() < kPutBatch; ++number) {
      batch.push_back({keys_.NameOf(number),
                       {.segment = SegmentOf(number),
                        .ordinal = static_cast<uint32_t>(number % kSegmentChunks)}});
    }
    Require(index_->Put(batch, sequence));
  }
}

bool MarkStore::NextLive(uint64_t& number) {
  while (next_number_ < entries_ && IsDead(next_number_)) {
    ++statistics_.dead;
    ++next_number_;
  }
  if (next_number_ == entries_) return false;
  number = next_number_++;
  return true;
}

void MarkStore::WriteFiles() {
  const uint64_t large = std::clamp(entries_ / 4, uint64_t{1}, kLargeFileChunks);
  while (next_number_ < entries_) {
    WriteLargeFile(large);
    for (uint64_t chunks = 0; chunks < large / 10; chunks += kSmallFileChunks) {
      WriteSmallFile(kSmallFileChunks);
    }
  }
  Commit();
}

void MarkStore::WriteLargeFile(uint64_t chunks) {
  CountedNodes nodes(*chunks_, statistics_.nodes);
  RecipeBuilder builder(nodes);
  uint64_t number = 0;
  for (uint64_t i = 0; i < chunks && NextLive(number); ++i) {
    Require(builder.Append(RecipeEntry::Chunk(keys_.NameOf(number), kChunkBytes)));
  }
  auto recipe = builder.Finish();
  Require(recipe.status());
  InodeRecord record = FileOf(recipe->size());
  record.recipe = std::move(*recipe);
  record.recipe_limit = record.size;
  AddFile(record);
  if (large_files_++ % kCopyEvery == 0) AddFile(record);
}

void MarkStore::WriteSmallFile(uint64_t chunks) {
  InodeRecord record;
  OverlayExtent extent;
  extent.kind = OverlayExtent::Kind::kChunks;
  const bool in_overlay = small_files_++ % kOverlayEvery == 0;
  uint64_t number = 0;
  uint64_t count = 0;
  for (; count < chunks && NextLive(number); ++count) {
    const ChunkName name = keys_.NameOf(number);
    if (in_overlay) {
      extent.slices.push_back(
          {.name = name, .chunk_length = kChunkBytes, .skip = 0, .length = kChunkBytes});
    } else {
      record.recipe.entries.push_back(RecipeEntry::Chunk(name, kChunkBytes));
    }
  }
  if (count == 0) return;
  const Recipe recipe = std::move(record.recipe);
  record = FileOf(count * kChunkBytes);
  record.recipe = recipe;
  record.recipe_limit = record.recipe.size();
  record.overlay_chunks = extent.slices.size();
  record.has_overlay = in_overlay;
  record.overlay_bytes = in_overlay ? record.size : 0;
  if (in_overlay) {
    statistics_.references += count;
    group_.push_back({OverlayKey(next_inode_, 0), extent.Encode()});
  }
  AddFile(record);
}

void MarkStore::AddFile(const InodeRecord& record) {
  statistics_.references += record.recipe.chunk_count();
  ++statistics_.files;
  group_.push_back({InodeKey(next_inode_++), record.Encode()});
  if (group_.size() >= kGroupRecords) Commit();
}

void MarkStore::Commit() {
  std::vector<Mutation> extra;
  const uint64_t number = ++commits_;
  Require(chunks_->PrepareCommit(number, extra));
  group_.insert(group_.end(), extra.begin(), extra.end());
  group_.push_back({std::string(kCommitNumberKey), Encoder().U64(number).Take()});
  Require(kv_->Write(group_));
  chunks_->CommitDone(number);
  group_.clear();
}

void MarkStore::Close() {
  std::vector<Mutation> extra;
  Require(chunks_->Finish(extra));
  Require(ids_->EndMount(chunks_->next_segment_id()));
  Require(kv_->Write(extra));
  chunks_.reset();
  parts_.reset();
  Require(index_->Close());
  index_.reset();
  Require(kv_->CloseCleanly());
  kv_.reset();
}

// --- Opening ---

void MarkStore::Open() {
  OpenMetadata();
  OpenIndexFor(true);
  OpenChunks(true);
  while (index_->stats().load_backlog > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void MarkStore::OpenMetadata() {
  const auto state = ReadSuperblock(env_, directory_);
  Require(state.status());
  auto opened = OpenStoreMetadata(env_, state->superblock, directory_, KvStoreOptions::Mode::kOpen);
  Require(opened.status());
  kv_ = std::move(*opened);
}

void MarkStore::OpenIndexFor(bool read_only) {
  const auto state = ReadSuperblock(env_, directory_);
  Require(state.status());
  IndexOptions options = IndexOptionsOf(state->superblock, directory_);
  options.read_only = read_only;
  auto opened = OpenIndex(env_, options);
  Require(opened.status());
  index_ = std::move(*opened);
}

void MarkStore::OpenChunks(bool read_only) {
  const auto state = ReadSuperblock(env_, directory_);
  Require(state.status());
  const FileSystemOptions usual;
  ChunkStoreOptions options;
  options.store = directory_;
  options.superblock = state->superblock;
  options.read_only = read_only;
  options.last_commit = commits_;
  options.worker_threads = usual.worker_threads;
  options.pipeline_bytes = usual.pipeline_bytes;
  options.block_cache_bytes = usual.block_cache_bytes;
  options.readahead_threads = usual.readahead_threads;
  options.footer_cache_bytes = usual.footer_cache_bytes;
  std::vector<std::pair<SegmentId, SegmentRecord>> records;
  if (read_only) {
    const KeyRange range = RangeOf(Table::kSegment);
    const auto snapshot = kv_->Snapshot();
    const auto iterator = snapshot->NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      const auto record = SegmentRecord::Decode(iterator->value());
      Require(record.status());
      records.emplace_back(ParseSegmentKey(iterator->key()).value(), *record);
    }
    Require(iterator->status());
  } else {
    const auto ranges = kv_->Get(kIdRangesKey);
    Require(ranges.status());
    const auto found = IdRanges::Decode(ranges->value());
    Require(found.status());
    KvStore* const kv = kv_.get();
    ids_ = std::make_unique<IdAllocator>(
        *found, [kv](const std::vector<Mutation>& mutations) { return kv->Write(mutations); });
    Require(ids_->BeginMount());
    options.ids = ids_.get();
  }
  auto opened = ChunkParts::Open(env_, *index_, std::move(options), records, {});
  Require(opened.status());
  parts_ = std::move(*opened);
  chunks_ = std::make_unique<ChunkStore>(*parts_);
}

}  // namespace siltfs
