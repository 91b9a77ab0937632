// The store's overhead beside the bytes of a chunk: the block's head, the footer, the index.
#include <algorithm>
#include <cmath>

#include "store/base/random.h"
#include "store/segment/segment_files.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("a unique chunk costs no more than 85 bytes beside its own, and 0.9 for the filter") {
  // A store as mkfs makes it, except for two settings. Blocks are uncompressed, to distinguish
  // payloads from overhead, and segments are small.
  StoreSettings settings;
  settings.index = TestIndex::kLargeSilt;
  settings.compression = {BlockCodecId::kNone, 0};
  settings.block_plain_bytes = 128u << 10;
  settings.segment_bytes = 8u << 20;
  settings.pipeline_bytes = 8u << 20;
  StoreUnderTest store(settings);
  store.Open();
  Random random(8);
  PutChunks batch;
  Bytes pool(1u << 20);
  random.Fill(pool);
  for (int i = 0; i < 8000; ++i) {
    // Sizes of content-defined chunks: 2 KiB and an exponential rest with a mean of 6 KiB, at most
    // 64 KiB.
    const double uniform = static_cast<double>(1 + random.Below(1u << 20)) / (1u << 20);
    const auto size =
        std::min<size_t>(2048 + static_cast<size_t>(-6144 * std::log(uniform)), 65536);
    Bytes chunk(pool.begin(), pool.begin() + static_cast<ptrdiff_t>(size));
    random.Fill(MutableByteView(chunk).first(16));
    batch.chunks.push_back(std::move(chunk));
    if (batch.chunks.size() < 64) continue;
    REQUIRE_OK(TryPut(store.chunks(), batch));
    batch = {};
    // The index is flushed every few segments. The wait makes each flush include the same chunks in
    // every run.
    if (i % 1024 == 1023) store.chunks().WaitUntilSealed();
  }
  store.Close();
  uint64_t segment_bytes = 0;
  uint64_t chunks = 0;
  uint64_t plain_bytes = 0;
  for (const auto& [id, record] : store.committed().segments) {
    if (!record.sealed) continue;
    segment_bytes += record.length;
    chunks += record.chunks;
    plain_bytes += record.plain_bytes;
  }
  uint64_t index_bytes = 0;
  uint64_t filter_bytes = 0;  // the index works without them, too
  auto files = store.env().ListDirectory("/store/index");
  REQUIRE_OK(files);
  for (const DirectoryEntry& file : *files) {
    auto info = store.env().GetFileInfo("/store/index/" + file.name);
    REQUIRE_OK(info);
    (file.name.ends_with(".filter") ? filter_bytes : index_bytes) += info->size;
  }
  const double mean = static_cast<double>(plain_bytes) / static_cast<double>(chunks);
  const double log_cost =
      static_cast<double>(segment_bytes - plain_bytes) / static_cast<double>(chunks);
  const double index_cost = static_cast<double>(index_bytes) / 8000;
  const double filter_cost = static_cast<double>(filter_bytes) / 8000;
  WARN(chunks << " chunks of " << mean << " bytes: " << log_cost << " in the log, " << index_cost
              << " in the index, " << filter_cost << " in its filters");
  REQUIRE(mean > 7900);
  REQUIRE(mean < 8500);
  REQUIRE(log_cost + index_cost <= 85);
  REQUIRE(filter_cost > 0.5);
  REQUIRE(filter_cost <= 0.9);
}

}  // namespace siltfs::testing
