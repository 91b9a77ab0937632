#include "tests/fs/mark/mark_fixture.h"

#include "fs/recipe/recipe_builder.h"
#include "fs/records/overlay_extent.h"
#include "index/open_index.h"
#include "index/silt/silt_index.h"
#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

InodeRecord FileOf(const Recipe& recipe) {
  InodeRecord record;
  record.mode = 0100644;
  record.links = 1;
  record.size = recipe.size();
  record.recipe = recipe;
  record.recipe_limit = record.size;
  return record;
}

ChunkName NumberedName(uint64_t number) {
  Random random(number);
  return RandomName(random);
}

Entries NumberedChunks(uint64_t first, uint64_t count) {
  Entries entries;
  for (uint64_t i = 0; i < count; ++i) {
    entries.push_back(RecipeEntry::Chunk(NumberedName(first + i), 8192));
  }
  return entries;
}

std::vector<FooterChunk> FooterOf(const std::vector<ChunkName>& names) {
  std::vector<FooterChunk> chunks;
  for (const ChunkName& name : names) chunks.push_back({.name_prefix = name.Prefix64(), .tag = 9});
  return chunks;
}

void MarkMetadata::Set(std::string key, std::string value) {
  REQUIRE_OK(kv->Write({{std::move(key), std::move(value)}}));
}

void MarkMetadata::AddFile(const Entries& entries) {
  for (const RecipeEntry& entry : entries) {
    if (!entry.is_hole()) expected.insert(entry.name);
  }
  AddFile(Build(nodes, entries));
}

void MarkMetadata::AddOverlay(uint64_t inode, uint64_t offset,
                              const std::vector<ChunkName>& names) {
  OverlayExtent extent;
  extent.kind = OverlayExtent::Kind::kChunks;
  for (const ChunkName& name : names) {
    extent.slices.push_back({.name = name, .chunk_length = 100, .skip = 0, .length = 50});
    expected.insert(name);
  }
  Set(OverlayKey(inode, offset), extent.Encode());
}

void MarkMetadata::ExpectAllNodes() {
  for (const auto& [name, bytes] : nodes.nodes) expected.insert(name);
}

Status MarkMetadata::Walk(const MarkPace& pace) {
  return ForEachReference(*Snapshot(), nodes, pace, [](const ChunkName&) { return Status::Ok(); });
}

MarkStore::MarkStore(IndexEngine engine) {
  REQUIRE_OK(env.CreateDirectory("/index"));
  if (engine == IndexEngine::kMap) {
    auto opened = OpenIndex(env, {.engine = engine, .directory = "/index"});
    REQUIRE_OK(opened);
    index = std::move(*opened);
  } else {
    auto opened = OpenSiltIndex(env, {.directory = "/index",
                                      .partition_bits = 2,
                                      .bucket_bits = 5,
                                      .hash_secret = 5,
                                      .sort_memory_bytes = 8000,
                                      .background = false});
    REQUIRE_OK(opened);
    index = std::move(*opened);
  }
  std::vector<IndexEntry> entries;
  for (uint64_t i = 0; i < kChunks; ++i) {
    entries.push_back({NumberedName(i),
                       {.segment = static_cast<SegmentId>(1 + i / kSegmentChunks),
                        .ordinal = static_cast<uint32_t>(i % kSegmentChunks)}});
  }
  REQUIRE_OK(index->Put(entries, 1));
  // Some chunks have a reference but no entry; every tenth has an entry but no reference.
  Entries live;
  for (uint64_t i = 0; i < kChunks + 500; ++i) {
    if (IsDead(i)) continue;
    live.push_back(RecipeEntry::Chunk(NumberedName(i), 8192));
    if (i < kChunks) ++expected[static_cast<SegmentId>(1 + i / kSegmentChunks)];
  }
  metadata.AddFile(live);
  metadata.AddFile(live);
  metadata.AddFile(NumberedChunks(51, 9));  // refers to live chunks once more
  for (uint64_t i = 0; i < 20; ++i) metadata.AddFile(NumberedChunks(51, 8));
}

void MarkStore::RequireCounts(const LiveCounts& counts) const {
  uint64_t live = 0;
  for (const auto& [segment, chunks] : expected) live += chunks;
  CHECK(counts.live == live);
  CHECK(counts.dead_entries == kChunks - live);
  CHECK(counts.references >= live);
  CHECK(std::map<SegmentId, uint32_t>(counts.live_chunks.begin(), counts.live_chunks.end()) ==
        expected);
}

Result<LiveCounts> MarkStore::Count(const MarkOptions& options) {
  return CountLive(env, *metadata.Snapshot(), metadata.nodes, *index, options);
}

bool MarkStore::SpillIsGone() {
  const auto listed = env.ListDirectory(kSpill);
  return !listed.ok() && listed.status().Is(StatusCode::kNotFound);
}

}  // namespace siltfs::testing
