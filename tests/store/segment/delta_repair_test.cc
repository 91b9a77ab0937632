// Repair and salvage of segments with deltas: the base table is made again from the blocks.
#include <algorithm>

#include "store/segment/segment_repair.h"
#include "store/segment/segment_rewrite.h"
#include "store/segment/segment_salvage.h"
#include "tests/store/segment/delta_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

constexpr SegmentId kId = 5;

// A segment of three blocks. Each has a whole chunk and two deltas; the first deltas of all blocks
// have one base, the second ones have a base each.
struct Repaired : TestStore {
  Repaired() {
    shared = MakeChunk(1, 5000, false);
    auto writer = Create(kId);
    ListedBases chooser(bases);
    for (uint64_t i = 0; i < 3; ++i) {
      own.push_back(MakeChunk(10 + i, 4000, false));
      const std::vector<TestChunk> chunks = {MakeSimilar(shared, 20 + i), MakeChunk(30 + i, 3000),
                                             MakeSimilar(own[i], 40 + i)};
      chooser.Offer(chunks[0], shared);
      chooser.Offer(chunks[2], own[i]);
      REQUIRE_OK(writer->Append(Encode(codec, chunks, kPlain), 1000 + 10 * i, 8));
      all.insert(all.end(), chunks.begin(), chunks.end());
    }
    REQUIRE_OK(writer->Seal());
    const PreparedRewrite prepared = Must(PrepareRewrite(
        env, path, segments, Identity(kId), codec,
        {.compression = kZstd3, .block_plain_bytes = 5000, .bases = &bases, .chooser = &chooser}));
    REQUIRE(prepared.deltas == 6);
    REQUIRE_OK(Install(kId));
    footer = Must(Open(kId)->ReadFooter());
    REQUIRE(footer.blocks.size() == 3);
    REQUIRE(footer.bases.size() == 4);
    bytes = FileBytes(kId);
    filler = MakeChunk(99, 1).record;
  }

  Result<PreparedSegmentRepair> Repair(bool drops_damage, BaseSource* source = nullptr) {
    SegmentRepairOptions options{.chunks = 9, .sealed_length = bytes.size(), .bases = source};
    if (drops_damage) options.filler = filler;
    SILTFS_ASSIGN_OR_RETURN(const PreparedSegmentRepair prepared,
                            PrepareSegmentRepair(env, path, segments, Identity(kId), options));
    SILTFS_RETURN_IF_ERROR(Install(kId));
    return prepared;
  }
  // Checks the chunks: those with these ordinals are filler, those with a failing base are missing,
  // and all others are there.
  void RequireChunks(const std::vector<size_t>& replaced) {
    auto reader = Open(kId);
    size_t ordinal = 0;
    for (const BlockPlace& place : Must(reader->ReadFooter()).blocks) {
      REQUIRE(place.first_ordinal == ordinal);
      const auto block = Must(reader->ReadBlock(place.block_offset, kUsualBlockBytes, &bases));
      for (size_t i = 0; i < block->chunk_count(); ++i, ++ordinal) {
        CAPTURE(ordinal);
        if (std::count(replaced.begin(), replaced.end(), ordinal) > 0) {
          CHECK(block->records()[i] == filler);
          CHECK(AsText(block->chunk(i)) == std::string_view("\0", 1));
        } else {
          CHECK(block->records()[i] == all[ordinal].record);
          CHECK(AsText(block->chunk(i)) == AsText(all[ordinal].bytes));
        }
      }
    }
    CHECK(ordinal == all.size());
  }
  std::vector<BaseRef> Sorted(std::vector<BaseRef> refs) {
    std::sort(refs.begin(), refs.end());
    return refs;
  }
  std::vector<BaseRef> Bases() { return Must(Open(kId)->ReadBaseTable()); }

  TestChunk shared;
  std::vector<TestChunk> own;
  std::vector<TestChunk> all;
  SegmentFooter footer;
  std::string bytes;
  ChunkRecord filler;
  MemoryBases bases;
};

}  // namespace

TEST_CASE("A lost footer is made again with the same table of bases") {
  Repaired store;
  const bool drops_damage = GENERATE(true, false);
  const bool with_bases = GENERATE(true, false);
  SECTION("trailer") { store.FlipByte(kId, store.bytes.size() - 20); }
  SECTION("base table") { store.FlipByte(kId, store.footer.trailer.base_table_offset() + 3); }
  SECTION("cut off") {
    store.SetFileBytes(kId, store.bytes.substr(0, store.footer.trailer.base_table_offset()));
  }
  const auto repaired = Must(store.Repair(drops_damage, with_bases ? &store.bases : nullptr));
  CHECK(repaired.lost_chunks == 0);
  CHECK(repaired.trailer == store.footer.trailer);
  CHECK(store.FileBytes(kId) == store.bytes);
  store.RequireChunks({});
}

TEST_CASE("A damaged block leaves the table, and no other base does") {
  Repaired store;
  store.FlipByte(kId, store.footer.blocks[1].block_offset + 56 + 3 * 32 + 20);
  const auto repaired = Must(store.Repair(/*drops_damage=*/true));
  CHECK(repaired.lost_chunks == 3);
  CHECK(repaired.trailer.base_count == 3);
  CHECK(store.Bases() ==
        store.Sorted({RefOf(store.shared), RefOf(store.own[0]), RefOf(store.own[2])}));
  store.RequireChunks({3, 4, 5});
}

TEST_CASE("A damaged block that stays in its place has no bases in the table") {
  Repaired store;
  store.FlipByte(kId, store.footer.blocks[1].block_offset + 56 + 3 * 32 + 20);
  store.FlipByte(kId, store.bytes.size() - 1);
  REQUIRE_OK(store.Repair(/*drops_damage=*/false));
  CHECK(store.Bases() ==
        store.Sorted({RefOf(store.shared), RefOf(store.own[0]), RefOf(store.own[2])}));
}

TEST_CASE("Deltas that have lost their base are replaced, and the rest of the block stays") {
  Repaired store;
  const auto code = GENERATE(StatusCode::kNotFound, StatusCode::kCorruption);
  store.bases.failures[RefOf(store.own[1])] = code;
  const auto repaired = Must(store.Repair(/*drops_damage=*/true, &store.bases));
  CHECK(repaired.lost_chunks == 1);
  store.RequireChunks({5});
  // The block has become whole, so the table has only the bases of the other blocks.
  CHECK(store.Bases() ==
        store.Sorted({RefOf(store.shared), RefOf(store.own[0]), RefOf(store.own[2])}));
  auto reader = store.Open(kId);
  const BlockPlace place = Must(reader->ReadFooter()).blocks[1];
  const BlockHead head = Must(reader->ReadBlockHead(place.block_offset));
  CHECK(head.codec != BlockCodecId::kZstdDelta);
  CHECK(head.sequence == 1010);
  CHECK(head.last_commit == 8);
}

TEST_CASE("A segment without any base left has a footer of version 1") {
  Repaired store;
  store.bases.failures[RefOf(store.shared)] = StatusCode::kNotFound;
  const auto repaired = Must(store.Repair(/*drops_damage=*/true, &store.bases));
  CHECK(repaired.lost_chunks == 3);
  CHECK(repaired.trailer.base_count == 0);
  store.RequireChunks({0, 3, 6});
  CHECK(store.Bases().empty());
}

TEST_CASE("Lost bases change nothing without filler, or without a source of bases") {
  Repaired store;
  store.bases.failures[RefOf(store.shared)] = StatusCode::kNotFound;
  const bool drops_damage = GENERATE(true, false);
  CHECK(Must(store.Repair(drops_damage, drops_damage ? nullptr : &store.bases)).lost_chunks == 0);
  CHECK(store.FileBytes(kId) == store.bytes);
}

TEST_CASE("A device that fails to read a base stops the repair") {
  Repaired store;
  store.bases.failures[RefOf(store.shared)] = StatusCode::kIoError;
  REQUIRE_CODE(store.Repair(/*drops_damage=*/true, &store.bases), kIoError);
  CHECK(store.FileBytes(kId) == store.bytes);
  CHECK(Must(ListSegments(store.env, store.path)).temporaries.empty());
}

TEST_CASE("Salvage of a segment with a damaged footer makes the table of bases again") {
  Repaired store;
  SECTION("base table") { store.FlipByte(kId, store.footer.trailer.base_table_offset() + 3); }
  SECTION("own checksum") { store.FlipByte(kId, store.footer.trailer.trailer_offset() - 1); }
  SECTION("block table") { store.FlipByte(kId, store.footer.trailer.block_table_offset() + 3); }
  const SalvageResult result =
      Must(SalvageSegment(store.env, store.path, store.Identity(kId), SalvageOptions()));
  CHECK(result.outcome == SalvageOutcome::kSealed);
  CHECK(result.trailer == store.footer.trailer);
  CHECK(store.FileBytes(kId) == store.bytes);
}

TEST_CASE("Salvage leaves a whole segment with deltas as it is") {
  Repaired store;
  const SalvageResult result =
      Must(SalvageSegment(store.env, store.path, store.Identity(kId), SalvageOptions()));
  CHECK(result.outcome == SalvageOutcome::kAlreadySealed);
  CHECK(store.FileBytes(kId) == store.bytes);
}

TEST_CASE("Blocks of a segment with deltas are found without its footer") {
  Repaired store;
  store.SetFileBytes(kId, store.bytes.substr(0, store.footer.trailer.data_end));
  auto reader = store.Open(kId);
  const BlockTable table = Must(reader->ScanBlockTable());
  CHECK(table.blocks == store.footer.blocks);
  CHECK(Must(reader->ReadDeltaBases(table.blocks[2].block_offset)).size() == 2);
}
