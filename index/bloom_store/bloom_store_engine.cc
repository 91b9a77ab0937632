#include "index/bloom_store/bloom_store_engine.h"

#include <algorithm>

#include "index/bloom_store/bloom_store_partition.h"
#include "index/flash/flash_index.h"
#include "index/flash/shaped_engine.h"

namespace siltfs {
namespace {

constexpr EngineParameterSpec kPartitionBits = {
    .name = "partition_bits", .least = 0, .most = 16, .value = 6};
constexpr EngineParameterSpec kChainLength = {
    .name = "chain_length", .least = 1, .most = ColumnSet::kMost, .value = 96};
constexpr EngineParameterSpec kFilterBytes = {
    .name = "filter_bytes", .least = 8, .most = 1024, .value = 256};  // of a data page
constexpr EngineParameterSpec kBufferedFilters = {
    .name = "buffered_filters", .least = 1, .most = ColumnSet::kMost, .value = 8};
constexpr EngineParameterSpec kPrefilterBits = {
    .name = "prefilter_bits", .least = 0, .most = 16, .value = 0};
constexpr EngineParameterSpec kParameters[] = {kPartitionBits, kChainLength,
                                               kFilterBytes,   kBufferedFilters,
                                               kPrefilterBits, kRecordBytesParameter};

constexpr uint32_t kDataPagesPerFile = 4096;
// Chains are replaced often, so their files are small.
constexpr uint32_t kChainPagesPerFile = 256;

BloomStoreShape ShapeOf(const EngineParameters& parameters) {
  const auto value = [&](const EngineParameterSpec& spec) {
    return static_cast<uint32_t>(ValueOf(spec, parameters));
  };
  return {value(kRecordBytesParameter), value(kFilterBytes), value(kChainLength),
          value(kBufferedFilters), value(kPrefilterBits)};
}

class BloomStoreEngine final : public ShapedEngine<BloomStoreShape, BloomStorePartition> {
 public:
  explicit BloomStoreEngine(const EngineParameters& parameters)
      : ShapedEngine(kBloomStoreEngine, ShapeOf, parameters) {}

  std::vector<PageLogSpec> Logs(const std::string& directory) const override {
    std::vector<PageLogSpec> logs(2);
    logs[BloomStoreShape::kDataLog] = {.directory = directory, .pages_per_file = kDataPagesPerFile};
    logs[BloomStoreShape::kChainLog] = {.directory = directory,
                                        .pages_per_file = kChainPagesPerFile};
    return logs;
  }
  uint64_t BufferBytes() const override { return PageBuffer::MemoryFor(shape().filter); }
};

Result<std::unique_ptr<ChunkIndex>> Open(Env& env, const IndexOptions& options) {
  return OpenFlashIndex(env, options, kPartitionBits, MakeBloomStoreEngine(options.parameters));
}

Result<IndexPlan> Plan(const IndexPlanQuestion& question) {
  const BloomStoreShape shape = ShapeOf(question.parameters);
  const auto entries = static_cast<double>(question.entries);
  // Partitions are between half full and full.
  const double partitions =
      PlannedPartitions(question, kPartitionBits, static_cast<double>(shape.Capacity()) / 2);
  const uint64_t buffer_bytes = PageBuffer::MemoryFor(shape.filter);
  const uint64_t filter_bytes = shape.buffered_filters * shape.filter.bytes() +
                                (shape.has_prefilter ? shape.prefilter.bytes() : 0) +
                                shape.rows_bytes() + shape.chain_length * sizeof(PageAddress);
  const auto chain_pages = static_cast<double>(shape.filter.blocks + shape.prefilter_pages());
  IndexPlan plan;
  plan.least_memory_bytes = kLeastFlashMemory + buffer_bytes;
  plan.memory_bytes = static_cast<double>(kLeastFlashMemory) +
                      partitions * static_cast<double>(buffer_bytes + filter_bytes);
  plan.flash_bytes =
      2 * static_cast<double>(kPageSize) *
      (entries / static_cast<double>(shape.layout.per_page()) + partitions * (chain_pages + 1));
  return plan;
}

}  // namespace

std::unique_ptr<FlashEngine> MakeBloomStoreEngine(const EngineParameters& parameters) {
  return std::make_unique<BloomStoreEngine>(parameters);
}

constinit const IndexEngineRow kBloomStoreEngine = {
    .number = IndexEngine{4},
    .name = "bloom_store",
    .remark = "which keeps its entries and the filters of their pages on flash",
    .parameters = kParameters,
    .open = Open,
    .plan = Plan,
    .choose = nullptr};

}  // namespace siltfs
