// Sealing segments after an unclean shutdown, with a power cut at every step.
#include "store/segment/segment_salvage.h"

#include "store/segment/segment_scan.h"
#include "tests/store/segment/segment_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

constexpr SegmentId kId = 5;

struct Unsealed : TestStore {
  Unsealed() {
    writer = Create(kId);
    places = AppendAll(*writer, codec, kSmallSegment);
    size = writer->size();
    bytes = FileBytes(kId);
  }
  Result<SalvageResult> Salvage(uint64_t committed) {
    return SalvageSegment(env, path, Identity(kId), {.committed_length = committed});
  }
  // Records the damage and continues.
  Result<SalvageResult> Repair(uint64_t committed, SegmentKind kind = SegmentKind::kData) {
    damage.clear();
    SalvageOptions options{.committed_length = committed, .kind = kind};
    options.on_damage = [this](uint64_t begin, uint64_t end, const Status&) {
      damage.emplace_back(begin, end);
      return Status::Ok();
    };
    return SalvageSegment(env, path, Identity(kId), options);
  }
  // Checks that the segment is sealed with the first `blocks` blocks, each readable through its
  // footer.
  void RequireSealedWith(size_t blocks) {
    auto reader = Open(kId);
    REQUIRE_OK(reader->ReadHeader());
    SegmentFooter footer = Must(reader->ReadFooter());
    REQUIRE(footer.blocks == std::vector<BlockPlace>(
                                 places.begin(), places.begin() + static_cast<ptrdiff_t>(blocks)));
    for (size_t i = 0; i < blocks; ++i) {
      auto block = Must(reader->ReadBlock(places[i].block_offset));
      CHECK(block->head().first_ordinal == places[i].first_ordinal);
      RequireSame(*block, ChunksOf(kSmallSegment, i));
    }
  }
  uint64_t EndOf(size_t block) const {
    return block + 1 < places.size() ? places[block + 1].block_offset : size;
  }

  std::unique_ptr<SegmentWriter> writer;
  std::vector<BlockPlace> places;
  uint64_t size = 0;
  std::string bytes;
  std::vector<std::pair<uint64_t, uint64_t>> damage;
};

}  // namespace

TEST_CASE("An intact unsealed segment is sealed with the same bytes as by its writer") {
  Unsealed store;
  SalvageResult result = Must(store.Salvage(store.size));
  CHECK(result.outcome == SalvageOutcome::kSealed);
  CHECK(result.discarded_bytes == 0);
  store.env.PowerCut();
  store.RequireSealedWith(3);
  std::string salvaged = store.FileBytes(kId);

  TestStore other;
  auto writer = other.Create(kId);
  AppendAll(*writer, other.codec, kSmallSegment);
  REQUIRE_OK(writer->Seal());
  CHECK(salvaged == other.FileBytes(kId));
  CHECK(result.trailer == writer->totals());
}

TEST_CASE(
    "A truncated segment keeps its whole blocks, or is unchanged if committed bytes are gone") {
  Unsealed store;
  const uint64_t committed = store.places[1].block_offset;
  for (uint64_t size = 0; size < store.size; ++size) {
    CAPTURE(size);
    store.SetFileBytes(kId, store.bytes.substr(0, size));
    auto result = store.Salvage(committed);
    if (size < committed) {
      REQUIRE_CODE(result, kCorruption);
      CHECK(store.FileBytes(kId) == store.bytes.substr(0, size));
      continue;
    }
    REQUIRE_OK(result);
    CHECK(result->outcome == SalvageOutcome::kSealed);
    size_t blocks = size >= store.places[2].block_offset ? 2 : 1;
    CHECK(result->discarded_bytes == size - store.EndOf(blocks - 1));
    store.RequireSealedWith(blocks);
  }
}

TEST_CASE("A segment without committed bytes and without a whole block is removed") {
  Unsealed store;
  for (uint64_t committed : {uint64_t{0}, uint64_t{kSegmentHeaderSize}}) {
    for (uint64_t size = 0; size < store.places[1].block_offset; ++size) {
      CAPTURE(committed, size);
      store.SetFileBytes(kId, store.bytes.substr(0, size));
      auto result = store.Salvage(committed);
      REQUIRE_OK(result);
      CHECK(result->outcome == SalvageOutcome::kRemoved);
      CHECK(result->discarded_bytes == size);
      store.env.PowerCut();
      CHECK(Must(ListSegments(store.env, store.path)).ids.empty());
    }
  }
}

TEST_CASE("A payload torn above the committed length is not kept") {
  Unsealed store;
  store.FlipByte(kId, store.size - 1);
  SalvageResult result = Must(store.Salvage(store.places[1].block_offset));
  CHECK(result.discarded_bytes == store.size - store.places[2].block_offset);
  store.RequireSealedWith(2);
}

TEST_CASE("A segment with a lost header and without committed bytes is removed") {
  Unsealed store;
  store.SetFileBytes(
      kId, std::string(kSegmentHeaderSize, '\0') + store.bytes.substr(kSegmentHeaderSize));
  CHECK(Must(store.Salvage(0)).outcome == SalvageOutcome::kRemoved);
}

TEST_CASE("A damaged header of a segment with committed bytes is damage") {
  Unsealed store;
  store.FlipByte(kId, 9);
  REQUIRE_CODE(store.Salvage(store.size), kCorruption);
  // Repair rewrites the header.
  SalvageResult result = Must(store.Repair(store.size, SegmentKind::kRecipeNodes));
  CHECK(store.damage == std::vector<std::pair<uint64_t, uint64_t>>{{0, kSegmentHeaderSize}});
  CHECK(result.outcome == SalvageOutcome::kSealed);
  store.RequireSealedWith(3);
  CHECK(Must(store.Open(kId)->ReadHeader()) ==
        SegmentHeader{SegmentKind::kRecipeNodes, store.Identity(kId), 8});
}

TEST_CASE("Another segment's file in the place of this one is left alone") {
  Unsealed store;
  REQUIRE_OK(store.env.CreateDirectory("/other"));
  auto foreign = EncodeSegmentHeader({SegmentKind::kData, {TestUuid(77), kId}, 0});
  store.SetFileBytes(kId, foreign);
  REQUIRE_CODE(store.Salvage(0), kCorruption);
  REQUIRE_CODE(store.Repair(0), kCorruption);
  CHECK(store.FileBytes(kId) == foreign);
  REQUIRE_CODE(SalvageSegment(store.env, store.path, store.Identity(kId + 1), {}), kNotFound);
}

TEST_CASE("A sealed segment is left unchanged") {
  Unsealed store;
  REQUIRE_OK(store.writer->Seal());
  const std::string sealed = store.FileBytes(kId);
  SalvageResult result = Must(store.Salvage(store.size));
  CHECK(result.outcome == SalvageOutcome::kAlreadySealed);
  CHECK(result.trailer == store.writer->totals());
  CHECK(store.FileBytes(kId) == sealed);
}

TEST_CASE("A footer that was written but not synced is durable after the salvage") {
  Unsealed store;
  SimFault fault{.calls = SimCall::kSync, .nth = 2};  // the first one syncs the blocks
  store.env.FailCall(fault);
  REQUIRE_CODE(store.writer->Seal(), kIoError);
  const std::string sealed = store.FileBytes(kId);
  CHECK(Must(store.Salvage(store.size)).outcome == SalvageOutcome::kAlreadySealed);
  store.env.PowerCut();
  CHECK(store.FileBytes(kId) == sealed);
  store.RequireSealedWith(3);
}

TEST_CASE("A segment is salvaged again if the process was killed before the name was durable") {
  Unsealed store;
  REQUIRE_OK(store.writer->Sync());
  SimFault fault{.calls = SimCall::kSyncDirectory};
  store.env.FailCall(fault);
  REQUIRE_CODE(store.Salvage(store.size), kIoError);
  CHECK(Must(store.Salvage(store.size)).outcome == SalvageOutcome::kAlreadySealed);
  store.env.PowerCut();
  store.RequireSealedWith(3);
}

TEST_CASE("A damaged footer is rewritten byte for byte") {
  Unsealed store;
  REQUIRE_OK(store.writer->Seal());
  const std::string sealed = store.FileBytes(kId);
  for (uint64_t at = store.size; at < sealed.size(); ++at) {
    CAPTURE(at);
    store.FlipByte(kId, at, 0xff);
    SalvageResult result = Must(store.Salvage(0));
    CHECK(result.outcome == SalvageOutcome::kSealed);
    REQUIRE(store.FileBytes(kId) == sealed);
  }
}

TEST_CASE("A damaged header of a sealed segment is damage for any committed length") {
  Unsealed store;
  REQUIRE_OK(store.writer->Seal());
  const std::string sealed = store.FileBytes(kId);
  store.FlipByte(kId, 9);
  REQUIRE_CODE(store.Salvage(0), kCorruption);
  CHECK(Must(store.Repair(0)).outcome == SalvageOutcome::kSealed);
  store.RequireSealedWith(3);
}

TEST_CASE("A segment with damage below the committed length is changed only by a repair") {
  Unsealed store;
  for (uint64_t at = kSegmentHeaderSize; at < store.size; ++at) {
    CAPTURE(at);
    store.FlipByte(kId, at);
    std::string damaged = store.FileBytes(kId);
    uint64_t before = store.env.Calls(SimCall::kMutating);
    REQUIRE_CODE(store.Salvage(store.size), kCorruption);
    CHECK(store.env.Calls(SimCall::kMutating) == before);
    CHECK(store.FileBytes(kId) == damaged);
    store.FlipByte(kId, at);
  }
}

TEST_CASE("Repair keeps blocks after damage in their places") {
  for (size_t block = 0; block < 3; ++block) {
    for (bool in_payload : {false, true}) {
      CAPTURE(block, in_payload);
      Unsealed store;
      store.FlipByte(kId,
                     in_payload ? store.EndOf(block) - 1 : store.places[block].block_offset + 2);
      SalvageResult result = Must(store.Repair(store.size));
      CHECK(result.outcome == SalvageOutcome::kSealed);
      CHECK(store.damage == std::vector<std::pair<uint64_t, uint64_t>>{
                                {store.places[block].block_offset, store.EndOf(block)}});
      auto reader = store.Open(kId);
      SegmentFooter footer = Must(reader->ReadFooter());
      CHECK(footer.blocks.size() == 2);
      for (size_t i = 0; i < 3; ++i) {
        if (i == block) {
          // The chunks of a damaged block are not offered as duplicates, and reading them fails.
          if (i < 2) CHECK(footer.chunks[store.places[i].first_ordinal] == FooterChunk{});
          REQUIRE_CODE(reader->ReadBlock(store.places[i].block_offset), kCorruption);
          continue;
        }
        CHECK(footer.FindBlock(store.places[i].first_ordinal) == store.places[i]);
        RequireSame(*Must(reader->ReadBlock(store.places[i].block_offset)),
                    ChunksOf(kSmallSegment, i));
      }
      CHECK(Must(store.Salvage(0)).outcome == SalvageOutcome::kAlreadySealed);
    }
  }
}

TEST_CASE("A segment without any whole committed block is left unchanged") {
  Unsealed store;
  for (const BlockPlace& place : store.places) store.FlipByte(kId, place.block_offset + 2);
  std::string damaged = store.FileBytes(kId);
  REQUIRE_CODE(store.Repair(store.size), kCorruption);
  CHECK(store.FileBytes(kId) == damaged);
}

TEST_CASE("A temporary file left by a crash is no obstacle") {
  Unsealed store;
  REQUIRE_OK(ReplaceFile(store.env, TemporarySegmentPath(store.path, kId),
                         AsBytes("rubbish that is longer")));
  CHECK(Must(store.Salvage(store.size)).outcome == SalvageOutcome::kSealed);
  store.RequireSealedWith(3);
  CHECK(Must(ListSegments(store.env, store.path)).temporaries.empty());
}

TEST_CASE(
    "After a power cut at any step of salvage the segment is intact and salvage can be repeated") {
  using Unsynced = CrashPolicy::Unsynced;
  for (Unsynced policy : {Unsynced::kDrop, Unsynced::kKeep, Unsynced::kPrefix, Unsynced::kSubset}) {
    for (uint64_t seed = 0; seed < (policy == Unsynced::kSubset ? 8U : 1U); ++seed) {
      bool finished = false;
      for (uint64_t nth = 1; !finished; ++nth) {
        CAPTURE(policy, seed, nth);
        Unsealed store;
        // Two blocks are committed. The third is torn.
        store.SetFileBytes(kId, store.bytes.substr(0, store.size - 3));
        const uint64_t committed = store.places[2].block_offset;
        store.env.CutAtCall(nth);
        auto cut = store.Salvage(committed);
        finished = cut.ok();
        store.env.Reboot({.unsynced = policy, .seed = seed});

        // Either the old file or the new one, never a mixture.
        auto reader = store.Open(kId);
        if (Must(reader->IsSealed())) {
          store.RequireSealedWith(2);
        } else {
          CHECK(store.FileBytes(kId) == store.bytes.substr(0, store.size - 3));
        }
        CHECK(Must(ListSegments(store.env, store.path)).ids == std::vector<SegmentId>{kId});
        auto again = store.Salvage(committed);
        REQUIRE_OK(again);
        if (finished) CHECK(again->outcome == SalvageOutcome::kAlreadySealed);
        store.RequireSealedWith(2);
      }
    }
  }
}

TEST_CASE("After a power cut at any write salvage keeps all synced blocks in a valid segment") {
  using Unsynced = CrashPolicy::Unsynced;
  for (Unsynced policy : {Unsynced::kDrop, Unsynced::kKeep, Unsynced::kPrefix, Unsynced::kSubset}) {
    for (uint64_t seed = 0;
         seed < (policy == Unsynced::kDrop || policy == Unsynced::kKeep ? 1U : 16U); ++seed) {
      bool finished = false;
      for (uint64_t nth = 1; !finished; ++nth) {
        CAPTURE(policy, seed, nth);
        TestStore store;
        uint64_t committed = 0;
        size_t blocks_committed = 0;
        store.env.CutAtCall(nth);
        {
          auto writer = SegmentWriter::Create(store.env, store.path, store.Identity(kId),
                                              SegmentKind::kData, 0);
          bool alive = writer.ok();
          for (size_t i = 0; alive && i < 6; ++i) {
            auto place =
                (*writer)->Append(Encode(store.codec, MakeChunks(i, {700, 800})), i + 1, 0);
            alive = place.ok();
            if (alive && i % 2 == 1) {
              Status synced = (*writer)->Sync();
              alive = synced.ok();
              if (alive) {
                committed = (*writer)->synced_size();
                blocks_committed = i + 1;
              }
            }
          }
          if (alive) {
            Status sealed = (*writer)->Seal();
            finished = sealed.ok();
          }
        }
        store.env.Reboot({.unsynced = policy, .seed = seed});
        auto result = SalvageSegment(store.env, store.path, store.Identity(kId),
                                     {.committed_length = committed});
        if (blocks_committed == 0 && !result.ok()) {
          REQUIRE_CODE(result, kNotFound);
          continue;
        }
        REQUIRE_OK(result);
        if (result->outcome == SalvageOutcome::kRemoved) {
          CHECK(blocks_committed == 0);
          continue;
        }
        if (finished) CHECK(result->outcome == SalvageOutcome::kAlreadySealed);
        auto reader = store.Open(kId);
        SegmentFooter footer = Must(reader->ReadFooter());
        REQUIRE(footer.blocks.size() >= blocks_committed);
        for (size_t i = 0; i < footer.blocks.size(); ++i) {
          RequireSame(*Must(reader->ReadBlock(footer.blocks[i].block_offset)),
                      MakeChunks(i, {700, 800}));
        }
      }
    }
  }
}

TEST_CASE("Salvage reports the failure of any call and can be repeated") {
  bool finished = false;
  for (uint64_t nth = 1; !finished; ++nth) {
    CAPTURE(nth);
    Unsealed store;
    store.env.FailCall({.calls = SimCall::kAny, .nth = nth, .code = StatusCode::kIoError});
    auto result = store.Salvage(store.size);
    finished = result.ok();
    store.env.ClearFaults();
    if (!finished) REQUIRE_CODE(result, kIoError);
    REQUIRE_OK(store.Salvage(store.size));
    store.RequireSealedWith(3);
  }
}

namespace {

// Leaves `bytes` free, fewer than a copy takes.
void LeaveFree(TestStore& store, uint64_t bytes) {
  const auto space = store.env.GetDiskSpace(store.path);
  REQUIRE_OK(space);
  store.env.SetCapacity(space->total_bytes - space->free_bytes + bytes);
}

void AppendUnsynced(Unsealed& store, std::string_view bytes) {
  auto file = store.env.OpenFile(SegmentPath(store.path, kId), {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->Write(Must((*file)->Size()), AsBytes(bytes)));
}

}  // namespace

TEST_CASE("On a full disk a segment is sealed in place with the same bytes as by a copy") {
  Unsealed store;
  const std::string torn = store.bytes.substr(0, store.size - 3);
  store.SetFileBytes(kId, torn);
  const uint64_t committed = store.places[1].block_offset;
  REQUIRE_OK(store.Salvage(committed));
  const std::string by_copy = store.FileBytes(kId);
  store.SetFileBytes(kId, torn);
  LeaveFree(store, 4096);
  const auto created = store.env.Calls(SimCall::kCreate);
  const auto result = store.Salvage(committed);
  REQUIRE_OK(result);
  CHECK(result->outcome == SalvageOutcome::kSealed);
  CHECK(store.env.Calls(SimCall::kCreate) == created);
  store.env.PowerCut();
  CHECK(store.FileBytes(kId) == by_copy);
  store.RequireSealedWith(2);
}

TEST_CASE("A power cut at any step of sealing in place keeps committed blocks") {
  using Unsynced = CrashPolicy::Unsynced;
  const auto policy = GENERATE(Unsynced::kDrop, Unsynced::kKeep, Unsynced::kPrefix,
                               Unsynced::kSubset, Unsynced::kGarble);
  for (uint64_t seed = 0; seed < 16; ++seed) {
    bool finished = false;
    for (uint64_t nth = 1; !finished; ++nth) {
      CAPTURE(policy, seed, nth);
      Unsealed store;
      // One block is committed. The second is not synced, the third is torn.
      const uint64_t committed = store.places[1].block_offset;
      store.SetFileBytes(kId, store.bytes.substr(0, committed));
      AppendUnsynced(store, store.bytes.substr(committed, store.size - 3 - committed));
      LeaveFree(store, 8192);
      store.env.CutAtCall(nth);
      finished = store.Salvage(committed).ok();
      store.env.Reboot({.unsynced = policy, .seed = seed});
      const auto again = store.Salvage(committed);
      REQUIRE_OK(again);
      if (finished) CHECK(again->outcome == SalvageOutcome::kAlreadySealed);
      const size_t blocks = again->trailer.block_count;
      CHECK(blocks >= (finished ? 2 : 1));
      CHECK(blocks <= 2);
      store.RequireSealedWith(blocks);
    }
  }
}

TEST_CASE("A disk that fills during salvage stops it and loses nothing") {
  Unsealed store;
  REQUIRE_OK(store.writer->Sync());
  store.env.FailCall(
      {.calls = SimCall::kWrite, .nth = 2, .code = StatusCode::kNoSpace, .bytes_written = 100});
  REQUIRE_CODE(store.Salvage(store.size), kNoSpace);
  CHECK(store.FileBytes(kId) == store.bytes);
  REQUIRE_OK(store.Salvage(store.size));
  store.RequireSealedWith(3);
}
