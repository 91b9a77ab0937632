#include "index/buffer_hash/buffer_hash_engine.h"

#include <algorithm>

#include "index/buffer_hash/buffer_hash_partition.h"
#include "index/flash/flash_index.h"
#include "index/flash/shaped_engine.h"

namespace siltfs {
namespace {

constexpr EngineParameterSpec kPartitionBits = {
    .name = "partition_bits", .least = 0, .most = 16, .value = 4};
constexpr EngineParameterSpec kTableBits = {
    .name = "table_bits", .least = 1, .most = 20, .value = 11};  // buckets of 4 places
constexpr EngineParameterSpec kIncarnations = {
    .name = "incarnations", .least = 1, .most = 64, .value = 16};
constexpr EngineParameterSpec kFilterBits = {
    .name = "filter_bits", .least = 0, .most = 24, .value = 10};
constexpr EngineParameterSpec kParameters[] = {kPartitionBits, kTableBits, kIncarnations,
                                               kFilterBits, kRecordBytesParameter};

constexpr uint32_t kWays = 4;
constexpr uint32_t kPagesPerFile = 4096;

BufferHashShape ShapeOf(const EngineParameters& parameters) {
  return {.table = {.buckets = 1U << ValueOf(kTableBits, parameters), .ways = kWays},
          .incarnations = static_cast<uint32_t>(ValueOf(kIncarnations, parameters)),
          .format = {.layout = RecordLayout(ValueOf(kRecordBytesParameter, parameters)),
                     .filter_bits = static_cast<unsigned>(ValueOf(kFilterBits, parameters))}};
}

class BufferHashEngine final : public ShapedEngine<BufferHashShape, BufferHashPartition> {
 public:
  explicit BufferHashEngine(const EngineParameters& parameters)
      : ShapedEngine(kBufferHashEngine, ShapeOf, parameters) {}

  std::vector<PageLogSpec> Logs(const std::string& directory) const override {
    return {{.directory = directory, .pages_per_file = kPagesPerFile}};
  }
  uint64_t BufferBytes() const override { return EntryTable::MemoryFor(shape().table); }
};

Result<std::unique_ptr<ChunkIndex>> Open(Env& env, const IndexOptions& options) {
  return OpenFlashIndex(env, options, kPartitionBits, MakeBufferHashEngine(options.parameters));
}

Result<IndexPlan> Plan(const IndexPlanQuestion& question) {
  const BufferHashShape shape = ShapeOf(question.parameters);
  const auto entries = static_cast<double>(question.entries);
  const auto table_bytes = static_cast<double>(EntryTable::MemoryFor(shape.table));
  const double filter_bytes = entries * shape.format.filter_bits / 8;
  // Partitions are between half full and full.
  const double partitions =
      PlannedPartitions(question, kPartitionBits, static_cast<double>(shape.Capacity()) / 2);
  constexpr double kPageLoad = 0.8;
  IndexPlan plan;
  plan.least_memory_bytes = kLeastFlashMemory + EntryTable::MemoryFor(shape.table);
  plan.memory_bytes =
      static_cast<double>(kLeastFlashMemory) + partitions * table_bytes + filter_bytes;
  // As much may be in replaced incarnations. The last pages of records and filter are not full.
  const double incarnations = partitions * shape.incarnations;
  plan.flash_bytes = 2 * (entries * static_cast<double>(shape.format.layout.size()) / kPageLoad +
                          filter_bytes + incarnations * 2 * kPageSize);
  return plan;
}

}  // namespace

std::unique_ptr<FlashEngine> MakeBufferHashEngine(const EngineParameters& parameters) {
  return std::make_unique<BufferHashEngine>(parameters);
}

constinit const IndexEngineRow kBufferHashEngine = {
    .number = IndexEngine{2},
    .name = "buffer_hash",
    .remark = "which writes full tables to flash and keeps a filter of each in memory",
    .parameters = kParameters,
    .open = Open,
    .plan = Plan,
    .choose = nullptr};

}  // namespace siltfs
