#include "index/flash/flash_index_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "index/device_directories.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

// The engine's logs, and the log of puts.
std::vector<PageLogSpec> LogsOf(const FlashEngine& engine, const FlashIndexOptions& options) {
  std::vector<PageLogSpec> logs = engine.Logs(options.directory);
  logs.push_back({.directory = options.directory, .pages_per_file = PutLog::kPagesPerFile});
  for (PageLogSpec& log : logs) {
    log.pages_per_file = std::min(log.pages_per_file, options.most_pages_per_file);
  }
  return logs;
}

}  // namespace

FlashIndex::FlashIndex(Env& env, const FlashIndexOptions& options,
                       std::unique_ptr<FlashEngine> engine)
    : ChunkIndex(options.read_only),
      env_(env),
      options_(options),
      engine_(std::move(engine)),
      logs_(LogsOf(*engine_, options)),
      files_(env, logs_, options.read_only),
      context_{.files = files_,
               .read_only = options.read_only,
               .present_gone = [this] { return gone(); }},
      state_(env, options.directory),
      puts_(files_, logs_.size() - 1),
      readers_(env, [this] { return ReadDepth(); }),
      memory_limit_(options.memory_limit) {}

Status FlashIndex::Open() {
  // Fails if the directory is missing.
  SILTFS_RETURN_IF_ERROR(env_.ListDirectory(options_.directory).status());
  SILTFS_ASSIGN_OR_RETURN(const bool there, state_.Read());
  SILTFS_RETURN_IF_ERROR(there ? OpenExisting() : MakeNew());
  FitFilters();
  return Status::Ok();
}

Status FlashIndex::MakeNew() {
  SILTFS_ASSIGN_OR_RETURN(const bool any, files_.AnyThere());
  if (any) {
    return Status(StatusCode::kCorruption, "has files of an index, but no manifest")
        .At(options_.directory);
  }
  if (options_.hash_secret) {
    name_hash_.secret = *options_.hash_secret;
  } else {
    Bytes secret(sizeof name_hash_.secret);
    SILTFS_RETURN_IF_ERROR(env_.FillRandom(secret));
    name_hash_.secret = Decoder(secret).U64();
  }
  header_ = {.engine = std::string(engine_->name()),
             .parameters = engine_->EncodeParameters(),
             .secret = name_hash_.secret};
  PartitionMap::Partitions made;
  for (uint64_t i = 0; i < uint64_t{1} << options_.partition_bits; ++i) {
    const unsigned depth = options_.partition_bits;
    const HashPrefix prefix{depth == 0 ? 0 : i << (64 - depth), depth};
    made.push_back(engine_->Make(context_, header_.next_partition_id++, prefix));
  }
  Install(std::make_shared<PartitionMap>(std::move(made)));
  if (options_.read_only) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(MakeDeviceDirectories());
  // The manifest exists before any other file: files without a manifest would look like damage.
  changed_ = true;
  return Checkpoint();
}

Status FlashIndex::OpenExisting() {
  auto decoded = DecodeFlashState(state_.records(), files_);
  if (!decoded.ok()) return std::move(decoded).status().At(options_.directory);
  header_ = decoded->header;
  if (header_.engine != engine_->name()) {
    return Status(StatusCode::kCorruption,
                  fmt::format("is an index of the engine \"{}\"", header_.engine))
        .At(options_.directory);
  }
  if (header_.entries_lost) {
    return Status(StatusCode::kCorruption, "has lost entries to damaged pages")
        .At(options_.directory);
  }
  Status parameters = engine_->DecodeParameters(AsBytes(header_.parameters));
  if (!parameters.ok()) return std::move(parameters).At(options_.directory);
  name_hash_.secret = header_.secret;
  SILTFS_RETURN_IF_ERROR(files_.Open());
  PartitionMap::Partitions opened;
  for (const PartitionState& state : decoded->partitions) {
    auto partition = engine_->Open(context_, state.id, state.prefix, AsBytes(state.state));
    if (!partition.ok()) {
      Status failed = std::move(partition).status();
      return failed.path().empty() ? std::move(failed).At(options_.directory) : failed;
    }
    (*partition)->log_from = state.log_from;
    (*partition)->changed = false;
    opened.push_back(std::move(*partition));
  }
  Install(std::make_shared<PartitionMap>(std::move(opened)));
  SILTFS_RETURN_IF_ERROR(ReplayPuts());
  SILTFS_RETURN_IF_ERROR(CountUses());
  complete_ = header_.complete_sequence;
  durable_ = header_.complete_sequence;
  state_memory_ = state_.memory_bytes();
  if (options_.read_only) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(MakeDeviceDirectories());
  SILTFS_RETURN_IF_ERROR(state_.FinishRead());
  SILTFS_RETURN_IF_ERROR(files_.RemoveLeftovers());
  state_bytes_written_ = state_.bytes_written();
  return UnlessNoFiles(SyncNames(env_, options_.directory));
}

Status FlashIndex::MakeDeviceDirectories() {
  for (unsigned number = 0; number < engine_->DeviceDirectories(); ++number) {
    const std::string path = JoinPath(options_.directory, DeviceDirectoryName(number));
    const auto there = env_.GetFileInfo(path);
    if (there.ok()) continue;
    if (!there.status().Is(StatusCode::kNotFound)) return there.status();
    SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(env_, options_.directory, path));
  }
  return Status::Ok();
}

// Enters the pages that partitions and the log of puts use.
Status FlashIndex::CountUses() {
  std::map<uint64_t, uint64_t> pages_of_file;
  const auto partitions = this->partitions();
  for (const auto& partition : partitions->all()) {
    partition->ForEachFile([&](uint64_t file, uint64_t pages) { pages_of_file[file] += pages; });
  }
  for (const uint64_t file : files_.FilesOf(logs_.size() - 1, 0)) {
    pages_of_file[file] += files_.PagesOf(file);
  }
  Status counted = files_.SetUses(pages_of_file);
  return counted.ok() || !counted.path().empty() ? counted
                                                 : std::move(counted).At(options_.directory);
}

Status FlashIndex::ReplayPuts() {
  const auto partitions = this->partitions();
  // A buffer in memory refuses entries long before; only their order may let it refuse some again.
  const uint64_t most_buffered = 2 * engine_->BufferBytes() / RecordLayout::kEntrySize;
  SILTFS_RETURN_IF_ERROR(puts_.Replay([&](uint64_t number, const FlashEntry& entry) -> Status {
    if (entry.hash == 0) return {StatusCode::kCorruption, "has an entry without a hash"};
    FlashPartition& partition = partitions->Find(entry.hash);
    if (number < partition.log_from) return Status::Ok();
    partition.InsertReplayed(entry);
    if (partition.buffered_entries() > most_buffered) {
      return {StatusCode::kCorruption, "has more entries than the buffers have room for"};
    }
    return Status::Ok();
  }));
  // A partition ignores entries with numbers below its log_from.
  for (const auto& partition : partitions->all()) puts_.RaiseNumber(partition->log_from);
  numbers_at_checkpoint_ = puts_.next_number();
  return Status::Ok();
}

// --- State ---

IndexStats FlashIndex::StatsImpl() const {
  IndexStats stats;
  stats.engine = engine_->name();
  const auto partitions = this->partitions();
  for (const auto& partition : partitions->all()) {
    const size_t first = stats.stores.size();
    partition->AddStats(stats.stores);
    for (size_t i = first; i < stats.stores.size(); ++i) {
      stats.stores[i].partition = static_cast<uint32_t>(partition->id());
      stats.entries += stats.stores[i].entries;
    }
  }
  // Its entries are counted in the buffers.
  stats.stores.push_back({.kind = "put_log",
                          .flash_bytes = puts_.pages() * kPageSize,
                          .memory_bytes = puts_.memory_bytes()});
  stats.memory_bytes = context_.buffer_bytes.load(std::memory_order_relaxed) +
                       context_.filter_bytes.load(std::memory_order_relaxed) +
                       context_.table_bytes.load(std::memory_order_relaxed) +
                       readers_.memory_bytes() + puts_.memory_bytes() +
                       state_memory_.load(std::memory_order_relaxed) + partitions->memory_bytes();
  stats.flash_bytes = files_.flash_bytes();
  stats.flash_reads = flash_reads_.load(std::memory_order_relaxed);
  stats.flash_pages_read = stats.flash_reads;
  stats.put_flash_reads = put_flash_reads_.load(std::memory_order_relaxed);
  stats.flash_bytes_written =
      files_.bytes_written() + state_bytes_written_.load(std::memory_order_relaxed);
  stats.damaged_pages = damaged_pages();
  stats.damaged_filters = context_.damaged_filters.load(std::memory_order_relaxed);
  stats.conversions = conversions_.load(std::memory_order_relaxed);
  stats.merges = merges_.load(std::memory_order_relaxed);
  return stats;
}

Result<std::unique_ptr<ChunkIndex>> OpenFlashIndex(Env& env, const FlashIndexOptions& options,
                                                   std::unique_ptr<FlashEngine> engine) {
  auto index = std::make_unique<FlashIndex>(env, options, std::move(engine));
  SILTFS_RETURN_IF_ERROR(index->Open());
  return std::unique_ptr<ChunkIndex>(std::move(index));
}

Result<std::unique_ptr<ChunkIndex>> OpenFlashIndex(Env& env, const IndexOptions& options,
                                                   const EngineParameterSpec& partition_bits,
                                                   std::unique_ptr<FlashEngine> engine) {
  return OpenFlashIndex(env,
                        FlashIndexOptions{.directory = options.directory,
                                          .read_only = options.read_only,
                                          .partition_bits = static_cast<unsigned>(
                                              ValueOf(partition_bits, options.parameters)),
                                          .hash_secret = std::nullopt,
                                          .memory_limit = options.memory_limit},
                        std::move(engine));
}

}  // namespace siltfs
