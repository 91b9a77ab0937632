#include "tools/siltfs/fsck_report.h"

#include <fmt/format.h>

#include <utility>

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostFindingsListed = 10'000;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json FindingToJson(const Finding& finding) {
  return {{"code", finding.code},
          {"path", finding.path},
          {"offset", OrNull(finding.offset)},
          {"inode", OrNull(finding.inode)},
          {"message", finding.message}};
}

}  // namespace

std::string FormatFinding(const Finding& finding) {
  std::string where = finding.path;
  const auto add = [&where](std::string_view what, const std::optional<uint64_t>& number) {
    if (!number) return;
    if (!where.empty()) where += ", ";
    where += fmt::format("{} {}", what, *number);
  };
  add("inode", finding.inode);
  add("offset", finding.offset);
  return fmt::format("{}: {}: {}\n", finding.code, where, finding.message);
}

std::string FormatSummary(const std::string& store, const CheckReport& report, bool data) {
  const std::string checked = fmt::format(
      "{} files, {} directories, {} references to chunks; {} chunks in {} segments{}", report.files,
      report.directories, report.chunks_referenced, report.chunks, report.segments,
      data ? fmt::format(", {} bytes of them named anew", report.data_bytes) : std::string());
  const std::string end =
      report.clean_shutdown.value_or(true) ? "" : "; not unmounted, the next mount recovers";
  if (report.findings == 0) return fmt::format("{}: clean: {}{}\n", store, checked, end);
  return fmt::format("{}: {} {}: {}{}\n", store, report.findings,
                     report.findings == 1 ? "finding" : "findings", checked, end);
}

void FindingList::Add(const Finding& finding) {
  if (count_++ < kMostFindingsListed) listed_.push_back(FindingToJson(finding));
}

Json CheckToJson(const std::string& store, const CheckReport& report, bool data,
                 const FindingList& findings) {
  return {{"store", store},
          {"clean", report.findings == 0},
          {"clean_shutdown", OrNull(report.clean_shutdown)},
          {"data", data},
          {"error", nullptr},
          {"finding_count", report.findings},
          {"findings", findings.listed()},
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

Json FailureToJson(const std::string& store, const Status& failure, const FindingList& findings) {
  return {{"store", store},
          {"clean", nullptr},
          {"error", failure.ToString()},
          {"finding_count", findings.count()},
          {"findings", findings.listed()}};
}

}  // namespace siltfs
