#include "fs/control/stats_json.h"

#include "fs/control/index_json.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

Json GuideToJson(const FileSystemStats& stats) {
  if (!stats.guide) return {};
  const SliceBloomStats& guide = *stats.guide;
  return {{"segments", guide.segments},
          {"uncovered_segments", stats.guide_uncovered},
          {"names", guide.names},
          {"groups", guide.groups},
          {"slicefilters", guide.filters},
          {"memory_bytes", guide.memory_bytes},
          {"flash_bytes", guide.flash_bytes},
          {"flash_bytes_written", guide.flash_bytes_written},
          {"lookups", stats.guide_lookups},
          {"segments_searched", stats.segments_searched},
          {"flash_reads", guide.flash_reads},
          {"flash_pages_read", guide.flash_pages_read},
          {"damaged_pages", guide.damaged_pages}};
}

Json DeltasToJson(const FileSystemStats& stats) {
  if (!stats.deltas) return {};
  const DeltaStats& deltas = *stats.deltas;
  Json json = {{"segments", deltas.segments},         {"deltas", deltas.deltas},
               {"saved_bytes", deltas.saved_bytes},   {"examined", deltas.examined},
               {"candidates", deltas.candidates},     {"offered", deltas.offered},
               {"memory_bytes", deltas.memory_bytes}, {"lsh", Json()}};
  if (deltas.lsh) {
    const SliceLshStats& lsh = *deltas.lsh;
    json["lsh"] = {{"tables", lsh.shape.tables},
                   {"entries", lsh.entries},
                   {"memory_bytes", lsh.memory_bytes},
                   {"flash_bytes", lsh.flash_bytes},
                   {"flash_bytes_written", lsh.flash_bytes_written},
                   {"lookups", lsh.lookups},
                   {"flash_reads", lsh.flash_reads},
                   // Each request of a lookup reads one page.
                   {"flash_pages_read", lsh.flash_reads},
                   {"damaged_pages", lsh.damaged_pages}};
  }
  return json;
}

// Seconds since 1970.
Json TimeToJson(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

Json LastScrubToJson(const std::optional<LastScrub>& scrub) {
  if (!scrub) return {};
  return {{"ended_at", TimeToJson(scrub->ended_ns)},
          {"damaged_blocks", scrub->damaged_blocks},
          {"damaged_chunks", scrub->damaged_chunks},
          {"damaged_footers", scrub->damaged_footers}};
}

}  // namespace

Json ToJson(const FileSystemStats& stats, const std::string& store,
            const std::optional<DaemonInfo>& daemon) {
  return {
      {"store", store},
      {"label", stats.label.empty() ? Json() : Json(stats.label)},
      {"uuid", stats.uuid.empty() ? Json() : Json(stats.uuid)},
      {"mountpoint", daemon ? Json(daemon->mountpoint) : Json()},
      {"pid", daemon ? Json(daemon->pid) : Json()},
      {"transport", daemon && !daemon->transport.empty() ? Json(daemon->transport) : Json()},
      {"logical_bytes", stats.logical_bytes},
      {"unique_bytes", stats.unique_bytes},
      {"stored_bytes", stats.stored_bytes},
      {"awaiting_recompression_bytes", stats.awaiting_recompression_bytes},
      {"dead_bytes", stats.dead_bytes},
      {"reserve_bytes", stats.reserve_bytes},
      {"metadata_bytes", stats.metadata_bytes},
      {"index_bytes", stats.index_bytes},
      {"files", stats.files},
      {"directories", stats.directories},
      {"chunks_logical", stats.chunks_logical},
      {"chunks_unique", stats.chunks_unique},
      {"dedup_ratio", stats.DedupRatio()},
      {"compression_ratio", stats.CompressionRatio()},
      {"total_ratio", stats.TotalRatio()},
      {"sha1_collisions", stats.sha1_collisions},
      {"damaged_blocks", stats.damaged_blocks},
      {"damaged_chunks", stats.damaged_chunks},
      {"last_commit", stats.last_commit},
      {"added_bytes", stats.added_bytes},
      {"created_at", TimeToJson(stats.created_ns)},
      {"last_scrub", LastScrubToJson(stats.last_scrub)},
      {"disk_bytes", stats.disk_bytes},
      {"disk_available_bytes", stats.disk_available_bytes},
      {"chunker_kernel", stats.chunker_kernel},
      {"sha1_kernel", stats.sha1_kernel},
      {"read_only", stats.read_only},
      {"read_only_cause", stats.read_only_cause.empty() ? Json() : Json(stats.read_only_cause)},
      {"index", IndexSummaryToJson(stats.index)},
      {"index_replay",
       {{"running", stats.index_replay.running},
        {"segments_done", stats.index_replay.segments_done},
        {"segments_total", stats.index_replay.segments_total}}},
      {"guide", GuideToJson(stats)},
      {"deltas", DeltasToJson(stats)},
  };
}

}  // namespace siltfs
