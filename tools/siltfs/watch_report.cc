#include "tools/siltfs/watch_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/size_text.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/text_layout.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr size_t kLabelColumns = 12;
constexpr size_t kValueColumns = 13;  // "1023.9 MiB/s"
constexpr size_t kCourseColumns = 40;

// A counter never decreases, except if another daemon has taken the place of the first one.
uint64_t Growth(uint64_t before, uint64_t after) { return after - std::min(before, after); }

std::optional<double> Share(uint64_t part, uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string Rate(double bytes) { return FormatSize(static_cast<uint64_t>(bytes)); }

// 1234567 -> "1.2M"
std::string Count(double count) {
  constexpr std::array<const char*, 4> kUnits = {"", "k", "M", "G"};
  size_t unit = 0;
  while (count >= 10'000 && unit + 1 < kUnits.size()) {
    count /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f}", count) : fmt::format("{:.1f}{}", count, kUnits[unit]);
}

std::string Percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f}%", *share * 100) : "-";
}

// "-" if no chunks came, and "all" if all of them were known.
std::string Ratio(const std::optional<double>& ratio, double put) {
  if (ratio) return fmt::format("{:.2f}", *ratio);
  return put > 0 ? "all" : "-";
}

// A value in front of what explains it. Values are right-aligned, so that they do not move when
// their lengths change.
std::string Value(const std::string& value, const std::string& note) {
  return fmt::format("{:>{}}  {}", value, kValueColumns, note);
}

std::string RatioText(const std::optional<double>& ratio, double put) {
  if (ratio) return fmt::format("{:.2f} : 1", *ratio);
  return put > 0 ? "all known" : "-";
}

std::string JobText(const StoreActivityReport::Job& job, double bytes) {
  if (bytes > 0) return Rate(bytes) + "/s";
  return job.running ? "running" : "idle";
}

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json JobToJson(const StoreActivityReport::Job& job, double bytes) {
  return {{"running", job.running}, {"bytes_per_s", bytes}};
}

struct Column {
  const char* title;
  size_t width;
  std::string (*text)(const WatchInterval& interval);
};

// A cell of a maintenance job: a rate, or "on" while the job runs without moving data.
std::string JobCell(const StoreActivityReport::Job& job, double bytes) {
  if (bytes > 0) return Rate(bytes);
  return job.running ? "on" : "-";
}

constexpr Column kColumns[] = {
    {"READ/s", 9, [](const WatchInterval& i) { return Rate(i.read_bytes); }},
    {"WRITE/s", 9, [](const WatchInterval& i) { return Rate(i.written_bytes); }},
    {"NEW/s", 9, [](const WatchInterval& i) { return Rate(i.added_bytes); }},
    {"DEDUP", 6, [](const WatchInterval& i) { return Ratio(i.dedup_ratio, i.put_bytes); }},
    {"BLOCKS", 6, [](const WatchInterval& i) { return Percent(i.block_hits); }},
    {"NAMES", 5, [](const WatchInterval& i) { return Percent(i.names_in_memory); }},
    {"LOOKUP/s", 8, [](const WatchInterval& i) { return Count(i.index_lookups); }},
    {"MERGES", 6, [](const WatchInterval& i) { return std::to_string(i.merges + i.conversions); }},
    {"QUEUE", 5, [](const WatchInterval& i) { return std::to_string(i.now.index.merge_backlog); }},
    {"RECOMP/s", 9,
     [](const WatchInterval& i) { return JobCell(i.now.recompression, i.recompressed_bytes); }},
    {"GC/s", 9, [](const WatchInterval& i) { return JobCell(i.now.gc, i.collected_bytes); }},
    {"SCRUB/s", 9, [](const WatchInterval& i) { return JobCell(i.now.scrub, i.scrubbed_bytes); }},
};

std::string Duration(uint64_t ms) {
  if (ms % 1000 == 0) return fmt::format("{} s", ms / 1000);
  return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
}

}  // namespace

WatchInterval Between(const StoreActivityReport& before, const StoreActivityReport& after) {
  WatchInterval made;
  made.now = after;
  made.seconds = static_cast<double>(after.monotonic_ns - before.monotonic_ns) / 1e9;
  if (made.seconds <= 0) made.seconds = 1e-3;
  const auto rate = [&](uint64_t from, uint64_t to) {
    return static_cast<double>(Growth(from, to)) / made.seconds;
  };
  made.read_bytes = rate(before.read_bytes, after.read_bytes);
  made.reads = rate(before.reads, after.reads);
  made.written_bytes = rate(before.written_bytes, after.written_bytes);
  made.writes = rate(before.writes, after.writes);
  made.put_bytes = rate(before.put_bytes, after.put_bytes);
  made.added_bytes = rate(before.added_bytes, after.added_bytes);
  if (made.added_bytes > 0) made.dedup_ratio = made.put_bytes / made.added_bytes;
  const uint64_t hits = Growth(before.block_hits, after.block_hits);
  made.block_hits = Share(hits, hits + Growth(before.blocks_decoded, after.blocks_decoded));
  made.names_in_memory =
      Share(Growth(before.put_chunks_found_in_memory, after.put_chunks_found_in_memory),
            Growth(before.put_chunks, after.put_chunks));
  made.index_lookups = rate(before.index.lookups, after.index.lookups);
  made.index_flash_reads = rate(before.index.flash_reads, after.index.flash_reads);
  made.index_bytes_written =
      rate(before.index.flash_bytes_written, after.index.flash_bytes_written);
  made.merges = Growth(before.index.merges, after.index.merges);
  made.conversions = Growth(before.index.conversions, after.index.conversions);
  made.recompressed_bytes = rate(before.recompression.bytes, after.recompression.bytes);
  made.collected_bytes = rate(before.gc.bytes, after.gc.bytes);
  made.scrubbed_bytes = rate(before.scrub.bytes, after.scrub.bytes);
  return made;
}

Json WatchToJson(const WatchInterval& interval, double time) {
  const StoreActivityReport& now = interval.now;
  return {{"time", time},
          {"seconds", interval.seconds},
          {"read_bytes_per_s", interval.read_bytes},
          {"reads_per_s", interval.reads},
          {"written_bytes_per_s", interval.written_bytes},
          {"writes_per_s", interval.writes},
          {"put_bytes_per_s", interval.put_bytes},
          {"added_bytes_per_s", interval.added_bytes},
          {"dedup_ratio", OrNull(interval.dedup_ratio)},
          {"block_hit_rate", OrNull(interval.block_hits)},
          {"names_in_memory_rate", OrNull(interval.names_in_memory)},
          {"index",
           {{"lookups_per_s", interval.index_lookups},
            {"flash_reads_per_s", interval.index_flash_reads},
            {"flash_bytes_written_per_s", interval.index_bytes_written},
            {"merges", interval.merges},
            {"conversions", interval.conversions},
            {"merge_backlog", now.index.merge_backlog}}},
          {"recompression", JobToJson(now.recompression, interval.recompressed_bytes)},
          {"gc", JobToJson(now.gc, interval.collected_bytes)},
          {"scrub", JobToJson(now.scrub, interval.scrubbed_bytes)},
          {"stored_bytes", now.stored_bytes},
          {"dead_bytes", now.dead_bytes},
          {"awaiting_recompression_bytes", now.awaiting_recompression_bytes},
          {"damaged_blocks", now.damaged_blocks},
          {"disk_available_bytes", now.disk_available_bytes},
          {"read_only", now.read_only}};
}

std::string WatchTitles() {
  std::string line = fmt::format("{:<8}", "TIME");
  for (const Column& column : kColumns) line += fmt::format("  {:>{}}", column.title, column.width);
  return line + "\n";
}

std::string WatchLine(const WatchInterval& interval, const std::string& clock) {
  std::string line = fmt::format("{:<8}", clock);
  for (const Column& column : kColumns)
    line += fmt::format("  {:>{}}", column.text(interval), column.width);
  return line + "\n";
}

WatchView::WatchView(std::string store, std::string mountpoint, uint64_t interval_milliseconds)
    : store_(std::move(store)),
      mountpoint_(std::move(mountpoint)),
      interval_milliseconds_(interval_milliseconds) {}

void WatchView::Add(const WatchInterval& interval) {
  last_ = interval;
  put_ += interval.put_bytes * interval.seconds;
  added_ += interval.added_bytes * interval.seconds;
  for (const auto& [course, rate] :
       {std::pair(&reads_, interval.read_bytes), std::pair(&writes_, interval.written_bytes)}) {
    course->push_back(rate);
    if (course->size() > kCourseColumns) course->pop_front();
  }
}

// Both courses have the same scale, so that they can be compared.
std::string WatchView::Course(const std::deque<double>& rates, const TextStyle& style) const {
  static constexpr std::array<std::string_view, 9> kBlocks = {
      " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
  static constexpr std::array<std::string_view, 9> kAscii = {" ", ".", ".", ":", ":",
                                                             "+", "*", "#", "#"};
  const double most =
      std::max({1.0, *std::ranges::max_element(reads_), *std::ranges::max_element(writes_)});
  const auto& glyphs = style.utf8 ? kBlocks : kAscii;
  std::string course;
  for (const double rate : rates) {
    const size_t level =
        rate <= 0 ? 0 : 1 + static_cast<size_t>(rate / most * (glyphs.size() - 2) + 0.5);
    course += glyphs[std::min(level, glyphs.size() - 1)];
  }
  return course;
}

std::string WatchView::Draw(const std::string& clock, const TextStyle& style) const {
  const StoreActivityReport& now = last_.now;
  const std::optional<double> so_far = added_ > 0 ? std::optional(put_ / added_) : std::nullopt;
  std::vector<std::pair<std::string, std::string>> rows = {
      {"Reads", Value(Rate(last_.read_bytes) + "/s",
                      fmt::format("{:>6}/s  {}", Count(last_.reads),
                                  Tinted(Course(reads_, style), Tint::kGreen, style)))},
      {"Writes", Value(Rate(last_.written_bytes) + "/s",
                       fmt::format("{:>6}/s  {}", Count(last_.writes),
                                   Tinted(Course(writes_, style), Tint::kBlue, style)))},
      {"Dedup", Value(RatioText(last_.dedup_ratio, last_.put_bytes),
                      fmt::format("{:>10}/s new of {:>10}/s; so far {}", Rate(last_.added_bytes),
                                  Rate(last_.put_bytes), RatioText(so_far, put_)))},
      {"Caches", Value(Percent(last_.block_hits),
                       fmt::format("of the blocks; {:>4} of the names without the index",
                                   Percent(last_.names_in_memory)))},
      {"Index",
       Value(Count(last_.index_lookups) + "/s",
             fmt::format("lookups; {:>6}/s reads, {:>10}/s written", Count(last_.index_flash_reads),
                         Rate(last_.index_bytes_written)))},
      {"Merges", Value(std::to_string(last_.merges),
                       fmt::format("and {} conversions; {} component stores wait",
                                   last_.conversions, now.index.merge_backlog))},
      {"Recompress",
       Value(JobText(now.recompression, last_.recompressed_bytes),
             fmt::format("{:>10} waiting", FormatSize(now.awaiting_recompression_bytes)))},
      {"GC", Value(JobText(now.gc, last_.collected_bytes),
                   fmt::format("{:>10} dead", FormatSize(now.dead_bytes)))},
      {"Scrub", Value(JobText(now.scrub, last_.scrubbed_bytes),
                      fmt::format("{:>10} damaged blocks known", FormatCount(now.damaged_blocks)))},
      {"Space",
       Value(FormatSize(now.stored_bytes),
             fmt::format("stored; {} free on the disk", FormatSize(now.disk_available_bytes)))},
  };
  if (now.read_only) {
    rows.emplace_back("Read-only", Tinted("a failure has made the store read-only (siltfs stat)",
                                          Tint::kRed, style));
  }
  const std::string place = mountpoint_.empty() ? store_ : mountpoint_;
  std::string text = Fitted(Tinted(fmt::format("{}  {}  every {}", Printable(place), clock,
                                               Duration(interval_milliseconds_)),
                                   Tint::kBold, style),
                            style.columns) +
                     "\n";
  for (const auto& [label, value] : rows)
    text += Fitted(fmt::format("{:<{}}{}", label, kLabelColumns, value), style.columns) + "\n";
  return text;
}

}  // namespace siltfs
