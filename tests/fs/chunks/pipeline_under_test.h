// A block pipeline on a simulated device, with a log and an index of its own.
#pragma once

#include <memory>

#include "fs/segments/block_pipeline.h"
#include "index/open_index.h"
#include "store/env/sim_env.h"
#include "store/segment/segment_files.h"
#include "tests/fs/chunks/hint_index.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

struct PipelineUnderTest {
  static constexpr const char* kStore = "/store";

  SimEnv env;
  BlockCodec codec;
  std::unique_ptr<HintIndex> index;
  std::unique_ptr<SegmentLog> log;
  std::unique_ptr<BlockPipeline> pipeline;

  PipelineUnderTest() {
    REQUIRE_OK(env.CreateDirectory(kStore));
    REQUIRE_OK(env.CreateDirectory("/store/index"));
    REQUIRE_OK(CreateSegmentsDirectory(env, kStore));
    IndexOptions index_options;
    index_options.engine = IndexEngine::kMap;
    index_options.directory = "/store/index";
    auto opened = OpenIndex(env, index_options);
    REQUIRE_OK(opened);
    index = std::make_unique<HintIndex>(std::move(*opened));
    SegmentLog::Options options;
    options.store = kStore;
    options.segment_limit = 1000;
    log = std::make_unique<SegmentLog>(env, options, [](SegmentId) {});
    BlockPipeline::Options pipeline_options;
    pipeline_options.worker_threads = 2;
    pipeline_options.capacity_bytes = 8u << 20;
    pipeline = std::make_unique<BlockPipeline>(*log, *index, codec, pipeline_options);
  }
  ~PipelineUnderTest() {
    pipeline.reset();
    log.reset();
  }
  // Adds the chunk RandomChunk(number); every byte of its name is `number`.
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

}  // namespace siltfs::testing
