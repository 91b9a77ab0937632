// The order in which the index gets blocks, on a full disk.
#include "fs/segments/block_pipeline.h"

#include <algorithm>

#include "tests/fs/chunks/pipeline_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("the index gets no later entries while a block's entries wait for room") {
  PipelineUnderTest at;
  at.Add(1);
  REQUIRE_OK(at.pipeline->Flush());
  const ChunkName waiting = at.Add(2);
  at.index->FailPutsOfEntries(Status(StatusCode::kNoSpace, "the index has no room"));
  REQUIRE_CODE(at.pipeline->Flush(), kNoSpace);
  // EndSequence and MoveEntries fail. If they put a higher sequence, the index would count the
  // block's sequence as complete, although its entries are missing.
  REQUIRE_CODE(at.pipeline->EndSequence(), kNoSpace);
  const BlockPipeline::Move move{waiting, {9, 9, 9}, {10, 10, 10}};
  REQUIRE_CODE(at.pipeline->MoveEntries({&move, 1}, [](SegmentId) { return false; }), kNoSpace);
  at.index->FailPutsOfEntries(Status::Ok());
  REQUIRE_OK(at.pipeline->EndSequence());
  const std::vector<uint64_t> complete = at.index->complete();
  CHECK(complete.size() == 2);  // Put calls PutImpl only with entries
  CHECK(std::is_sorted(complete.begin(), complete.end()));
  const auto found = at.index->Get(waiting);
  REQUIRE_OK(found);
  CHECK(found->has_value());
}

TEST_CASE("an index that had no room becomes durable once it has the entries") {
  PipelineUnderTest at;
  const ChunkName first = at.Add(1);
  REQUIRE_OK(at.pipeline->Flush());
  const Location place = **at.index->Get(first);
  at.index->FailPuts(Status(StatusCode::kNoSpace, "the index has no room"));
  SECTION("a block's entries") {
    at.Add(2);
    REQUIRE_CODE(at.pipeline->Flush(), kNoSpace);
    REQUIRE_OK(at.index->Flush());
    REQUIRE(at.index->durable_sequence() <= 1);
    at.index->FailPuts(Status::Ok());
    REQUIRE_OK(at.pipeline->Flush());
  }
  SECTION("moved entries, which keep their old places") {
    const BlockPipeline::Move move{first, place, {99, 0, 0}};
    REQUIRE_CODE(at.pipeline->MoveEntries({&move, 1}, [](SegmentId) { return false; }), kNoSpace);
    at.index->FailPuts(Status::Ok());
  }
  at.Add(3);
  REQUIRE_OK(at.pipeline->Flush());
  const auto sequence = at.pipeline->EndSequence();
  REQUIRE_OK(sequence);
  REQUIRE_OK(at.index->Flush());
  REQUIRE(at.index->durable_sequence() >= *sequence);
}

TEST_CASE("an entry that leads elsewhere is not moved, unless that place is wrong or gone") {
  PipelineUnderTest at;
  const auto known = at.Add(1), lost = at.Add(2);
  REQUIRE_OK(at.pipeline->Flush());
  const Location from = **at.index->Get(known), to{50, 5, 0}, elsewhere{60, 6, 0};
  const auto move = [&](const ChunkName& name, SegmentId gone,
                        std::optional<Location> misled = std::nullopt) {
    const BlockPipeline::Move one{name, from, to, misled};
    REQUIRE_OK(
        at.pipeline->MoveEntries({&one, 1}, [gone](SegmentId segment) { return segment == gone; }));
    return *at.index->Get(name);
  };
  const IndexEntry written_again{known, elsewhere};
  REQUIRE_OK(at.index->Put({&written_again, 1}, at.log->TakeSequence()));
  CHECK(move(known, kNoSegment) == elsewhere);
  CHECK(move(known, kNoSegment, Location{60, 7, 0}) == elsewhere);
  CHECK(move(known, kNoSegment, elsewhere) == to);
  REQUIRE_OK(at.index->Put({&written_again, 1}, at.log->TakeSequence()));
  CHECK(move(known, elsewhere.segment) == to);
  REQUIRE_OK(at.index->Delete(lost));
  CHECK(move(lost, kNoSegment) == to);
}

TEST_CASE("RemoveEmpty removes a segment that never got a block") {
  PipelineUnderTest at;
  auto space = at.env.GetDiskSpace("/");
  REQUIRE_OK(space);
  // Room for the segment, but not for a block.
  at.env.SetCapacity(space->total_bytes - space->free_bytes + 4096);
  for (uint8_t number = 1; number <= 3; ++number) at.Add(number);
  REQUIRE_CODE(at.pipeline->Flush(), kNoSpace);
  const auto segments = [&] {
    auto listing = ListSegments(at.env, PipelineUnderTest::kStore);
    REQUIRE_OK(listing);
    return listing->ids.size();
  };
  REQUIRE(segments() == 1);
  at.pipeline.reset();
  at.log->StopSealing();
  REQUIRE_OK(at.log->RemoveEmpty());
  CHECK(segments() == 0);
}

TEST_CASE("a segment that found no room uses up no id") {
  PipelineUnderTest at;
  at.env.SetCapacity(0);
  at.Add(1);
  for (int i = 0; i < 50; ++i) REQUIRE_CODE(at.pipeline->Flush(), kNoSpace);
  at.env.SetCapacity(SimEnv::kUnlimited);
  REQUIRE_OK(at.pipeline->Flush());
  CHECK(at.log->next_segment() == 2);
}

}  // namespace siltfs::testing
