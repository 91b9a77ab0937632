// The order in which the index learns of blocks, on a disk that is full.
#include "fs/dedup/block_pipeline.h"

#include <algorithm>

#include "index/open_index.h"
#include "store/env/sim_env.h"
#include "store/segment/segment_files.h"
#include "tests/fs/dedup/hint_index.h"
#include "tests/fs/dedup/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct Pipeline {
  SimEnv env;
  BlockCodec codec;
  std::unique_ptr<HintIndex> index;
  std::unique_ptr<SegmentLog> log;
  std::unique_ptr<BlockPipeline> pipeline;

  Pipeline() {
    REQUIRE_OK(env.CreateDirectory("/store"));
    REQUIRE_OK(env.CreateDirectory("/store/index"));
    REQUIRE_OK(CreateSegmentsDirectory(env, "/store"));
    IndexOptions index_options;
    index_options.engine = IndexEngine::kMap;
    index_options.directory = "/store/index";
    auto opened = OpenIndex(env, index_options);
    REQUIRE_OK(opened);
    index = std::make_unique<HintIndex>(std::move(*opened));
    SegmentLog::Options options;
    options.store = "/store";
    options.segment_limit = 1000;
    log = std::make_unique<SegmentLog>(env, options, [](SegmentId) {});
    pipeline = std::make_unique<BlockPipeline>(*log, *index, codec, BlockPipeline::Options{});
  }
  ~Pipeline() {
    pipeline.reset();
    log.reset();
  }
  ChunkName Add(uint8_t number) {
    const Bytes bytes = RandomChunk(number);
    ChunkRecord record;
    record.name.bytes.fill(number);
    record.length = static_cast<uint32_t>(bytes.size());
    const auto added = pipeline->Add(SegmentKind::kData, record, bytes, pipeline->Now());
    REQUIRE_OK(added);
    REQUIRE(*added == BlockPipeline::Outcome::kAdded);
    return record.name;
  }
};

}  // namespace

TEST_CASE("the index is told of nothing later while a block's entries wait for room") {
  Pipeline at;
  at.Add(1);
  REQUIRE_OK(at.pipeline->Flush());
  const ChunkName waiting = at.Add(2);
  at.index->FailPutsOfEntries(Status(StatusCode::kNoSpace, "the index has no room"));
  REQUIRE_CODE(at.pipeline->Flush(), kNoSpace);
  // Neither of these says that the index has everything up to a sequence behind the block's.
  REQUIRE_CODE(at.pipeline->EndSequence(), kNoSpace);
  const BlockPipeline::Move move{waiting, {9, 9, 9}, {10, 10, 10}};
  REQUIRE_CODE(at.pipeline->MoveEntries({&move, 1}, [](SegmentId) { return false; }), kNoSpace);
  at.index->FailPutsOfEntries(Status::Ok());
  REQUIRE_OK(at.pipeline->EndSequence());
  const std::vector<uint64_t> complete = at.index->complete();
  CHECK(complete.size() == 2);  // one without entries is none
  CHECK(std::is_sorted(complete.begin(), complete.end()));
  const auto found = at.index->Get(waiting);
  REQUIRE_OK(found);
  CHECK(found->has_value());
}

TEST_CASE("an index that had no room becomes durable once it has what it was given then") {
  Pipeline at;
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
  SECTION("entries that are moved, which stay where they are instead") {
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

TEST_CASE("a segment that found no room uses up no id") {
  Pipeline at;
  at.env.SetCapacity(0);
  at.Add(1);
  for (int i = 0; i < 50; ++i) REQUIRE_CODE(at.pipeline->Flush(), kNoSpace);
  at.env.SetCapacity(SimEnv::kUnlimited);
  REQUIRE_OK(at.pipeline->Flush());
  CHECK(at.log->next_segment() == 2);
}

}  // namespace siltfs::testing
