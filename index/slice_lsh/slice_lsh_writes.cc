#include <array>
#include <utility>

#include "index/flash/store_files.h"
#include "index/slice_lsh/slice_lsh_impl.h"

namespace siltfs {
namespace {

// After so many pages of replaced slicetables, a commit gives their space back.
constexpr uint64_t kPagesPerCommit = (uint64_t{64} << 20) / kPageSize;

}  // namespace

Status SliceLshImpl::StopUnlessNoSpace(Status status) {
  if (status.ok() || status.Is(StatusCode::kNoSpace)) return status;
  stopped_ = status;
  stopped_.IgnoreError("the next write returns it");
  return status;
}

Status SliceLshImpl::CheckWritable() const {
  if (options_.read_only) return {StatusCode::kReadOnly, "the SliceLSH was opened read-only"};
  if (closed_) return {StatusCode::kInvalidArgument, "the SliceLSH is closed"};
  return stopped_;
}

Status SliceLshImpl::Add(std::span<const uint64_t> features, const SliceLshPlace& place) {
  MutexLock write_lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  if (features.size() != header_.shape.tables || place.segment == kNoSegment ||
      place.ordinal > Location::kMaxOrdinal) {
    return {StatusCode::kInvalidArgument, "these are no super-features of a chunk"};
  }
  std::array<uint64_t, SliceLshShape::kMostTables> keys = {};
  for (unsigned table = 0; table < features.size(); ++table) {
    keys[table] = KeyOf(table, features[table]);
  }
  bool full = false;
  {
    ReaderLock lock(mutex_);
    full = buffer_->full();
  }
  if (full) SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(MergeBuffer()));
  merged_tables_ = 0;
  WriterLock lock(mutex_);
  repeated_entries_ += buffer_->Add(std::span(keys).first(features.size()), place);
  return Status::Ok();
}

Status SliceLshImpl::Flush() {
  MutexLock write_lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  return FlushAll();
}

Status SliceLshImpl::FlushAll() {
  bool any = false;
  {
    ReaderLock lock(mutex_);
    any = buffer_->size() > 0;
  }
  // An earlier commit may have failed.
  return StopUnlessNoSpace(any ? MergeBuffer() : Commit());
}

// Until all tables have their entries, the entries are also in the buffer. So a lookup finds them
// at any time, and a merge that has failed with kNoSpace goes on where it ended.
Status SliceLshImpl::MergeBuffer() {
  while (merged_tables_ < header_.shape.tables) {
    Status merged = MergeTable(merged_tables_);
    if (merged.Is(StatusCode::kNoSpace)) {
      // The commit frees the space of slicetables that were replaced.
      SILTFS_RETURN_IF_ERROR(Commit());
      merged = MergeTable(merged_tables_);
    }
    SILTFS_RETURN_IF_ERROR(merged);
    ++merged_tables_;
    if (uncommitted_pages_ >= kPagesPerCommit) SILTFS_RETURN_IF_ERROR(Commit());
  }
  SILTFS_RETURN_IF_ERROR(Commit());
  merged_tables_ = 0;
  WriterLock lock(mutex_);
  buffer_->Clear();
  return Status::Ok();
}

// Merges the buffer's entries with the newest slicetables, so that each slicetable that is left is
// `growth` times as large as all newer ones.
Status SliceLshImpl::MergeTable(unsigned table) {
  const PageFiles::FilePin pin = files_.Pin();
  const SliceLshShape& shape = header_.shape;
  std::vector<LshEntry> entries;
  LshTables tables;
  {
    ReaderLock lock(mutex_);
    entries = buffer_->Sorted(table);
    tables = *tables_[table];
  }
  uint64_t sum = entries.size();
  size_t kept = tables.size();
  while (kept > 0 && (tables[kept - 1].entries < shape.growth * sum || kept >= shape.most_levels)) {
    sum += tables[--kept].entries;
  }
  const LshTables old(tables.begin() + static_cast<ptrdiff_t>(kept), tables.end());
  tables.resize(kept);
  LshMergeCounts counts;
  auto made = MergeLshTables(files_, entries, old,
                             {.log = LogOf(table),
                              .stream = table,
                              .most_per_feature = shape.most_per_feature,
                              .most_entries = shape.most_entries,
                              .is_gone = &options_.is_gone},
                             counts);
  damaged_pages_ += counts.damaged_pages;
  changed_ = true;  // the file of a merge that failed must leave the list of files, too
  if (!made.ok()) return UnlessNoFiles(std::move(made).status());
  gone_entries_ += counts.gone;
  repeated_entries_ += counts.repeated;
  overwritten_entries_ += counts.overwritten;
  if (made->pages > 0) tables.push_back(*made);
  auto installed = std::make_shared<const LshTables>(std::move(tables));
  {
    WriterLock lock(mutex_);
    tables_[table].swap(installed);
  }
  for (const LshTable& one : old) {
    files_.Release(one.first, one.pages);
    uncommitted_pages_ += one.pages;
  }
  changed_tables_[table] = 1;
  return Status::Ok();
}

// --- Commits ---

Status SliceLshImpl::Commit() {
  if (!changed_) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(UnlessNoFiles(files_.Sync()));
  const Status committed = UnlessNoFiles(state_.Commit(ChangesSinceCommit()));
  state_bytes_written_ = state_.bytes_written();
  state_memory_ = state_.memory_bytes();
  SILTFS_RETURN_IF_ERROR(committed);
  changed_tables_.assign(header_.shape.tables, 0);
  changed_ = false;
  uncommitted_pages_ = 0;
  return files_.Committed();
}

StateMap::Changes SliceLshImpl::ChangesSinceCommit() const {
  StateMap::Changes changes;
  if (state_.records().empty()) {
    changes.emplace_back(kSliceLshHeaderRecord, EncodeSliceLshHeader(header_));
  }
  const auto tables = Tables();
  for (unsigned table = 0; table < tables.size(); ++table) {
    if (changed_tables_[table] == 0) continue;
    changes.emplace_back(LshTablesRecordOf(table), EncodeLshTables(*tables[table]));
  }
  for (auto& [id, state] : files_.changes()) {
    changes.emplace_back(SliceLshFileRecordOf(id), std::move(state));
  }
  return changes;
}

}  // namespace siltfs
