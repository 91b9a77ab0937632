#include "fs/control/activity_json.h"

#include <string>

namespace siltfs {
namespace {

using Json = nlohmann::json;
using Report = StoreActivityReport;

struct NumberKey {
  const char* pointer;
  uint64_t& (*field)(Report& report);
};

// Both directions use this table, so they cannot disagree.
constexpr NumberKey kNumbers[] = {
    {"/read_bytes", [](Report& r) -> uint64_t& { return r.read_bytes; }},
    {"/reads", [](Report& r) -> uint64_t& { return r.reads; }},
    {"/written_bytes", [](Report& r) -> uint64_t& { return r.written_bytes; }},
    {"/writes", [](Report& r) -> uint64_t& { return r.writes; }},
    {"/put_bytes", [](Report& r) -> uint64_t& { return r.put_bytes; }},
    {"/put_chunks", [](Report& r) -> uint64_t& { return r.put_chunks; }},
    {"/put_chunks_found_in_memory",
     [](Report& r) -> uint64_t& { return r.put_chunks_found_in_memory; }},
    {"/added_bytes", [](Report& r) -> uint64_t& { return r.added_bytes; }},
    {"/block_hits", [](Report& r) -> uint64_t& { return r.block_hits; }},
    {"/blocks_decoded", [](Report& r) -> uint64_t& { return r.blocks_decoded; }},
    {"/index/lookups", [](Report& r) -> uint64_t& { return r.index.lookups; }},
    {"/index/flash_reads", [](Report& r) -> uint64_t& { return r.index.flash_reads; }},
    {"/index/flash_bytes_written",
     [](Report& r) -> uint64_t& { return r.index.flash_bytes_written; }},
    {"/index/conversions", [](Report& r) -> uint64_t& { return r.index.conversions; }},
    {"/index/merges", [](Report& r) -> uint64_t& { return r.index.merges; }},
    {"/index/merge_backlog", [](Report& r) -> uint64_t& { return r.index.merge_backlog; }},
    {"/recompression/bytes", [](Report& r) -> uint64_t& { return r.recompression.bytes; }},
    {"/gc/bytes", [](Report& r) -> uint64_t& { return r.gc.bytes; }},
    {"/scrub/bytes", [](Report& r) -> uint64_t& { return r.scrub.bytes; }},
    {"/stored_bytes", [](Report& r) -> uint64_t& { return r.stored_bytes; }},
    {"/dead_bytes", [](Report& r) -> uint64_t& { return r.dead_bytes; }},
    {"/awaiting_recompression_bytes",
     [](Report& r) -> uint64_t& { return r.awaiting_recompression_bytes; }},
    {"/damaged_blocks", [](Report& r) -> uint64_t& { return r.damaged_blocks; }},
    {"/disk_available_bytes", [](Report& r) -> uint64_t& { return r.disk_available_bytes; }},
};

struct FlagKey {
  const char* pointer;
  bool& (*field)(Report& report);
};

constexpr FlagKey kFlags[] = {
    {"/recompression/running", [](Report& r) -> bool& { return r.recompression.running; }},
    {"/gc/running", [](Report& r) -> bool& { return r.gc.running; }},
    {"/scrub/running", [](Report& r) -> bool& { return r.scrub.running; }},
    {"/read_only", [](Report& r) -> bool& { return r.read_only; }},
};

// What the run of a job that runs now has done. Watches do not need it, so ActivityFromJson leaves
// it out, and understands daemons that do not report it.
void AddProgress(Json& job, const WorkProgress& progress) {
  job["step"] = std::string(progress.step);
  job["done"] = progress.done;
  job["total"] = progress.total;
}

Status Malformed(const char* pointer) {
  return Status(StatusCode::kCorruption,
                std::string("the daemon's report of its activity has no valid ") + pointer);
}

}  // namespace

Json ToJson(const StoreActivityReport& activity) {
  Report copy = activity;
  Json json = {{"monotonic_ns", activity.monotonic_ns}};
  for (const NumberKey& key : kNumbers) json[Json::json_pointer(key.pointer)] = key.field(copy);
  for (const FlagKey& key : kFlags) json[Json::json_pointer(key.pointer)] = key.field(copy);
  AddProgress(json["recompression"], activity.recompression.progress);
  AddProgress(json["gc"], activity.gc.progress);
  AddProgress(json["scrub"], activity.scrub.progress);
  return json;
}

Result<StoreActivityReport> ActivityFromJson(const Json& json) {
  Report report;
  const auto time = json.is_object() ? json.find("monotonic_ns") : json.end();
  if (time == json.end() || !time->is_number_integer()) return Malformed("monotonic_ns");
  report.monotonic_ns = time->get<int64_t>();
  for (const NumberKey& key : kNumbers) {
    const Json::json_pointer pointer(key.pointer);
    if (!json.contains(pointer) || !json.at(pointer).is_number_unsigned())
      return Malformed(key.pointer);
    key.field(report) = json.at(pointer).get<uint64_t>();
  }
  for (const FlagKey& key : kFlags) {
    const Json::json_pointer pointer(key.pointer);
    if (!json.contains(pointer) || !json.at(pointer).is_boolean()) return Malformed(key.pointer);
    key.field(report) = json.at(pointer).get<bool>();
  }
  return report;
}

}  // namespace siltfs
