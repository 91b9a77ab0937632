#include "fs/check/segment_check_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "fs/check/segment_walk.h"
#include "fs/open/segment_check.h"
#include "store/segment/segment_scan.h"

namespace siltfs {
namespace {

constexpr unsigned kMostThreads = 64;

Result<std::vector<SegmentId>> ListAll(CheckContext& context) {
  auto listing = context.segment_store->List();
  if (!listing.ok()) {
    if (!IsDamage(listing.status())) return std::move(listing).status();
    context.Report("segments-missing", listing.status());
    return std::vector<SegmentId>();
  }
  const Status place =
      CheckPlaceOfSegments(*context.segment_store, *listing, HoldAnything(context.segments));
  if (!place.ok()) {
    context.Report("segments-missing", place);
    return std::vector<SegmentId>();
  }
  // Temporary files, files of removed segments, segments of a fenced writer and objects that
  // arrived after the removal of their segments are not needed. They are no findings, because a
  // crash, a takeover or a slow request may leave them.
  uint64_t leftovers = listing->temporaries.size();
  leftovers += std::erase_if(listing->ids, [&](SegmentId id) { return context.IsLeftover(id); });
  context.Count([leftovers](CheckReport& report) { report.leftover_files += leftovers; });
  for (const auto& [id, record] : context.segments) {
    if (std::binary_search(listing->ids.begin(), listing->ids.end(), id)) continue;
    // Recovery removes the file of a segment without committed chunks before it removes the record.
    // A crash between the two steps leaves only the record.
    const bool empty = record.chunks == 0 || record.length <= kSegmentHeaderSize;
    if (empty && !record.sealed && !context.clean()) continue;
    context.Report(
        {.code = "segment-missing",
         .path = context.segment_store->NameOf(id),
         .message = fmt::format("the segment is missing, and {} chunks with it", record.chunks)});
  }
  return std::move(listing->ids);
}

// Distributes the segments to threads, and keeps the first failure of a thread.
class Run {
 public:
  Run(CheckContext& context, ChunkFinder& finder, std::vector<SegmentId> ids)
      : context_(context), finder_(finder), ids_(std::move(ids)) {}

  Status All(unsigned threads) {
    std::vector<std::thread> others;
    for (unsigned i = 1; i < threads; ++i) others.emplace_back([this] { Work(); });
    Work();
    for (std::thread& other : others) other.join();
    MutexLock lock(mutex_);
    return failure_;
  }

 private:
  void Work() {
    auto namer = ChunkNamer::Create(context_.superblock.uuid.bytes);
    if (!namer.ok()) return Fail(std::move(namer).status());
    SegmentWalk walk(context_, finder_, std::move(namer).value());
    while (!stopping_) {
      const size_t at = next_++;
      if (at >= ids_.size()) return;
      context_.Progress({.phase = "segments", .done = at, .total = ids_.size()});
      Status checked = walk.Check(ids_[at]);
      if (!checked.ok()) return Fail(std::move(checked));
    }
  }

  void Fail(Status status) SILTFS_EXCLUDES(mutex_) {
    stopping_ = true;
    MutexLock lock(mutex_);
    if (failure_.ok()) {
      failure_ = std::move(status);
    } else {
      status.IgnoreError("only the first failure is returned");
    }
  }

  CheckContext& context_;
  ChunkFinder& finder_;
  const std::vector<SegmentId> ids_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  Status failure_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace

Status CheckAllSegments(CheckContext& context, ChunkFinder& finder) {
  SILTFS_ASSIGN_OR_RETURN(std::vector<SegmentId> ids, ListAll(context));
  const unsigned threads = std::clamp(context.options.threads, 1u, kMostThreads);
  return Run(context, finder, std::move(ids)).All(threads);
}

Status ForEachBlock(CheckContext& context, ChunkFinder& finder, std::optional<SegmentKind> kind,
                    const std::function<Status(const BlockHead& head, uint32_t offset)>& visit) {
  const auto listing = context.segment_store->List();
  if (!listing.ok()) return Status::Ok();  // already reported
  for (const SegmentId id : listing->ids) {
    SILTFS_RETURN_IF_ERROR(context.Continue());
    if (context.IsLeftover(id)) continue;
    auto reader = finder.Open(id);
    if (!reader.ok()) continue;
    if (kind) {
      const auto header = (*reader)->ReadHeader();
      if (header.ok() && header->kind != *kind) continue;
    }
    ScanOptions options;
    const auto trailer = (*reader)->ReadTrailer();
    if (trailer.ok()) {
      options.committed_length = options.end = trailer->data_end;
    } else {
      const SegmentRecord* record = context.RecordOf(id);
      const bool sealed = record != nullptr && record->sealed;
      if (sealed) options.end = LastDataEnd(record->length, record->chunks);
      options.committed_length = sealed ? options.end : record == nullptr ? 0 : record->length;
      options.verify_payloads = true;
    }
    options.on_damage = [](uint64_t, uint64_t, const Status& cause) {
      cause.IgnoreError("SegmentWalk reported it");
      return Status::Ok();
    };
    bool refused = false;
    auto scanned = ScanBlocks((*reader)->file(), context.Identity(id), options,
                              [&](const BlockHead& head, uint32_t offset) {
                                Status visited = visit(head, offset);
                                refused = !visited.ok();
                                return visited;
                              });
    // Damage was reported by SegmentWalk; a failure of `visit` ends the visit.
    if (!scanned.ok() && (refused || !IsDamage(scanned.status())))
      return std::move(scanned).status();
  }
  return Status::Ok();
}

}  // namespace siltfs
