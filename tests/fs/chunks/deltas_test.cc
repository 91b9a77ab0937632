// Chunks that are stored as deltas: reads, damage of their bases, and healing.
#include <string>

#include "fs/segments/segment_bases.h"
#include "store/segment/directory_segment_store.h"
#include "store/segment/segment_files.h"
#include "tests/fs/chunks/delta_store.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

Status GetOf(DeltaStore& deltas, const ChunkName& name) {
  return deltas.store.chunks().Get(name, DeltaStore::kChunkBytes).status();
}

// Damages the payload of the block that holds the chunk. Returns the names in the block.
std::set<ChunkName> Damage(DeltaStore& deltas, const ChunkName& name) {
  const FoundBlock block = deltas.BlockOf(name);
  FlipByte(deltas.store, SegmentPath(deltas.store.path(), block.segment),
           block.offset + block.head.head_bytes() + block.head.payload_bytes / 2);
  std::set<ChunkName> names;
  for (const ChunkRecord& record : block.head.records) names.insert(record.name);
  return names;
}

// Requires that exactly the chunks in `lost` and their dependents cannot be read. Returns how many
// chunks that are.
size_t RequireLost(DeltaStore& deltas, const std::set<ChunkName>& lost) {
  const std::map<ChunkName, ChunkName> base_of = deltas.Deltas();
  size_t count = 0;
  for (const PutChunks* put : {&deltas.bases, &deltas.dependents}) {
    ChunkStore::ReadCursor cursor;
    for (size_t i = 0; i < put->names.size(); ++i) {
      const ChunkName& name = put->names[i];
      const auto base = base_of.find(name);
      const bool is_lost =
          lost.contains(name) || (base != base_of.end() && lost.contains(base->second));
      if (is_lost) {
        REQUIRE_CODE(deltas.store.chunks().Get(name, DeltaStore::kChunkBytes, cursor), kCorruption);
        REQUIRE_CODE(GetOf(deltas, name), kCorruption);
        ++count;
      } else {
        const auto got = deltas.store.chunks().Get(name, DeltaStore::kChunkBytes, cursor);
        REQUIRE_OK(got);
        REQUIRE(std::ranges::equal(got->bytes, put->chunks[i]));
      }
    }
  }
  return count;
}

// The dependents are deltas against `bases`, which are whole. The index forgets the bases, so they
// are stored again, and these copies become deltas against other chunks.
void StoreBasesAgainAsDeltas(DeltaStore& deltas) {
  std::vector<Bytes> others;
  for (const Bytes& base : deltas.bases.chunks) others.push_back(SimilarTo(base, 9));
  deltas.chooser.may_offer = [](const BaseRef&) { return false; };
  const PutChunks put = deltas.PutSealed(others);
  deltas.Recompress();
  deltas.chooser.may_offer = nullptr;
  deltas.store.Reopen();
  for (const ChunkName& name : deltas.bases.names) deltas.store.index().Say(name, std::nullopt);
  for (size_t i = 0; i < put.names.size(); ++i) {
    const FoundBlock block = deltas.BlockOf(put.names[i]);
    for (const ChunkRecord& record : block.head.records) {
      if (record.name == put.names[i]) deltas.chooser.Know(record, put.chunks[i]);
    }
  }
  deltas.PutSealed(deltas.bases.chunks);
  REQUIRE(CountCopies(deltas.store, deltas.bases.names[7]) == 2);
  REQUIRE(deltas.Recompress().deltas == deltas.bases.names.size());
  for (const ChunkName& name : deltas.bases.names) deltas.store.index().TellTruth(name);
  deltas.store.Reopen();
}

}  // namespace

TEST_CASE("a chunk that is stored as a delta is read") {
  const size_t cache = GENERATE(0u, 256u << 10, 16u << 20);
  DeltaStore deltas(cache, GENERATE(TestIndex::kMap, TestIndex::kSilt));
  deltas.Fill(60);
  REQUIRE(deltas.Deltas().size() == 60);
  RequireAll(deltas.store.chunks(), deltas.dependents);
  RequireAll(deltas.store.chunks(), deltas.bases);
  size_t flagged = 0;
  for (const auto& [id, record] : deltas.store.committed().segments)
    flagged += record.deltas ? 1 : 0;
  CHECK(flagged > 0);
  CHECK(flagged < deltas.store.committed().segments.size());
  deltas.store.Reopen();
  RequireAll(deltas.store.chunks(), deltas.dependents);
  deltas.store.Close();
  deltas.store.Open(/*read_only=*/true);
  RequireAll(deltas.store.chunks(), deltas.dependents);
  CHECK(deltas.store.findings().empty());
}

TEST_CASE("the cursor of a reader passes over deltas") {
  DeltaStore deltas(4u << 20);
  deltas.Fill(60);
  deltas.store.Reopen();
  ChunkStore::ReadCursor cursor;
  for (size_t i = 0; i < deltas.dependents.names.size(); ++i) {
    const auto got =
        deltas.store.chunks().Get(deltas.dependents.names[i], DeltaStore::kChunkBytes, cursor);
    REQUIRE_OK(got);
    REQUIRE(std::ranges::equal(got->bytes, deltas.dependents.chunks[i]));
    REQUIRE(cursor.next > 0);
    REQUIRE(cursor.block->records()[cursor.next - 1].name == deltas.dependents.names[i]);
  }
  // Each block was decoded once, and so was each block of bases.
  CHECK(deltas.store.chunks().read_stats().blocks_decoded <= AllBlocks(deltas.store).size() + 2);
}

TEST_CASE("a read of one chunk decodes its block and the block of its base") {
  DeltaStore deltas(4u << 20);
  deltas.Fill(60);
  deltas.store.Reopen();
  REQUIRE_OK(GetOf(deltas, deltas.dependents.names[30]));
  CHECK(deltas.store.chunks().read_stats().blocks_decoded == 2);
  // Both blocks are cached.
  REQUIRE_OK(GetOf(deltas, deltas.dependents.names[30]));
  REQUIRE_OK(GetOf(deltas, deltas.bases.names[30]));
  CHECK(deltas.store.chunks().read_stats().blocks_decoded == 2);
}

TEST_CASE("readahead loads the blocks of bases, too") {
  DeltaStore deltas(16u << 20);
  deltas.Fill(60);
  deltas.store.Reopen();
  Recipe recipe;
  for (const ChunkName& name : deltas.dependents.names)
    recipe.entries.push_back(RecipeEntry::Chunk(name, DeltaStore::kChunkBytes));
  ChunkStore& chunks = deltas.store.chunks();
  for (size_t i = 0; i < recipe.entries.size(); ++i) {
    const uint64_t before = chunks.read_stats().blocks_decoded;
    REQUIRE_OK(GetOf(deltas, deltas.dependents.names[i]));
    // Two reads in order begin the readahead.
    if (i >= 2) REQUIRE(chunks.read_stats().blocks_decoded == before);
    chunks.NoteRead(1, recipe, recipe.size(), i * DeltaStore::kChunkBytes, DeltaStore::kChunkBytes);
    chunks.WaitForReadahead();
  }
}

TEST_CASE("a base is found without its index entry") {
  DeltaStore deltas;
  deltas.Fill(60);
  deltas.store.Reopen();
  for (const ChunkName& name : deltas.bases.names) deltas.store.index().Say(name, std::nullopt);
  RequireAll(deltas.store.chunks(), deltas.dependents);
  CHECK(deltas.store.chunks().totals().damaged_chunks == 0);
  // One search of all segments has found the bases of a segment with deltas.
  CHECK(deltas.store.chunks().read_stats().segments_searched <
        deltas.store.committed().segments.size() * deltas.store.committed().segments.size());
}

TEST_CASE("an index entry that leads to another chunk does no harm to a delta") {
  DeltaStore deltas;
  deltas.Fill(60);
  deltas.store.Reopen();
  const auto wrong = Find(deltas.store, deltas.bases.names[30]);
  for (const ChunkName& name : deltas.bases.names) deltas.store.index().Say(name, wrong);
  RequireAll(deltas.store.chunks(), deltas.dependents);
}

TEST_CASE("a damaged base costs exactly its dependents, and putting it again heals them") {
  DeltaStore deltas(GENERATE(0u, 4u << 20), GENERATE(TestIndex::kMap, TestIndex::kSilt));
  deltas.Fill(60);
  deltas.store.Reopen();
  const std::set<ChunkName> lost = Damage(deltas, deltas.bases.names[20]);
  const size_t count = RequireLost(deltas, lost);
  REQUIRE(count == 2 * lost.size());
  // The bases and their dependents are on the damage list, and no other chunk.
  CHECK(deltas.store.chunks().totals().damaged_chunks == count);
  deltas.store.Reopen();
  CHECK(deltas.store.chunks().totals().damaged_chunks == count);

  if (GENERATE(true, false)) {  // the bases are put again, or their dependents
    PutChunks again;
    again.chunks = deltas.bases.chunks;
    REQUIRE_OK(TryPut(deltas.store.chunks(), again));
    CHECK(again.names == deltas.bases.names);
    deltas.store.Commit();
    RequireAll(deltas.store.chunks(), deltas.bases);
    RequireAll(deltas.store.chunks(), deltas.dependents);
  } else {
    PutChunks again;
    again.chunks = deltas.dependents.chunks;
    REQUIRE_OK(TryPut(deltas.store.chunks(), again));
    CHECK(again.names == deltas.dependents.names);
    deltas.store.Commit();
    RequireAll(deltas.store.chunks(), deltas.dependents);
  }
}

TEST_CASE("the error of a lost base names the base") {
  DeltaStore deltas;
  deltas.Fill(20);
  const ChunkName dependent = deltas.dependents.names[3];
  const ChunkName base = deltas.Deltas().at(dependent);
  const FoundBlock block = deltas.BlockOf(base);
  deltas.store.Close();
  REQUIRE_OK(deltas.store.env().RemoveFile(SegmentPath(deltas.store.path(), block.segment)));
  deltas.store.Open();
  const Status got = GetOf(deltas, dependent);
  REQUIRE_CODE(got, kCorruption);
  CHECK(std::string(got.cause()).find(base.ToHex()) != std::string::npos);
}

TEST_CASE("a device error while a base is read is no damage, and is not cached") {
  DeltaStore deltas(4u << 20);
  deltas.Fill(20);
  deltas.store.Reopen();
  const ChunkName dependent = deltas.dependents.names[3];
  const FoundBlock block = deltas.BlockOf(deltas.Deltas().at(dependent));
  deltas.store.env().FailCall({.calls = SimCall::kRead,
                               .nth = 1,
                               .code = StatusCode::kIoError,
                               .sticky = true,
                               .path_part = SegmentPath(deltas.store.path(), block.segment)});
  REQUIRE_CODE(GetOf(deltas, dependent), kIoError);
  deltas.store.env().ClearFaults();
  RequireAll(deltas.store.chunks(), deltas.dependents);
  CHECK(deltas.store.chunks().totals().damaged_chunks == 0);
}

TEST_CASE("a copy of a base that is a delta itself is not used as a base") {
  DeltaStore deltas;
  deltas.Fill(20);
  StoreBasesAgainAsDeltas(deltas);
  REQUIRE(deltas.Deltas().contains(deltas.bases.names[7]));
  RequireAll(deltas.store.chunks(), deltas.dependents);
  RequireAll(deltas.store.chunks(), deltas.bases);
  CHECK(deltas.store.chunks().totals().damaged_chunks == 0);
}

TEST_CASE(
    "a device error of a whole copy is no damage, though another copy of the base is a delta") {
  DeltaStore deltas;
  deltas.Fill(20);
  const FoundBlock whole = deltas.BlockOf(deltas.bases.names[7]);
  StoreBasesAgainAsDeltas(deltas);
  const ChunkName dependent = deltas.dependents.names[7];
  deltas.store.env().FailCall({.calls = SimCall::kRead,
                               .nth = 1,
                               .code = StatusCode::kIoError,
                               .sticky = true,
                               .path_part = SegmentPath(deltas.store.path(), whole.segment)});
  REQUIRE_CODE(GetOf(deltas, dependent), kIoError);
  deltas.store.env().ClearFaults();
  CHECK(deltas.store.chunks().totals().damaged_chunks == 0);
}

TEST_CASE("putting a delta again heals it if its base is known to be damaged") {
  DeltaStore deltas(0, TestIndex::kMap);
  deltas.Fill(60);
  deltas.store.Reopen();
  const std::set<ChunkName> lost = Damage(deltas, deltas.bases.names[20]);
  REQUIRE_CODE(GetOf(deltas, deltas.bases.names[20]), kCorruption);  // lists the block
  CHECK(deltas.store.chunks().totals().damaged_chunks == lost.size());
  PutChunks again;
  again.chunks = deltas.dependents.chunks;
  REQUIRE_OK(TryPut(deltas.store.chunks(), again));
  deltas.store.Commit();
  for (const ChunkName& name : again.names) REQUIRE_OK(GetOf(deltas, name));
}

TEST_CASE("the bases of a segment are unknown if its base table and a block are damaged") {
  FamilyChooser chooser;
  StoreSettings settings = DeltaStore::Settings(chooser, 0, TestIndex::kMap);
  settings.segment_bytes = 2u << 20;
  StoreUnderTest store(settings);
  store.Open();
  uint64_t filler = 1'000'000;
  PutChunks bases;
  PutChunks similar;
  for (size_t i = 0; i < 400; ++i) {
    bases.chunks.push_back(RandomChunk(1 + i, DeltaStore::kChunkBytes));
    similar.chunks.push_back(SimilarTo(bases.chunks.back(), 1));
  }
  for (PutChunks* put : {&bases, &similar}) {
    REQUIRE_OK(TryPut(store.chunks(), *put));
    DeltaStore::Seal(store, filler, 2'400'000);
    REQUIRE_OK(store.recompressor().Recompress());
  }
  std::map<SegmentId, uint32_t> first_delta_block;
  for (const FoundBlock& block : AllBlocks(store)) {
    if (block.head.codec == BlockCodecId::kZstdDelta)
      first_delta_block.try_emplace(block.segment, block.offset);
  }
  REQUIRE_FALSE(first_delta_block.empty());
  const SegmentId id = first_delta_block.begin()->first;
  const uint32_t block_offset = first_delta_block.begin()->second;
  const BlockCodec codec;
  const std::string path = SegmentPath(store.path(), id);
  DirectorySegmentStore directory(store.env(), store.path());
  const auto visit = [&](std::set<ChunkName>& visited) {
    SegmentCache segments(directory, store.identity().uuid, codec, nullptr, 16);
    return ForEachBase(segments, id, [&](const BaseRef& base) {
      visited.insert(base.name);
      return Status::Ok();
    });
  };
  std::set<ChunkName> all;
  REQUIRE_OK(visit(all));
  REQUIRE_FALSE(all.empty());
  const auto reader =
      SegmentReader::Open(store.env(), store.path(), {store.identity().uuid, id}, codec);
  REQUIRE_OK(reader);
  const auto trailer = (*reader)->ReadTrailer();
  REQUIRE_OK(trailer);
  FlipByte(store, path, trailer->base_table_offset() + 3);
  std::set<ChunkName> from_blocks;
  REQUIRE_OK(visit(from_blocks));
  CHECK(from_blocks == all);
  std::set<ChunkName> some;
  SECTION("the head of the block") { FlipByte(store, path, block_offset + 20); }
  SECTION("the trailer") { FlipByte(store, path, (*reader)->file().Size().value() - 10); }
  REQUIRE_CODE(visit(some), kCorruption);
}

}  // namespace siltfs::testing
