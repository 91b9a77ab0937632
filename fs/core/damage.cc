// Damage: reported once, when a read meets it, and searched for by scrubs.
#include <fmt/format.h>

#include <functional>
#include <set>

#include "fs/core/damaged_files.h"
#include "fs/core/file_system_impl.h"
#include "fs/meta/path_finder.h"

namespace siltfs {
namespace {

// Reported places that are remembered, at 50 bytes each.
constexpr size_t kMostReported = 4096;
// Files that a scrub names.
constexpr size_t kMostNamed = 1000;

}  // namespace

void FileSystemImpl::ReportDamage(InodeNumber inode, uint64_t offset, uint64_t length,
                                  const Status& damage) {
  if (!options_.report) return;
  // A block is identified by its file and offset. If the segment of a chunk is gone, the chunk's
  // place is unknown. Then all chunks of the file may be gone, so the file is reported once.
  const std::string place = damage.offset() ? fmt::format("{} {}", damage.path(), *damage.offset())
                                            : fmt::format("inode {}", inode);
  bool last = false;
  {
    MutexLock lock(reported_mutex_);
    if (reported_.size() >= kMostReported ||
        !reported_.insert(std::hash<std::string>()(place)).second)
      return;
    last = reported_.size() == kMostReported;
  }
  options_.report(fmt::format("inode {} cannot be read between bytes {} and {}: {}", inode, offset,
                              offset + length, damage.ToString()));
  if (last) options_.report("more damage is not logged; run `siltfs scrub`");
}

Result<ScrubReport> FileSystemImpl::Scrub(ScrubMode mode) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  const int64_t begun = env_.MonotonicNanoseconds();
  const ChunkStore::ScrubCall call(*chunks_);
  // The scrub verifies all chunks that are stored by now, if metadata knows of them.
  chunks_->WaitUntilSealed();
  SILTFS_RETURN_IF_ERROR(metadata_->WaitForRoom());
  SILTFS_ASSIGN_OR_RETURN(const uint64_t commit, metadata_->Join());
  SILTFS_RETURN_IF_ERROR(metadata_->Commit(commit));
  const ScrubPace pace = mode == ScrubMode::kGentle ? ScrubPace::kGentle : ScrubPace::kFull;
  SILTFS_ASSIGN_OR_RETURN(const ScrubOutcome outcome, chunks_->Scrub(pace));
  ScrubReport report;
  report.resumed = outcome.resumed;
  report.complete = outcome.complete;
  report.segments = outcome.statistics.segments;
  report.blocks = outcome.statistics.blocks;
  report.chunks = outcome.statistics.chunks;
  report.bytes = outcome.statistics.bytes;
  report.damaged_blocks = outcome.statistics.damaged_blocks;
  report.damaged_chunks = outcome.statistics.damaged_chunks;
  report.damaged_footers = outcome.statistics.damaged_footers;
  if (outcome.complete) {
    const Status named = NameDamagedFiles(report);
    if (!named.ok() && !named.Is(StatusCode::kInterrupted)) return named;
  }
  report.seconds = static_cast<double>(env_.MonotonicNanoseconds() - begun) / 1e9;
  return report;
}

Status FileSystemImpl::NameDamagedFiles(ScrubReport& report) {
  const std::vector<DamagedBlock> damage = chunks_->damage();
  if (damage.empty()) return Status::Ok();
  const ChunkStore::Use use(*chunks_);
  const auto metadata = metadata_->CommittedSnapshot();
  SILTFS_ASSIGN_OR_RETURN(const DamagedFiles found,
                          FindDamagedFiles(*metadata, *chunks_, damage, kMostNamed,
                                           [this] { return chunks_->CheckScrubbing(); }));
  report.damaged_files = found.count;
  if (!options_.report) return Status::Ok();
  std::set<uint64_t> inodes;
  for (const DamagedFile& file : found.files) inodes.insert(file.inode);
  SILTFS_ASSIGN_OR_RETURN(const auto paths, FindPaths(*metadata, inodes));
  for (const DamagedFile& file : found.files) {
    const auto path = paths.find(file.inode);
    options_.report(fmt::format("{} (inode {}): {} bytes cannot be read, the first at offset {}",
                                path == paths.end() ? "a file without a name" : path->second,
                                file.inode, file.bytes, file.offset));
  }
  if (found.count > found.files.size()) {
    options_.report(
        fmt::format("{} more files have damage in them", found.count - found.files.size()));
  }
  return Status::Ok();
}

}  // namespace siltfs
