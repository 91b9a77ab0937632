#include "index/slice_hash/slice_hash_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "index/device_directories.h"
#include "index/flash/flash_index.h"
#include "index/flash/stored_parameters.h"
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
constexpr EngineParameterSpec kRecordBytes = {.name = "record_bytes",
                                              .least = RecordLayout::kEntrySize,
                                              .most = RecordLayout::kPaperSize,
                                              .value = RecordLayout::kEntrySize};
constexpr EngineParameterSpec kChannels = {
    .name = "channels", .least = 1, .most = 256, .value = 32};
constexpr EngineParameterSpec kChunkPages = {
    .name = "chunk_pages", .least = 1, .most = 256, .value = 2};
constexpr EngineParameterSpec kReorder = {.name = "reorder", .least = 0, .most = 1, .value = 1};
constexpr EngineParameterSpec kDirectories = {
    .name = "directories", .least = 1, .most = kMostDeviceDirectories, .value = 1};
constexpr EngineParameterSpec kSpread = {.name = "spread", .least = 0, .most = 1, .value = 0};
constexpr EngineParameterSpec kParameters[] = {
    kPartitionBits, kTableBits,  kIncarnations, kFilterBits,  kRecordBytes,
    kChannels,      kChunkPages, kReorder,      kDirectories, kSpread};

uint32_t Value(const EngineParameterSpec& spec, const EngineParameters& parameters) {
  return static_cast<uint32_t>(ValueOf(spec, parameters));
}

SliceHashOptions OptionsOf(const EngineParameters& parameters) {
  SliceHashOptions options;
  SliceShape& shape = options.shape;
  shape.layout = RecordLayout(Value(kRecordBytes, parameters));
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

class SliceHashEngine final : public FlashEngine {
 public:
  explicit SliceHashEngine(const EngineParameters& parameters)
      : parameters_(parameters), options_(OptionsOf(parameters)) {}

  std::string_view name() const override { return kSliceHashEngine.name; }
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
  std::string EncodeParameters() const override {
    return EncodeEngineParameters(kParameters, parameters_);
  }
  Status DecodeParameters(ByteView bytes) override {
    SILTFS_ASSIGN_OR_RETURN(parameters_, DecodeEngineParameters(name(), kParameters, bytes));
    options_ = OptionsOf(parameters_);
    return Status::Ok();
  }
  unsigned DeviceDirectories() const override {
    return options_.directories == 1 ? 0 : options_.directories;
  }
  std::unique_ptr<FlashPartition> Make(FlashContext& context, uint64_t id,
                                       const HashPrefix& prefix) const override {
    return std::make_unique<SliceHashPartition>(context, id, prefix, options_);
  }
  Result<std::unique_ptr<FlashPartition>> Open(FlashContext& context, uint64_t id,
                                               const HashPrefix& prefix,
                                               ByteView state) const override {
    return SliceHashPartition::Open(context, id, prefix, options_, state);
  }
  uint64_t BufferBytes() const override { return EntryTable::MemoryFor(options_.shape.Table()); }
  uint32_t channels() const override {
    return options_.reorder ? options_.channels * options_.directories : 0;
  }

 private:
  EngineParameters parameters_;
  SliceHashOptions options_;
};

Result<std::unique_ptr<ChunkIndex>> Open(Env& env, const IndexOptions& options) {
  return OpenFlashIndex(
      env,
      {.directory = options.directory,
       .read_only = options.read_only,
       .partition_bits = static_cast<unsigned>(ValueOf(kPartitionBits, options.parameters)),
       .hash_secret = std::nullopt,
       .memory_limit = options.memory_limit},
      MakeSliceHashEngine(options.parameters));
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
      std::max(static_cast<double>(uint64_t{1} << ValueOf(kPartitionBits, question.parameters)),
               4 * entries / (3 * static_cast<double>(options.Capacity())));
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
