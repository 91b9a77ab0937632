#include "tools/siltfs/stat_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "store/base/size_text.h"
#include "tools/siltfs/stat_bucket.h"
#include "tools/siltfs/stat_overview.h"
#include "tools/siltfs/stat_table.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

uint64_t Number(const Json& statistics, const char* key) {
  return statistics.at(key).get<uint64_t>();
}

// With less data the store's own overhead dominates, and the ratios would say nothing about the
// data.
constexpr uint64_t kLeastForRatios = 1 << 20;

std::string TimeText(double seconds) {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

// Daemons of earlier versions do not report the disk and the last scrub.
void AddDisk(const Json& statistics, StatTable& table) {
  if (statistics.value("disk_bytes", uint64_t{0}) == 0) return;
  table.Row("disk", FormatSize(Number(statistics, "disk_bytes")),
            fmt::format("below the store, {} of it free",
                        FormatSize(Number(statistics, "disk_available_bytes"))));
}

void AddLastScrub(const Json& statistics, StatTable& table) {
  const auto scrub = statistics.find("last_scrub");
  if (scrub == statistics.end()) return;
  table.Row("last scrub",
            scrub->is_null() ? "never" : TimeText(scrub->at("ended_at").get<double>()),
            "when all stored data was last verified");
}

void AddSpace(const Json& statistics, StatTable& table) {
  const auto size = [&](const char* key) { return FormatSize(Number(statistics, key)); };
  const bool tells = Number(statistics, "logical_bytes") >= kLeastForRatios;
  const auto ratio = [&](const char* key, const char* what) {
    if (!tells) return std::string();
    return fmt::format("{:.2f} : 1  {}", statistics.at(key).get<double>(), what);
  };
  table.Section("Space");
  table.Row("logical", size("logical_bytes"), "contents of files, holes excluded");
  table.Row("unique", size("unique_bytes"), ratio("dedup_ratio", "by deduplication"));
  table.Row("stored", size("stored_bytes"), ratio("compression_ratio", "by compression"));
  table.Row("awaiting", size("awaiting_recompression_bytes"),
            "of the stored; siltfs settle recompresses it");
  table.Row("dead", size("dead_bytes"), "of the stored; siltfs gc frees it");
  table.Row("metadata", size("metadata_bytes"));
  table.Row("index", size("index_bytes"));
  table.Row("reserve", size("reserve_bytes"), "kept for deleting on a full disk");
  table.Row("total",
            FormatSize(Number(statistics, "stored_bytes") + Number(statistics, "metadata_bytes") +
                       Number(statistics, "index_bytes")),
            ratio("total_ratio", "in all"));
  AddDisk(statistics, table);
}

void AddContents(const Json& statistics, StatTable& table) {
  table.Section("Contents");
  table.Row("files", FormatCount(Number(statistics, "files")));
  table.Row("directories", FormatCount(Number(statistics, "directories")));
  table.Row("chunks, references", FormatCount(Number(statistics, "chunks_logical")));
  table.Row("chunks, distinct", FormatCount(Number(statistics, "chunks_unique")));
  table.Row("SHA-1 collisions", FormatCount(Number(statistics, "sha1_collisions")),
            "both chunks kept");
  table.Row("damaged blocks", FormatCount(Number(statistics, "damaged_blocks")),
            fmt::format("known, with {} chunks (siltfs scrub)",
                        FormatCount(Number(statistics, "damaged_chunks"))));
  AddLastScrub(statistics, table);
  table.Section("Processor");
  table.Name("files are cut by", statistics.at("chunker_kernel").get<std::string>());
  table.Name("chunks are named by", statistics.at("sha1_kernel").get<std::string>());
}

void AddIndex(const Json& index, StatTable& table) {
  table.Section(fmt::format("Index ({})", index.at("engine").get<std::string>()));
  table.Row("entries", FormatCount(Number(index, "entries")));
  table.Row("memory", FormatSize(Number(index, "memory_bytes")),
            fmt::format("{:.2f} bytes an entry", index.at("memory_bytes_per_entry").get<double>()));
  table.Row("flash", FormatSize(Number(index, "flash_bytes")));
  table.Row("lookups", FormatCount(Number(index, "lookups")), "since it was opened");
  table.Row("flash reads", FormatCount(Number(index, "flash_reads")),
            fmt::format("{:.2f} a lookup", index.at("read_amplification").get<double>()));
  table.Row("flash written", FormatSize(Number(index, "flash_bytes_written")),
            fmt::format("{:.2f} bytes a byte put", index.at("write_amplification").get<double>()));
  for (const Json& store : index.at("stores")) {
    table.Row(fmt::format("{} x {}", Number(store, "count"), store.at("kind").get<std::string>()),
              FormatCount(Number(store, "entries")),
              fmt::format("entries, {} memory, {} flash", FormatSize(Number(store, "memory_bytes")),
                          FormatSize(Number(store, "flash_bytes"))));
  }
}

void AddGuide(const Json& guide, StatTable& table) {
  table.Section("Segment guide");
  table.Row("segments", FormatCount(Number(guide, "segments")),
            fmt::format("covered, {} others", FormatCount(Number(guide, "uncovered_segments"))));
  table.Row("names", FormatCount(Number(guide, "names")),
            Number(guide, "groups") == 1
                ? "in one group"
                : fmt::format("in {} groups", FormatCount(Number(guide, "groups"))));
  table.Row("memory", FormatSize(Number(guide, "memory_bytes")));
  table.Row("flash", FormatSize(Number(guide, "flash_bytes")),
            fmt::format("{} slicefilters", FormatCount(Number(guide, "slicefilters"))));
  table.Row("lookups", FormatCount(Number(guide, "lookups")),
            fmt::format("since the mount, {} segments searched",
                        FormatCount(Number(guide, "segments_searched"))));
  table.Row("flash reads", FormatCount(Number(guide, "flash_reads")));
  table.Row("flash written", FormatSize(Number(guide, "flash_bytes_written")));
  table.Row("damaged pages", FormatCount(Number(guide, "damaged_pages")), "met since the mount");
}

void AddDeltas(const Json& deltas, StatTable& table) {
  table.Section("Deltas");
  table.Row("segments", FormatCount(Number(deltas, "segments")), "with deltas");
  table.Row("chunks", FormatCount(Number(deltas, "deltas")),
            fmt::format("stored as deltas since the mount, of {} examined",
                        FormatCount(Number(deltas, "examined"))));
  table.Row("saved", FormatSize(Number(deltas, "saved_bytes")), "by them");
  const Json& lsh = deltas.at("lsh");
  if (lsh.is_null()) return;
  table.Row("super-features", FormatCount(Number(lsh, "entries")),
            fmt::format("in {} tables", FormatCount(Number(lsh, "tables"))));
  table.Row("memory", FormatSize(Number(lsh, "memory_bytes") + Number(deltas, "memory_bytes")));
  table.Row("flash", FormatSize(Number(lsh, "flash_bytes")));
  table.Row(
      "lookups", FormatCount(Number(lsh, "lookups")),
      fmt::format("since the mount, {} candidates", FormatCount(Number(deltas, "candidates"))));
  table.Row("flash reads", FormatCount(Number(lsh, "flash_reads")));
  table.Row("flash written", FormatSize(Number(lsh, "flash_bytes_written")));
  table.Row("damaged pages", FormatCount(Number(lsh, "damaged_pages")), "met since the mount");
}

}  // namespace

std::string FormatStatReport(const Json& statistics, const TextStyle& style, double now) {
  StatTable table;
  AddSpace(statistics, table);
  AddBucket(statistics, now, table);
  AddContents(statistics, table);
  AddIndex(statistics.at("index"), table);
  if (!statistics.at("guide").is_null()) AddGuide(statistics.at("guide"), table);
  if (!statistics.at("deltas").is_null()) AddDeltas(statistics.at("deltas"), table);
  return FormatStatOverview(statistics, style, now) + "\n" + table.Format(style);
}

}  // namespace siltfs
