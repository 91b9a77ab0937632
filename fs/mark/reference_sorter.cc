#include "fs/mark/reference_sorter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kFilePrefix = "references-";
constexpr size_t kLeastBlockBytes = 512;
constexpr size_t kMostBlockBytes = 64u << 10;
// The memory is divided into this many blocks. One block is for the output of a merge, so one run
// fewer than this can be merged at once.
constexpr size_t kBlocks = 128;

size_t BlockWords(size_t memory_bytes) {
  const size_t bytes = std::clamp(memory_bytes / kBlocks, kLeastBlockBytes, kMostBlockBytes);
  return bytes / sizeof(uint64_t);
}

size_t FanIn(size_t memory_bytes) {
  const size_t memory = std::max(memory_bytes, RecordSorter<OneWord>::kLeastMemory);
  return memory / (BlockWords(memory_bytes) * sizeof(uint64_t)) - 1;
}

}  // namespace

template <typename Record>
Status RecordSorter<Record>::RemoveLeftovers(Env& env, const std::string& directory) {
  auto entries = ListOrClear(env, directory);
  if (!entries.ok()) {
    return entries.status().Is(StatusCode::kNotFound) ? Status::Ok() : std::move(entries).status();
  }
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.name.starts_with(kFilePrefix)) continue;
    SILTFS_RETURN_IF_ERROR(env.RemoveFile(JoinPath(directory, entry.name)));
  }
  return Status::Ok();
}

template <typename Record>
Result<std::unique_ptr<RecordSorter<Record>>> RecordSorter<Record>::Create(
    Env& env, ReferenceSorterOptions options) {
  if (!options.unnamed_files) SILTFS_RETURN_IF_ERROR(RemoveLeftovers(env, options.directory));
  std::array<uint8_t, sizeof(uint64_t)> random;
  SILTFS_RETURN_IF_ERROR(env.FillRandom(random));
  uint64_t seed = 0;
  std::memcpy(&seed, random.data(), sizeof seed);
  return std::unique_ptr<RecordSorter>(new RecordSorter(env, std::move(options), seed));
}

template <typename Record>
RecordSorter<Record>::RecordSorter(Env& env, ReferenceSorterOptions options, uint64_t seed)
    : env_(env),
      options_(std::move(options)),
      block_words_(BlockWords(options_.memory_bytes)),
      fan_in_(FanIn(options_.memory_bytes)),
      capacity_((fan_in_ * block_words_ + kWordsOf<Record> - 1) / kWordsOf<Record>),
      seed_(seed) {
  records_.reserve(capacity_);
}

template <typename Record>
RecordSorter<Record>::~RecordSorter() {
  for (size_t level = 0; level < levels_.size(); ++level) {
    RemoveFileOf(level).IgnoreError("the next sorter removes it");
  }
  if (made_directory_) {
    env_.RemoveDirectory(options_.directory).IgnoreError("an empty directory does no harm");
  }
}

// --- Adding ---

template <typename Record>
void RecordSorter<Record>::SortRecords() {
  std::sort(records_.begin(), records_.end());
  records_.erase(std::unique(records_.begin(), records_.end()), records_.end());
}

template <typename Record>
Status RecordSorter<Record>::MakeRoom() {
  SortRecords();
  // If many records were repeated, dropping them has made enough room.
  if (records_.size() <= capacity_ / 2) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(Spill());
  for (size_t level = 0; level < levels_.size() && levels_[level].runs.size() >= fan_in_; ++level) {
    SILTFS_RETURN_IF_ERROR(MergeLevel(level));
  }
  return Status::Ok();
}

// Writes the records in memory, which are sorted, as a run.
template <typename Record>
Status RecordSorter<Record>::Spill() {
  SILTFS_ASSIGN_OR_RETURN(RunFile* const file, FileOf(0, records_.size() * sizeof(Record)));
  RunWriter<Record> writer(*file, block_);
  for (const Record& record : records_) SILTFS_RETURN_IF_ERROR(writer.Append(record));
  SILTFS_RETURN_IF_ERROR(writer.Finish());
  spilled_bytes_ += file->runs.back().bytes;
  records_.clear();
  return Status::Ok();
}

// --- Levels ---

template <typename Record>
Result<RunFile*> RecordSorter<Record>::FileOf(size_t level, uint64_t bytes_to_come) {
  if (levels_.empty()) {
    Status made = env_.CreateDirectory(options_.directory);
    made_directory_ = made.ok() && !options_.unnamed_files;
    if (!made.ok() && !made.Is(StatusCode::kAlreadyExists)) return made;
    block_.resize(block_words_);
  }
  SILTFS_ASSIGN_OR_RETURN(const DiskSpace space, env_.GetDiskSpace(options_.directory));
  if (space.available_bytes < options_.minimum_free_bytes ||
      space.available_bytes - options_.minimum_free_bytes < bytes_to_come) {
    return Status(StatusCode::kNoSpace,
                  fmt::format("the disk has no room for {} bytes of data to sort", bytes_to_come))
        .At(options_.directory);
  }
  if (levels_.size() <= level) levels_.resize(level + 1);
  RunFile& file = levels_[level];
  if (file.file != nullptr) return &file;
  // Other processes may make unnamed files in the same directory at this moment.
  const uint64_t unique = options_.unnamed_files ? seed_ : 0;
  file.path = JoinPath(options_.directory, fmt::format("{}{:x}", kFilePrefix, unique + ++files_));
  // The seed of a block is the file's seed plus the block's offset. The seeds of two files are so
  // far apart that no two blocks have the same seed.
  file.seed = seed_ + (files_ << 48);
  SILTFS_ASSIGN_OR_RETURN(file.file, env_.OpenFile(file.path, {.mode = OpenMode::kCreate}));
  if (options_.unnamed_files) SILTFS_RETURN_IF_ERROR(env_.RemoveFile(file.path));
  return &file;
}

template <typename Record>
Status RecordSorter<Record>::RemoveFileOf(size_t level) {
  RunFile gone = std::exchange(levels_[level], {});
  if (gone.file == nullptr) return Status::Ok();
  gone.file.reset();
  if (options_.unnamed_files) return Status::Ok();
  return env_.RemoveFile(gone.path);
}

// Returns readers of all runs of these levels. The levels must have at most fan_in_ runs together.
template <typename Record>
std::vector<RunReader<Record>> RecordSorter<Record>::ReadersOf(size_t first_level,
                                                               size_t end_level) {
  records_.resize(capacity_);
  const std::span<uint64_t> memory(reinterpret_cast<uint64_t*>(records_.data()),
                                   capacity_ * kWordsOf<Record>);
  std::vector<RunReader<Record>> readers;
  for (size_t level = first_level; level < end_level; ++level) {
    for (const SortedRun& run : levels_[level].runs) {
      const auto block = memory.subspan(readers.size() * block_words_, block_words_);
      readers.emplace_back(levels_[level], run, block);
    }
  }
  return readers;
}

// Merges the level's runs into one run of the next level.
template <typename Record>
Status RecordSorter<Record>::MergeLevel(size_t level) {
  const uint64_t bytes = levels_[level].end;
  SILTFS_ASSIGN_OR_RETURN(RunFile* const file, FileOf(level + 1, bytes));
  RunWriter<Record> writer(*file, block_);
  RunMerge<Record> merge;
  SILTFS_RETURN_IF_ERROR(merge.Start(ReadersOf(level, level + 1)));
  while (!merge.AtEnd()) {
    SILTFS_RETURN_IF_ERROR(writer.Append(merge.record()));
    SILTFS_RETURN_IF_ERROR(merge.Next());
  }
  SILTFS_RETURN_IF_ERROR(writer.Finish());
  spilled_bytes_ += file->runs.back().bytes;
  records_.clear();
  return RemoveFileOf(level);
}

template <typename Record>
size_t RecordSorter<Record>::RunCount() const {
  size_t runs = 0;
  for (const RunFile& file : levels_) runs += file.runs.size();
  return runs;
}

// --- Reading ---

template <typename Record>
Status RecordSorter<Record>::Sort() {
  SortRecords();
  at_ = 0;
  if (!spilled()) return Status::Ok();
  if (!records_.empty()) SILTFS_RETURN_IF_ERROR(Spill());
  // Merge the lowest levels first, because their runs are the shortest and cost the fewest writes.
  for (size_t level = 0; RunCount() > fan_in_; ++level) {
    if (!levels_[level].runs.empty()) SILTFS_RETURN_IF_ERROR(MergeLevel(level));
  }
  return merge_.Start(ReadersOf(0, levels_.size()));
}

template class RecordSorter<OneWord>;
template class RecordSorter<TwoWords>;
template class RecordSorter<ThreeWords>;
template class RecordSorter<EightWords>;

}  // namespace siltfs
