// What the pipeline, the log and the index do together when it is the index that has no room.
#include "fs/dedup/block_pipeline.h"
#include "index/open_index.h"
#include "store/segment/segment_files.h"
#include "tests/fs/dedup/hint_index.h"
#include "tests/fs/dedup/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

const Status kNoRoom(StatusCode::kNoSpace, "the index has no room");

ChunkName NameOf(uint8_t number) {
  ChunkName name;
  name.bytes.fill(number);
  return name;
}

struct Pipeline {
  Pipeline() {
    REQUIRE_OK(CreateSegmentsDirectory(env, "/"));
    REQUIRE_OK(env.CreateDirectory("/index"));
    IndexOptions options;
    options.engine = IndexEngine::kMap;
    options.directory = "/index";
    auto opened = OpenIndex(env, options);
    REQUIRE_OK(opened);
    index = std::make_unique<HintIndex>(std::move(*opened));
    SegmentLog::Options log_options;
    log_options.store = "/";
    log_options.segment_limit = 100;
    log = std::make_unique<SegmentLog>(env, log_options, [](SegmentId) {});
    BlockPipeline::Options pipeline_options;
    pipeline_options.worker_threads = 1;
    pipeline_options.capacity_bytes = 1u << 20;
    pipeline_options.block_plain_bytes = 16u << 10;
    pipeline_options.chunk_max = 64u << 10;
    pipeline = std::make_unique<BlockPipeline>(*log, *index, codec, pipeline_options);
  }
  void Add(uint8_t number) {
    ChunkRecord record;
    record.name = NameOf(number);
    record.length = 1000;
    REQUIRE_OK(pipeline->Add(SegmentKind::kData, record, Bytes(1000, number), pipeline->Now()));
  }

  SimEnv env;
  BlockCodec codec;
  std::unique_ptr<HintIndex> index;
  std::unique_ptr<SegmentLog> log;
  std::unique_ptr<BlockPipeline> pipeline;  // goes first
};

}  // namespace

TEST_CASE("nothing gets into the index ahead of a block that waits for room there") {
  Pipeline at;
  at.Add(1);
  REQUIRE_OK(at.pipeline->Flush());
  const Location first = **at.index->Get(NameOf(1));
  at.index->FailPuts(kNoRoom);
  at.Add(2);
  REQUIRE_CODE(at.pipeline->Flush(), kNoSpace);
  at.index->FailPuts(Status::Ok());
  // Others come before it is tried again, and what they put has a later sequence.
  const std::vector<BlockPipeline::Move> moves = {{NameOf(1), first, {99, 0, 0}}};
  REQUIRE_CODE(at.pipeline->MoveEntries(moves, [](SegmentId) { return false; }), kNoSpace);
  REQUIRE_CODE(at.pipeline->EndSequence(), kNoSpace);
  REQUIRE_OK(at.pipeline->Flush());
  REQUIRE_OK(at.log->failure());
  REQUIRE((*at.index->Get(NameOf(2))).has_value());
  REQUIRE_OK(at.pipeline->MoveEntries(moves, [](SegmentId) { return false; }));
  REQUIRE_OK(at.pipeline->EndSequence());
}

TEST_CASE("an index that had no room becomes durable once it has what it was given then") {
  Pipeline at;
  at.Add(1);
  REQUIRE_OK(at.pipeline->Flush());
  const Location first = **at.index->Get(NameOf(1));
  at.index->FailPuts(kNoRoom);
  SECTION("a block's entries") {
    at.Add(2);
    REQUIRE_CODE(at.pipeline->Flush(), kNoSpace);
    const auto durable = at.index->durable_sequence();
    REQUIRE_OK(at.index->Flush());
    REQUIRE(at.index->durable_sequence() <= std::max<uint64_t>(durable, 1));
    at.index->FailPuts(Status::Ok());
    REQUIRE_OK(at.pipeline->Flush());
  }
  SECTION("entries that are moved, which stay where they are instead") {
    const std::vector<BlockPipeline::Move> moves = {{NameOf(1), first, {99, 0, 0}}};
    REQUIRE_CODE(at.pipeline->MoveEntries(moves, [](SegmentId) { return false; }), kNoSpace);
    at.index->FailPuts(Status::Ok());
  }
  at.Add(3);
  REQUIRE_OK(at.pipeline->Flush());
  const auto sequence = at.pipeline->EndSequence();
  REQUIRE_OK(sequence);
  REQUIRE_OK(at.index->Flush());
  REQUIRE(at.index->durable_sequence() >= *sequence);
}

}  // namespace siltfs::testing
