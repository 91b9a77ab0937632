#include "index/slice_hash/slice_hash_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "index/device_directories.h"
#include "index/flash/flash_index.h"
#include "index/flash/shaped_engine.h"
#include "index/slice_hash/slice_hash_partition.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr EngineParameterSpec kPartitionBits = {
    .name = "partition_bits", .least = 0, .most = 16, .value = 4};
constexpr EngineParameterSpec kTableBits = {
    .name = "table_bits", .least = 0, .most = 14, .value = 10};  // buckets
constexpr EngineParameterSpec kIncarnations = {
    .name = "incarnations", .least = 1, .most = 64, .value = 32};
constexpr EngineParameterSpec kFilterBits = {
    .name = "filter_bits", .least = 0, .most = 24, .value = 0};
constexpr EngineParameterSpec kChannels = {
    .name = "channels", .least = 1, .most = 256, .value = 32};
constexpr EngineParameterSpec kChunkPages = {
    .name = "chunk_pages", .least = 1, .most = 256, .value = 2};
constexpr EngineParameterSpec kReorder = {.name = "reorder", .least = 0, .most = 1, .value = 1};
constexpr EngineParameterSpec kDirectories = {
    .name = "directories", .least = 1, .most = kMostDeviceDirectories, .value = 1};
constexpr EngineParameterSpec kSpread = {.name = "spread", .least = 0, .most = 1, .value = 0};
constexpr EngineParameterSpec kParameters[] = {
    kPartitionBits, kTableBits,  kIncarnations, kFilterBits,  kRecordBytesParameter,
    kChannels,      kChunkPages, kReorder,      kDirectories, kSpread};

uint32_t Value(const EngineParameterSpec& spec, const EngineParameters& parameters) {
  return static_cast<uint32_t>(ValueOf(spec, parameters));
}

SliceHashOptions OptionsOf(const EngineParameters& parameters) {
  SliceHashOptions options;
  SliceShape& shape = options.shape;
  shape.layout = RecordLayout(Value(kRecordBytesParameter, parameters));
  shape.buckets = 1U << Value(kTableBits, parameters);
  // Plan refuses more.
  shape.most_incarnations =
      std::min(Value(kIncarnations, parameters), static_cast<uint32_t>(shape.layout.per_page()));
  shape.filter_bits = Value(kFilterBits, parameters);
  options.directories = Value(kDirectories, parameters);
  options.spread = Value(kSpread, parameters) != 0;
  options.channels = Value(kChannels, parameters);
  options.chunk_pages = Value(kChunkPages, parameters);
  options.reorder = Value(kReorder, parameters) != 0;
  return options;
}

class SliceHashEngine final : public ShapedEngine<SliceHashOptions, SliceHashPartition> {
 public:
  explicit SliceHashEngine(const EngineParameters& parameters)
      : ShapedEngine(kSliceHashEngine, OptionsOf, parameters) {}

  // Each slicetable has a file of its own, which is removed with it.
  std::vector<PageLogSpec> Logs(const std::string& directory) const override {
    std::vector<PageLogSpec> logs = {{.directory = directory, .pages_per_file = 1}};
    for (unsigned number = 0; number < kMostDeviceDirectories; ++number) {
      logs.push_back({.directory = JoinPath(directory, DeviceDirectoryName(number)),
                      .pages_per_file = 1,
                      .sync_names = true});
    }
    return logs;
  }
  unsigned DeviceDirectories() const override {
    return shape().directories == 1 ? 0 : shape().directories;
  }
  uint64_t BufferBytes() const override { return EntryTable::MemoryFor(shape().shape.Table()); }
  uint32_t channels() const override {
    return shape().reorder ? shape().channels * shape().directories : 0;
  }
};

Result<std::unique_ptr<ChunkIndex>> Open(Env& env, const IndexOptions& options) {
  return OpenFlashIndex(env, options, kPartitionBits, MakeSliceHashEngine(options.parameters));
}

Result<IndexPlan> Plan(const IndexPlanQuestion& question) {
  const SliceHashOptions options = OptionsOf(question.parameters);
  const SliceShape& shape = options.shape;
  if (shape.most_incarnations < ValueOf(kIncarnations, question.parameters)) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("a page has room for {} records of {} bytes, so there can be no more "
                              "incarnations than that",
                              shape.layout.per_page(), shape.layout.size()));
  }
  const auto entries = static_cast<double>(question.entries);
  const auto table_bytes = static_cast<double>(EntryTable::MemoryFor(shape.Table()));
  const uint64_t slicetable_bytes = uint64_t{shape.Pages(shape.most_incarnations)} * kPageSize;
  const double filter_bytes = entries * shape.filter_bits / 8;
  // Partitions are between half full and full.
  const double partitions =
      PlannedPartitions(question, kPartitionBits, static_cast<double>(options.Capacity()) * 3 / 4);
  // A flush has a copy of its buffer, the entries of a slicetable, and the new slicetable.
  const uint64_t flush_bytes = EntryTable::MemoryFor(shape.Table()) +
                               shape.Capacity() * SlicePlacement::kBytesPerEntry + slicetable_bytes;
  IndexPlan plan;
  plan.least_memory_bytes = kLeastFlashMemory + EntryTable::MemoryFor(shape.Table()) + flush_bytes;
  plan.memory_bytes = static_cast<double>(kLeastFlashMemory + flush_bytes) +
                      partitions * table_bytes + filter_bytes;
  // The pages of replaced slicetables are removed at the next checkpoint.
  plan.flash_bytes = entries * (static_cast<double>(slicetable_bytes) * options.tables()) /
                         (static_cast<double>(options.Capacity()) * 3 / 4) * 1.5 +
                     filter_bytes;
  return plan;
}

}  // namespace

std::unique_ptr<FlashEngine> MakeSliceHashEngine(const EngineParameters& parameters) {
  return std::make_unique<SliceHashEngine>(parameters);
}

constinit const IndexEngineRow kSliceHashEngine = {
    .number = IndexEngine{3},
    .name = "slice_hash",
    .remark = "which needs little memory, and writes much",
    .parameters = kParameters,
    .open = Open,
    .plan = Plan,
    .choose = nullptr};

}  // namespace siltfs
