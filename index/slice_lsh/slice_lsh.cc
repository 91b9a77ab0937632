#include "index/slice_lsh/slice_lsh.h"

#include <map>
#include <utility>

#include "index/device_directories.h"
#include "index/slice_lsh/slice_lsh_impl.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr uint64_t kLeastBuffer = uint64_t{1} << 10;
constexpr uint64_t kMostBuffer = uint64_t{1} << 28;

// The directory itself, and the subdirectories. Each slicetable has a file of its own.
std::vector<PageLogSpec> LogsIn(const std::string& directory) {
  std::vector<PageLogSpec> logs = {
      {.directory = directory, .pages_per_file = PageAddress::kMostPages}};
  for (unsigned number = 0; number < kMostDeviceDirectories; ++number) {
    logs.push_back({.directory = JoinPath(directory, DeviceDirectoryName(number)),
                    .pages_per_file = PageAddress::kMostPages,
                    .sync_names = true});
  }
  return logs;
}

Status CheckOptions(const SliceLshOptions& options) {
  SILTFS_RETURN_IF_ERROR(CheckSliceLshShape(options.shape));
  const bool valid = options.buffer_bytes >= kLeastBuffer && options.buffer_bytes <= kMostBuffer &&
                     options.read_depth >= 1 && options.read_depth <= 1024;
  if (!valid) return {StatusCode::kInvalidArgument, "an option of SliceLSH is out of range"};
  return Status::Ok();
}

// Removes all files of a SliceLSH.
Status EmptyDirectory(Env& env, const std::string& directory) {
  for (unsigned number = 0; number < kMostDeviceDirectories; ++number) {
    SILTFS_RETURN_IF_ERROR(
        EmptyDeviceDirectory(env, JoinPath(directory, DeviceDirectoryName(number))));
  }
  SILTFS_ASSIGN_OR_RETURN(const auto entries, env.ListDirectory(directory));
  for (const DirectoryEntry& entry : entries) {
    if (entry.type != FileType::kRegular) continue;
    SILTFS_RETURN_IF_ERROR(env.RemoveFile(JoinPath(directory, entry.name)));
  }
  return env.SyncDirectory(directory);
}

}  // namespace

SliceLshImpl::SliceLshImpl(Env& env, const SliceLshOptions& options)
    : env_(env),
      options_(options),
      files_(env, LogsIn(options.directory), options.read_only),
      readers_(env, [this] { return options_.read_depth; }),
      state_(env, options.directory) {}

Result<std::unique_ptr<SliceLsh>> SliceLsh::Open(Env& env, const SliceLshOptions& options) {
  SILTFS_RETURN_IF_ERROR(CheckOptions(options));
  auto opened = std::make_unique<SliceLshImpl>(env, options);
  Status status = opened->OpenAll();
  if (status.Is(StatusCode::kCorruption) && options.renew_if_damaged && !options.read_only) {
    opened.reset();
    SILTFS_RETURN_IF_ERROR(EmptyDirectory(env, options.directory));
    opened = std::make_unique<SliceLshImpl>(env, options);
    status = opened->OpenAll();
    opened->NoteRenewed();
  }
  SILTFS_RETURN_IF_ERROR(std::move(status));
  return std::unique_ptr<SliceLsh>(std::move(opened));
}

Status SliceLshImpl::OpenAll() {
  // Fails if the directory is missing.
  SILTFS_RETURN_IF_ERROR(env_.ListDirectory(options_.directory).status());
  MutexLock write_lock(write_mutex_);
  SILTFS_ASSIGN_OR_RETURN(const bool there, state_.Read());
  Status opened = there ? OpenExisting() : MakeNew();
  if (!opened.ok() && opened.path().empty()) return std::move(opened).At(options_.directory);
  return opened;
}

void SliceLshImpl::SetUp(std::vector<LshTables> tables) {
  const SliceLshShape& shape = header_.shape;
  changed_tables_.assign(shape.tables, 0);
  WriterLock lock(mutex_);
  buffer_ =
      std::make_unique<LshBuffer>(shape.tables, shape.most_per_feature, options_.buffer_bytes);
  for (LshTables& one : tables) {
    tables_.push_back(std::make_shared<const LshTables>(std::move(one)));
  }
}

Status SliceLshImpl::MakeNew() {
  SILTFS_ASSIGN_OR_RETURN(const bool any, files_.AnyThere());
  if (any) return {StatusCode::kCorruption, "has files of a SliceLSH, but no manifest"};
  header_.shape = options_.shape;
  if (options_.secret) {
    header_.secret = *options_.secret;
  } else {
    Bytes secret(sizeof header_.secret);
    SILTFS_RETURN_IF_ERROR(env_.FillRandom(secret));
    header_.secret = Decoder(secret).U64();
  }
  SetUp(std::vector<LshTables>(header_.shape.tables));
  if (options_.read_only) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(MakeDirectories());
  changed_tables_.assign(header_.shape.tables, 1);
  changed_ = true;
  return Commit();
}

Status SliceLshImpl::OpenExisting() {
  SILTFS_ASSIGN_OR_RETURN(SliceLshState state, DecodeSliceLshState(state_.records(), files_));
  header_ = state.header;
  SILTFS_RETURN_IF_ERROR(files_.Open());
  SetUp(std::move(state.tables));
  SILTFS_RETURN_IF_ERROR(CountUses());
  state_memory_ = state_.memory_bytes();
  if (options_.read_only) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(MakeDirectories());
  SILTFS_RETURN_IF_ERROR(state_.FinishRead());
  return files_.RemoveLeftovers();
}

Status SliceLshImpl::MakeDirectories() {
  for (unsigned number = 0; number < header_.shape.directories; ++number) {
    const std::string path = JoinPath(options_.directory, DeviceDirectoryName(number));
    const auto there = env_.GetFileInfo(path);
    if (there.ok()) continue;
    if (!there.status().Is(StatusCode::kNotFound)) return there.status();
    SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(env_, options_.directory, path));
  }
  return Status::Ok();
}

std::vector<std::shared_ptr<const LshTables>> SliceLshImpl::Tables() const {
  ReaderLock lock(mutex_);
  return tables_;
}

// Enters the pages that slicetables use. Each has a whole file of its own; otherwise one of them
// could release pages that another one uses.
Status SliceLshImpl::CountUses() {
  std::map<uint64_t, uint64_t> pages_of_file;
  for (const auto& tables : Tables()) {
    for (const LshTable& table : *tables) {
      if (pages_of_file.emplace(table.first.file(), table.pages).second) continue;
      return {StatusCode::kCorruption, "has slicetables that share a file"};
    }
  }
  return files_.SetUses(pages_of_file);
}

uint64_t SliceLshImpl::KeyOf(unsigned table, uint64_t feature) const {
  Encoder out;
  out.U64(feature).U8(static_cast<uint8_t>(table));
  return Checksum(out.view(), header_.secret) >> (64 - kLshKeyBits);
}

SliceLshStats SliceLshImpl::stats() const {
  SliceLshStats stats{.shape = header_.shape, .renewed = renewed_};
  {
    ReaderLock lock(mutex_);
    stats.buffered = buffer_->size();
    stats.memory_bytes += buffer_->memory_bytes();
    for (const auto& tables : tables_) {
      stats.slicetables += tables->size();
      stats.memory_bytes += tables->size() * sizeof(LshTable);
      for (const LshTable& table : *tables) {
        stats.entries += table.entries;
        stats.pages += table.pages;
      }
    }
  }
  stats.memory_bytes += state_memory_ + readers_.memory_bytes();
  stats.flash_bytes = files_.flash_bytes();
  stats.flash_bytes_written = files_.bytes_written() + state_bytes_written_;
  stats.lookups = lookups_;
  stats.flash_reads = flash_reads_;
  stats.damaged_pages = damaged_pages_;
  stats.gone_entries = gone_entries_;
  stats.repeated_entries = repeated_entries_;
  stats.overwritten_entries = overwritten_entries_;
  return stats;
}

Status SliceLshImpl::Verify(const std::function<void(const std::string&)>& report) {
  SILTFS_RETURN_IF_ERROR(files_.Verify([&](const std::string& path, uint64_t offset) {
    report(path + ": the page at " + std::to_string(offset) + " is damaged");
  }));
  const PageFiles::FilePin pin = files_.Pin();
  for (const auto& tables : Tables()) {
    for (const LshTable& table : *tables) {
      SILTFS_RETURN_IF_ERROR(VerifyLshTable(files_, table, report));
    }
  }
  return Status::Ok();
}

Status SliceLshImpl::Close() {
  MutexLock write_lock(write_mutex_);
  if (closed_ || options_.read_only) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(stopped_);
  SILTFS_RETURN_IF_ERROR(FlushAll());
  Status folded = StopUnlessNoSpace(UnlessNoFiles(state_.Fold()));
  state_bytes_written_ = state_.bytes_written();
  closed_ = folded.ok();
  return folded;
}

}  // namespace siltfs
