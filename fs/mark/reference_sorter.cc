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
  const size_t memory = std::max(memory_bytes, ReferenceSorter::kLeastMemory);
  return memory / (BlockWords(memory_bytes) * sizeof(uint64_t)) - 1;
}

}  // namespace

Status ReferenceSorter::RemoveLeftovers(Env& env, const std::string& directory) {
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

Result<std::unique_ptr<ReferenceSorter>> ReferenceSorter::Create(Env& env,
                                                                 ReferenceSorterOptions options) {
  SILTFS_RETURN_IF_ERROR(RemoveLeftovers(env, options.directory));
  std::array<uint8_t, sizeof(uint64_t)> random;
  SILTFS_RETURN_IF_ERROR(env.FillRandom(random));
  uint64_t seed = 0;
  std::memcpy(&seed, random.data(), sizeof seed);
  return std::unique_ptr<ReferenceSorter>(new ReferenceSorter(env, std::move(options), seed));
}

ReferenceSorter::ReferenceSorter(Env& env, ReferenceSorterOptions options, uint64_t seed)
    : env_(env),
      options_(std::move(options)),
      block_words_(BlockWords(options_.memory_bytes)),
      fan_in_(FanIn(options_.memory_bytes)),
      capacity_(fan_in_ * block_words_),
      seed_(seed) {
  numbers_.reserve(capacity_);
}

ReferenceSorter::~ReferenceSorter() {
  for (size_t level = 0; level < levels_.size(); ++level) {
    RemoveFileOf(level).IgnoreError("the next sorter removes it");
  }
  if (made_directory_) {
    env_.RemoveDirectory(options_.directory).IgnoreError("an empty directory does no harm");
  }
}

// --- Adding ---

void ReferenceSorter::SortNumbers() {
  std::sort(numbers_.begin(), numbers_.end());
  numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
}

Status ReferenceSorter::MakeRoom() {
  SortNumbers();
  // If many numbers were repeated, dropping them has made enough room.
  if (numbers_.size() <= capacity_ / 2) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(Spill());
  for (size_t level = 0; level < levels_.size() && levels_[level].runs.size() >= fan_in_; ++level) {
    SILTFS_RETURN_IF_ERROR(MergeLevel(level));
  }
  return Status::Ok();
}

// Writes the numbers in memory, which are sorted, as a run.
Status ReferenceSorter::Spill() {
  SILTFS_ASSIGN_OR_RETURN(RunFile* const file, FileOf(0, numbers_.size() * sizeof(uint64_t)));
  RunWriter writer(*file, block_);
  for (const uint64_t number : numbers_) SILTFS_RETURN_IF_ERROR(writer.Append(number));
  SILTFS_RETURN_IF_ERROR(writer.Finish());
  spilled_bytes_ += file->runs.back().bytes;
  numbers_.clear();
  return Status::Ok();
}

// --- Levels ---

Result<RunFile*> ReferenceSorter::FileOf(size_t level, uint64_t bytes_to_come) {
  if (levels_.empty()) {
    Status made = env_.CreateDirectory(options_.directory);
    made_directory_ = made.ok();
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
  file.path = JoinPath(options_.directory, fmt::format("{}{}", kFilePrefix, ++files_));
  // The seed of a block is the file's seed plus the block's offset. The seeds of two files are so
  // far apart that no two blocks have the same seed.
  file.seed = seed_ + (files_ << 48);
  SILTFS_ASSIGN_OR_RETURN(file.file, env_.OpenFile(file.path, {.mode = OpenMode::kCreate}));
  return &file;
}

Status ReferenceSorter::RemoveFileOf(size_t level) {
  RunFile gone = std::exchange(levels_[level], {});
  if (gone.file == nullptr) return Status::Ok();
  gone.file.reset();
  return env_.RemoveFile(gone.path);
}

// Returns readers of all runs of these levels. The levels must have at most fan_in_ runs together.
std::vector<RunReader> ReferenceSorter::ReadersOf(size_t first_level, size_t end_level) {
  numbers_.resize(capacity_);
  std::vector<RunReader> readers;
  for (size_t level = first_level; level < end_level; ++level) {
    for (const SortedRun& run : levels_[level].runs) {
      const auto block =
          std::span<uint64_t>(numbers_).subspan(readers.size() * block_words_, block_words_);
      readers.emplace_back(levels_[level], run, block);
    }
  }
  return readers;
}

// Merges the level's runs into one run of the next level.
Status ReferenceSorter::MergeLevel(size_t level) {
  const uint64_t bytes = levels_[level].end;
  SILTFS_ASSIGN_OR_RETURN(RunFile* const file, FileOf(level + 1, bytes));
  RunWriter writer(*file, block_);
  RunMerge merge;
  SILTFS_RETURN_IF_ERROR(merge.Start(ReadersOf(level, level + 1)));
  while (!merge.AtEnd()) {
    SILTFS_RETURN_IF_ERROR(writer.Append(merge.number()));
    SILTFS_RETURN_IF_ERROR(merge.Next());
  }
  SILTFS_RETURN_IF_ERROR(writer.Finish());
  spilled_bytes_ += file->runs.back().bytes;
  numbers_.clear();
  return RemoveFileOf(level);
}

size_t ReferenceSorter::RunCount() const {
  size_t runs = 0;
  for (const RunFile& file : levels_) runs += file.runs.size();
  return runs;
}

// --- Reading ---

Status ReferenceSorter::Sort() {
  SortNumbers();
  at_ = 0;
  if (!spilled()) return Status::Ok();
  if (!numbers_.empty()) SILTFS_RETURN_IF_ERROR(Spill());
  // Merge the lowest levels first, because their runs are the shortest and cost the fewest writes.
  for (size_t level = 0; RunCount() > fan_in_; ++level) {
    if (!levels_[level].runs.empty()) SILTFS_RETURN_IF_ERROR(MergeLevel(level));
  }
  return merge_.Start(ReadersOf(0, levels_.size()));
}

}  // namespace siltfs
