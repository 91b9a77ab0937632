#include "fs/control/survey_json.h"

#include <algorithm>
#include <optional>
#include <span>

#include "fs/control/index_json.h"
#include "fs/interface/stats.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

Json ToJson(const ChunkClass& chunks) {
  return {{"chunks", chunks.chunks}, {"bytes", chunks.bytes}};
}

// `first` returns where a class begins.
Json ClassesToJson(std::span<const ChunkClass> classes, uint64_t (*first)(size_t)) {
  Json list = Json::array();
  for (size_t i = 0; i < classes.size(); ++i) {
    if (classes[i].chunks == 0) continue;
    Json one = ToJson(classes[i]);
    one["from"] = first(i);
    one["to"] = first(i + 1);
    list.push_back(std::move(one));
  }
  return list;
}

// The bytes that are in use; nullopt if the share of a segment is not known.
std::optional<double> LiveBytes(const ChunkSurvey& survey, std::span<const SegmentUse> segments) {
  double live = 0;
  for (const SegmentUse& segment : segments) {
    if (segment.chunks == 0) continue;
    const auto share = survey.LiveShare(segment);
    if (!share) return std::nullopt;
    live += *share * static_cast<double>(segment.bytes);
  }
  return live;
}

uint64_t BytesOf(std::span<const SegmentUse> segments) {
  uint64_t bytes = 0;
  for (const SegmentUse& segment : segments) bytes += segment.bytes;
  return bytes;
}

Json CellToJson(const ChunkSurvey& survey, std::span<const SegmentUse> segments) {
  const uint64_t bytes = BytesOf(segments);
  uint64_t chunks = 0;
  for (const SegmentUse& segment : segments) chunks += segment.chunks;
  Json live;
  if (const auto in_use = LiveBytes(survey, segments); in_use && chunks > 0)
    live = *in_use / static_cast<double>(std::max<uint64_t>(bytes, 1));
  return {{"first", segments.front().id},
          {"last", segments.back().id},
          {"segments", segments.size()},
          {"bytes", bytes},
          {"chunks", chunks},
          {"live", live},
          {"nodes", std::ranges::count(segments, true, &SegmentUse::nodes)},
          {"open", std::ranges::count(segments, false, &SegmentUse::sealed)}};
}

Json SegmentsToJson(const ChunkSurvey& survey) {
  const std::span<const SegmentUse> segments = survey.segments;
  const size_t per_cell = std::max<size_t>(1, (segments.size() + kMostCells - 1) / kMostCells);
  Json cells = Json::array();
  for (size_t at = 0; at < segments.size(); at += per_cell) {
    cells.push_back(
        CellToJson(survey, segments.subspan(at, std::min(per_cell, segments.size() - at))));
  }
  const auto live = LiveBytes(survey, segments);
  return {{"count", segments.size()},
          {"bytes", BytesOf(segments)},
          {"live_bytes", live ? Json(*live) : Json()},
          {"per_cell", per_cell},
          {"cells", std::move(cells)}};
}

Json SizesToJson(const PastSizes& sizes) {
  return {{"taken_at", static_cast<double>(sizes.taken_ns) / 1e9},
          {"logical_bytes", sizes.logical_bytes},
          {"unique_bytes", sizes.unique_bytes},
          {"stored_bytes", sizes.stored_bytes},
          {"dead_bytes", sizes.dead_bytes},
          {"metadata_bytes", sizes.metadata_bytes},
          {"index_bytes", sizes.index_bytes},
          {"files", sizes.files},
          {"chunks_logical", sizes.chunks_logical},
          {"chunks_unique", sizes.chunks_unique},
          {"index_memory_bytes", sizes.index_memory_bytes},
          {"index_entries", sizes.index_entries},
          {"damaged_chunks", sizes.damaged_chunks}};
}

Json ScrubToJson(const ScrubResult& scrub) {
  return {{"ended_at", static_cast<double>(scrub.ended_ns) / 1e9},
          {"damaged_blocks", scrub.damaged_blocks},
          {"damaged_chunks", scrub.damaged_chunks},
          {"damaged_footers", scrub.damaged_footers},
          {"chunks", scrub.chunks},
          {"bytes", scrub.bytes}};
}

}  // namespace

Json ToJson(const StoreSurvey& survey) {
  const ChunkSurvey& chunks = survey.chunks;
  Json sizes = Json::array();
  for (const PastSizes& past : survey.sizes) sizes.push_back(SizesToJson(past));
  Json scrubs = Json::array();
  for (const ScrubResult& scrub : survey.scrubs) scrubs.push_back(ScrubToJson(scrub));
  return {{"scale", chunks.Scale()},
          {"files", ToJson(chunks.files)},
          {"references", chunks.references},
          {"lengths", ClassesToJson(chunks.lengths, FirstLengthOf)},
          {"shared", ClassesToJson(chunks.shared, FirstReferencesOf)},
          {"snapshots", ToJson(chunks.snapshots)},
          {"nodes", ToJson(chunks.nodes)},
          {"not_indexed", chunks.not_indexed},
          {"segments", SegmentsToJson(chunks)},
          {"sizes", std::move(sizes)},
          {"scrubs", std::move(scrubs)}};
}

Result<Json> SurveyToJson(StoreMaintenance& maintenance, const std::string& store,
                          const std::optional<DaemonInfo>& daemon,
                          const SurveyProgressFunction& on_progress) {
  SILTFS_ASSIGN_OR_RETURN(const StoreSurvey survey, maintenance.Survey(on_progress));
  SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, maintenance.GetStats());
  return Json{{"version", kSurveyVersion},
              {"stats", ToJson(stats, store, daemon)},
              {"index", IndexToJson(stats.index, store, daemon)},
              {"survey", ToJson(survey)}};
}

}  // namespace siltfs
