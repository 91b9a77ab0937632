#include "tools/siltfs/fsck_report.h"

#include <fmt/format.h>

#include <utility>

#include "tools/siltfs/printable_text.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostFindingsListed = 10'000;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json FindingToJson(const Finding& finding, bool repaired) {
  return {{"code", finding.code},           {"repaired", repaired},
          {"path", finding.path},           {"offset", OrNull(finding.offset)},
          {"inode", OrNull(finding.inode)}, {"message", finding.message}};
}

std::string WhereOf(const Finding& finding) {
  std::string where = finding.path;
  const auto add = [&where](std::string_view what, const std::optional<uint64_t>& number) {
    if (!number) return;
    if (!where.empty()) where += ", ";
    where += fmt::format("{} {}", what, *number);
  };
  add("inode", finding.inode);
  add("offset", finding.offset);
  return where;
}

std::string FormatSummary(const std::string& store, const RepairReport& repair, bool data) {
  const CheckReport& report = repair.checked;
  const std::string checked = fmt::format(
      "{} files, {} directories, {} references to chunks; {} chunks in {} segments{}", report.files,
      report.directories, report.chunks_referenced, report.chunks, report.segments,
      data ? fmt::format(", {} bytes of them verified by name", report.data_bytes) : std::string());
  const std::string end =
      report.clean_shutdown.value_or(true) ? "" : "; not unmounted, so the next mount recovers it";
  if (repair.found == 0) return fmt::format("{}: clean: {}{}\n", store, checked, end);
  std::string outcome = repair.found == 1 ? "1 finding" : fmt::format("{} findings", repair.found);
  if (repair.repaired() > 0)
    outcome += fmt::format(", {} repaired, {} left", repair.repaired(), repair.left);
  return fmt::format("{}: {}: {}{}\n", store, outcome, checked, end);
}

std::string FormatLost(const LostContent& lost) {
  std::string file = fmt::format("lost: {}, inode {}",
                                 lost.path.empty() ? "a file without a name" : Printable(lost.path),
                                 lost.range.inode);
  if (lost.range.snapshot != 0) {
    file += fmt::format(" as of snapshot {}", lost.range.snapshot);
    if (lost.range.length == 0) return file + ": a newer state is shown now\n";
  }
  if (lost.range.length == 0) return file + ": all of it\n";
  return fmt::format("{}, offset {}: {} bytes are zeros now\n", file, lost.range.offset,
                     lost.range.length);
}

}  // namespace

std::string FormatFinding(const Finding& finding) {
  return fmt::format("{}: {}: {}\n", finding.code, Printable(WhereOf(finding)),
                     Printable(finding.message));
}

std::string FormatRepair(const std::string& store, const RepairReport& report, bool data) {
  std::string text;
  for (const LostContent& lost : report.lost) text += FormatLost(lost);
  for (const RepairedFinding& finding : report.findings) {
    if (!finding.repaired && report.repaired() > 0)
      text +=
          fmt::format("left: {}: {}\n", finding.finding.code, Printable(WhereOf(finding.finding)));
  }
  for (const std::string& remark : report.remarks)
    text += fmt::format("{}: {}\n", Printable(store), Printable(remark));
  return text + FormatSummary(Printable(store), report, data);
}

void FindingList::Add(const Finding& finding) {
  if (count_++ < kMostFindingsListed) listed_.push_back(FindingToJson(finding, false));
}

Json ListRepaired(const std::vector<RepairedFinding>& findings) {
  Json listed = Json::array();
  for (const RepairedFinding& finding : findings) {
    if (listed.size() >= kMostFindingsListed) break;
    listed.push_back(FindingToJson(finding.finding, finding.repaired));
  }
  return listed;
}

Json ListLost(const std::vector<LostContent>& lost) {
  Json listed = Json::array();
  for (const LostContent& content : lost) {
    listed.push_back({{"path", content.path},
                      {"inode", content.range.inode},
                      {"offset", content.range.offset},
                      {"length", content.range.length},
                      {"snapshot", content.range.snapshot}});
  }
  return listed;
}

Json RepairToJson(const std::string& store, const RepairReport& repair, bool data,
                  const FindingList& findings) {
  const CheckReport& report = repair.checked;
  return {{"store", store},
          {"clean", repair.left == 0},
          {"clean_shutdown", OrNull(report.clean_shutdown)},
          {"data", data},
          {"error", nullptr},
          {"finding_count", repair.found},
          {"findings", repair.findings.empty() ? findings.listed() : ListRepaired(repair.findings)},
          {"repaired", repair.repaired()},
          {"lost", ListLost(repair.lost)},
          {"remarks", repair.remarks},
          {"checked",
           {{"files", report.files},
            {"directories", report.directories},
            {"names", report.names},
            {"orphans", report.orphans},
            {"xattrs", report.xattrs},
            {"overlay_extents", report.overlay_extents},
            {"recipe_nodes", report.recipe_nodes},
            {"chunks_referenced", report.chunks_referenced},
            {"segments", report.segments},
            {"segment_bytes", report.segment_bytes},
            {"blocks", report.blocks},
            {"chunks", report.chunks},
            {"data_bytes", report.data_bytes},
            {"torn_tails", report.torn_tails},
            {"leftover_files", report.leftover_files},
            {"index_entries", report.index_entries},
            {"stale_index_entries", report.stale_index_entries}}}};
}

Json DetailsOfFailure(const std::string& store, const FindingList& findings) {
  return {{"store", store},
          {"clean", nullptr},
          {"finding_count", findings.count()},
          {"findings", findings.listed()},
          {"repaired", 0},
          {"lost", Json::array()}};
}

}  // namespace siltfs
