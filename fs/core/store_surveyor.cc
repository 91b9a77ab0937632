#include "fs/core/store_surveyor.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "fs/mark/chunk_survey.h"
#include "fs/records/savings_history.h"
#include "fs/records/schema.h"
#include "fs/records/scrub_history.h"
#include "fs/segments/segment_tables.h"
#include "fs/snapshots/sort_directory.h"

namespace siltfs {
namespace {

constexpr const char* kSortDirectory = "sort-survey";

// Returns an empty history for one that cannot be read, because the rest of the survey does not
// need it.
template <typename History>
History ReadHistory(const KvSnapshot& metadata, std::string_view key) {
  const auto value = metadata.Get(key);
  if (!value.ok()) value.status().IgnoreError("fsck reports unreadable metadata");
  if (!value.ok() || !*value) return {};
  auto history = History::Decode(**value);
  if (history.ok()) return *std::move(history);
  history.status().IgnoreError("fsck reports a malformed record");
  return {};
}

PastSizes ToPastSizes(const SavingsSample& sample) {
  return {.taken_ns = sample.taken_ns,
          .logical_bytes = sample.logical_bytes,
          .unique_bytes = sample.unique_bytes,
          .stored_bytes = sample.stored_bytes,
          .dead_bytes = sample.dead_bytes,
          .metadata_bytes = sample.metadata_bytes,
          .index_bytes = sample.index_bytes,
          .files = sample.files,
          .chunks_logical = sample.chunks_logical,
          .chunks_unique = sample.chunks_unique,
          .index_memory_bytes = sample.index_memory_bytes,
          .index_entries = sample.index_entries,
          .damaged_chunks = sample.damaged_chunks};
}

ScrubResult ToScrubResult(const PastScrub& scrub) {
  return {.ended_ns = scrub.found.ended_ns,
          .damaged_blocks = scrub.found.damaged_blocks,
          .damaged_chunks = scrub.found.damaged_chunks,
          .damaged_footers = scrub.found.damaged_footers,
          .chunks = scrub.chunks,
          .bytes = scrub.bytes};
}

}  // namespace

Result<StoreSurvey> StoreSurveyor::Survey(const SurveyProgressFunction& on_progress) {
  const MutexLock lock(mutex_);
  SILTFS_RETURN_IF_ERROR(CheckRunning());
  // Begins before the state is taken, so that no segment that the state needs is removed.
  const ChunkStore::Use use(store_.chunks());
  if (!store_.options().read_only)
    store_.metadata().CommitNow().IgnoreError("the last commit is surveyed");
  const std::shared_ptr<const KvSnapshot> metadata = store_.metadata().CommittedSnapshot();
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords segments, ReadSegmentRecords(*metadata));
  StoreSurvey survey;
  SILTFS_ASSIGN_OR_RETURN(survey.chunks,
                          SortInStore(store_, kSortDirectory, [&](const std::string& directory) {
                            return SurveyWith(directory, *metadata, segments, on_progress);
                          }));
  const auto sizes = ReadHistory<SavingsHistory>(*metadata, kSavingsHistoryKey);
  for (const SavingsSample& sample : sizes.samples()) survey.sizes.push_back(ToPastSizes(sample));
  const auto scrubs = ReadHistory<ScrubHistory>(*metadata, kScrubHistoryKey);
  for (const PastScrub& scrub : scrubs.scrubs()) survey.scrubs.push_back(ToScrubResult(scrub));
  return survey;
}

Result<ChunkSurvey> StoreSurveyor::SurveyWith(const std::string& directory,
                                              const KvSnapshot& metadata,
                                              const SegmentRecords& segments,
                                              const SurveyProgressFunction& on_progress) {
  const Counters counters = store_.metadata().counters();
  const auto counter = [&counters](Counter c) {
    return static_cast<uint64_t>(std::max<int64_t>(counters[static_cast<size_t>(c)], 0));
  };
  ChunkSurveyOptions options;
  options.spill_directory = directory;
  // Snapshots may use more chunks than files do.
  options.expected_references =
      std::max(counter(Counter::kChunkReferences), store_.chunks().totals().chunks);
  options.expected_inodes = counter(Counter::kFiles) + counter(Counter::kDirectories);
  if (parts_.gone) options.gone = [this](SegmentId id) { return parts_.gone->Contains(id); };
  options.more = [this](const std::function<Status(const ChunkName&)>& visit) {
    return store_.chunks().ForEachBase([&visit](const BaseRef& base) { return visit(base.name); });
  };
  options.on_progress = [&](const SurveyProgress& progress) -> Status {
    SILTFS_RETURN_IF_ERROR(CheckRunning());
    return on_progress ? on_progress(progress) : Status::Ok();
  };
  return SurveyChunks(store_.env(), metadata, store_.chunks(), index_, segments, options);
}

Status StoreSurveyor::CheckRunning() const {
  if (stopping_) return {StatusCode::kInterrupted, "the store is being closed"};
  return Status::Ok();
}

void StoreSurveyor::Stop() {
  stopping_ = true;
  const MutexLock lock(mutex_);  // waits for the running survey
}

}  // namespace siltfs
