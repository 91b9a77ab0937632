#include "index/skimpy_stash/skimpy_stash_engine.h"

#include <algorithm>

#include "index/flash/flash_index.h"
#include "index/flash/shaped_engine.h"
#include "index/skimpy_stash/skimpy_stash_partition.h"

namespace siltfs {
namespace {

constexpr EngineParameterSpec kPartitionBits = {
    .name = "partition_bits", .least = 0, .most = 14, .value = 4};
constexpr EngineParameterSpec kCapacityBits = {
    .name = "capacity_bits", .least = 4, .most = 24, .value = 17};
constexpr EngineParameterSpec kEntriesPerBucket = {
    .name = "entries_per_bucket", .least = 1, .most = 32, .value = 8};
constexpr EngineParameterSpec kEnhanced = {.name = "enhanced", .least = 0, .most = 1, .value = 1};
constexpr EngineParameterSpec kGarbage = {.name = "garbage", .least = 0, .most = 128, .value = 8};
// Section 4.1 of the paper. The log of puts makes entries durable in any case.
constexpr EngineParameterSpec kCoalesceMs = {
    .name = "coalesce_ms", .least = 0, .most = 3'600'000, .value = 0};
constexpr EngineParameterSpec kRecordBytes = {.name = "record_bytes",
                                              .least = SkimpyStashShape::kRecordSize,
                                              .most = RecordLayout::kPaperSize,
                                              .value = SkimpyStashShape::kRecordSize};
constexpr EngineParameterSpec kParameters[] = {kPartitionBits, kCapacityBits, kEntriesPerBucket,
                                               kEnhanced,      kGarbage,      kCoalesceMs,
                                               kRecordBytes};

// A partition has a stream of its own, so files are small: 1 MiB.
constexpr uint32_t kPagesPerFile = 256;

class SkimpyStashEngine final : public ShapedEngine<SkimpyStashShape, SkimpyStashPartition> {
 public:
  explicit SkimpyStashEngine(const EngineParameters& parameters)
      : ShapedEngine(kSkimpyStashEngine, SkimpyStashShapeOf, parameters) {}

  std::vector<PageLogSpec> Logs(const std::string& directory) const override {
    // Each written directory is a file of its own.
    return {{.directory = directory, .pages_per_file = kPagesPerFile},
            {.directory = directory, .pages_per_file = 1}};
  }
  uint64_t BufferBytes() const override { return EntryTable::MemoryFor(shape().BufferShape()); }
};

Result<std::unique_ptr<ChunkIndex>> Open(Env& env, const IndexOptions& options) {
  return OpenFlashIndex(env, options, kPartitionBits, MakeSkimpyStashEngine(options.parameters));
}

Result<IndexPlan> Plan(const IndexPlanQuestion& question) {
  const SkimpyStashShape shape = SkimpyStashShapeOf(question.parameters);
  const auto entries = static_cast<double>(question.entries);
  // Partitions are between three eighths full and full.
  const double partitions =
      PlannedPartitions(question, kPartitionBits, static_cast<double>(shape.capacity) * 3 / 8);
  const auto heads = static_cast<double>(BucketDirectory::EncodedSize(shape, false));
  const auto directory = static_cast<double>(BucketDirectory::EncodedSize(shape, shape.enhanced));
  const auto buffer = static_cast<double>(EntryTable::MemoryFor(shape.BufferShape()));
  const auto least = static_cast<double>(kLeastFlashMemory);
  const double record = kPageSize / static_cast<double>(shape.layout.per_page());
  const uint64_t first = uint64_t{1} << ValueOf(kPartitionBits, question.parameters);
  if (first * BucketDirectory::EncodedSize(shape, false) > SkimpyStashShape::kMostNewHeads) {
    return Status(
        StatusCode::kInvalidArgument,
        "the chains of a new index would take more than 1 GiB of memory; choose a smaller "
        "partition_bits or capacity_bits");
  }
  IndexPlan plan;
  plan.least_memory_bytes = static_cast<uint64_t>(least + buffer + partitions * heads);
  plan.memory_bytes = least + partitions * (buffer + directory);
  // A rewrite holds the old and the new log of a partition only.
  plan.flash_bytes = entries * record + partitions * (directory + kPagesPerFile * kPageSize);
  return plan;
}

}  // namespace

SkimpyStashShape SkimpyStashShapeOf(const EngineParameters& parameters) {
  return {.layout = RecordLayout(ValueOf(kRecordBytes, parameters)),
          .entries_per_bucket = static_cast<uint32_t>(ValueOf(kEntriesPerBucket, parameters)),
          .capacity = uint64_t{1} << ValueOf(kCapacityBits, parameters),
          .enhanced = ValueOf(kEnhanced, parameters) != 0,
          .garbage = static_cast<uint32_t>(ValueOf(kGarbage, parameters)),
          .coalesce_ms = ValueOf(kCoalesceMs, parameters)};
}

std::unique_ptr<FlashEngine> MakeSkimpyStashEngine(const EngineParameters& parameters) {
  return std::make_unique<SkimpyStashEngine>(parameters);
}

constinit const IndexEngineRow kSkimpyStashEngine = {
    .number = IndexEngine{5},
    .name = "skimpy_stash",
    .remark = "which chains the entries of a bucket through a log on flash",
    .parameters = kParameters,
    .open = Open,
    .plan = Plan,
    .choose = nullptr};

}  // namespace siltfs
