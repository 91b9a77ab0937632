#include "fs/check/index_check.h"

#include <fmt/format.h>

#include <utility>

#include "fs/guide/segment_guide.h"
#include "fs/open/store_index.h"
#include "fs/open/store_layout.h"
#include "index/open_index.h"
#include "index/slice_lsh/slice_lsh.h"

namespace siltfs {
namespace {

// Counts all entries, and the stale ones. An entry is stale if its segment is missing or has no
// chunk with this ordinal. The index has no names to compare; each use of an entry verifies the
// name in the segment.
Status CountEntries(CheckContext& context) {
  uint64_t entries = 0;
  uint64_t stale = 0;
  const Status counted = context.index->ForEach([&](const OrderedEntry& entry) {
    stale += entry.location.ordinal < context.ChunksIn(entry.location.segment) ? 0 : 1;
    if (++entries % 4096 != 0) return Status::Ok();
    context.Progress({.phase = "index", .done = entries, .total = 0});
    return context.Continue();
  });
  context.Count([&](CheckReport& report) {
    report.index_entries = entries;
    report.stale_index_entries = stale;
  });
  return counted;
}

}  // namespace

Status OpenCheckedIndex(CheckContext& context) {
  SILTFS_ASSIGN_OR_RETURN(const bool unfinished, IsRebuildUnfinished(context.env, context.store()));
  if (unfinished) {
    context.Report({.code = "index-rebuild",
                    .path = IndexPath(context.store()),
                    .message = "rebuilding the chunk index from the segments was interrupted; "
                               "the next mount continues it"});
    return Status::Ok();
  }
  IndexOptions options = IndexOptionsOf(context.superblock, context.store());
  options.read_only = true;
  options.memory_limit = kNoMemoryLimit;
  auto index = OpenIndex(context.env, options);
  if (index.ok()) {
    context.index = std::move(index).value();
    return Status::Ok();
  }
  const Status& failure = index.status();
  if (failure.Is(StatusCode::kNeedsNewer) || !IsDamage(failure)) return failure;
  context.Report({.code = "index-open",
                  .path = options.directory,
                  .offset = failure.offset(),
                  .message = fmt::format("the chunk index cannot be used, and the next mount "
                                         "rebuilds it from the segments: {}",
                                         failure.ToString())});
  return Status::Ok();
}

Status CheckGuide(CheckContext& context) {
  const std::string directory = GuidePath(context.store());
  const auto info = context.env.GetFileInfo(directory);
  if (info.status().Is(StatusCode::kNotFound)) return Status::Ok();
  const auto report = [&](const std::string& sentence) {
    context.Report({.code = "guide",
                    .path = directory,
                    .message = fmt::format("the segment guide is damaged; it can be removed, and "
                                           "the next mount makes it again: {}",
                                           sentence)});
  };
  const auto guide = SegmentGuide::Open(
      context.env, {.directory = directory, .read_only = true, .report = report}, {});
  if (const Status verified = guide->Verify(report); !verified.ok()) {
    if (!IsDamage(verified)) return verified;
    context.Report("guide", verified);
  }
  return context.Continue();
}

Status CheckLsh(CheckContext& context) {
  const std::string directory = LshPath(context.store());
  const auto info = context.env.GetFileInfo(directory);
  if (info.status().Is(StatusCode::kNotFound)) return Status::Ok();
  const auto report = [&](const std::string& sentence) {
    context.Report(
        {.code = "lsh",
         .path = directory,
         .message = fmt::format("the super-features of chunks are damaged; recompression "
                                "finds fewer bases, and the directory can be removed: "
                                "{}",
                                sentence)});
  };
  SliceLshOptions options;
  options.directory = directory;
  options.read_only = true;
  options.renew_if_damaged = false;
  const auto lsh = SliceLsh::Open(context.env, options);
  const Status verified = lsh.ok() ? (*lsh)->Verify(report) : lsh.status();
  if (!verified.ok()) {
    if (verified.Is(StatusCode::kNeedsNewer) || !IsDamage(verified)) return verified;
    report(verified.ToString());
  }
  return context.Continue();
}

Status CheckIndex(CheckContext& context) {
  if (!context.index) return Status::Ok();
  // Verify does not see the damaged pages that the index dropped when it was opened.
  const uint64_t lost = context.index->stats().damaged_pages;
  if (lost > 0) {
    context.Report({.code = "index-page-missing",
                    .path = IndexPath(context.store()),
                    .message = fmt::format("{} pages that were durable are damaged or missing; "
                                           "the next mount adds their entries again",
                                           lost)});
  }
  for (const bool verify : {true, false}) {
    const Status checked = verify ? context.index->Verify([&context](const IndexFinding& finding) {
      context.Report({.code = "index-" + finding.code,
                      .path = finding.path,
                      .offset = finding.offset,
                      .message = finding.text});
    })
                                  : CountEntries(context);
    if (checked.ok()) continue;
    if (!IsDamage(checked)) return checked;
    context.Report("index-read", checked);
  }
  return context.Continue();
}

}  // namespace siltfs
