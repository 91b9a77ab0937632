#include "tools/siltfs/metrics_text.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/siltfs/metric_families.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;
using Labels = std::vector<std::pair<std::string_view, std::string>>;

// Returns the text with U+FFFD in place of bytes that are not UTF-8, which the format requires.
std::string ToUtf8(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string EscapeLabel(const std::string& value) {
  std::string escaped;
  for (const char c : ToUtf8(value)) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string FormatNumber(const Json& number) {
  if (number.is_boolean()) return number == true ? "1" : "0";
  if (number.is_number_float()) return fmt::format("{}", number.get<double>());
  return number.dump();
}

// The text is made family by family: a family's description must come right before its samples, and
// samples of two families must not be mixed.
class Writer {
 public:
  explicit Writer(MetricsFormat format) : open_(format == MetricsFormat::kOpenMetrics) {}

  // The following samples belong to this family. Nothing is written for a family without samples.
  void Family(const MetricFamily& family) {
    name_ = fmt::format("siltfs_{}", family.name);
    const bool is_counter = family.type == MetricType::kCounter;
    if (is_counter && !open_) name_ += "_total";
    head_ = fmt::format("# TYPE {} {}\n", name_, is_counter ? "counter" : "gauge");
    if (open_ && family.unit[0] != '\0') head_ += fmt::format("# UNIT {} {}\n", name_, family.unit);
    head_ += fmt::format("# HELP {} {}\n", name_, family.help);
    if (is_counter && open_) name_ += "_total";
  }

  void Sample(const std::string& store, const Json& number, const Labels& labels = {}) {
    text_ += std::exchange(head_, {});
    text_ += fmt::format("{}{{store=\"{}\"", name_, EscapeLabel(store));
    for (const auto& [name, value] : labels)
      text_ += fmt::format(",{}=\"{}\"", name, EscapeLabel(value));
    text_ += fmt::format("}} {}\n", FormatNumber(number));
  }

  std::string Finish() { return std::move(text_) + "# EOF\n"; }

 private:
  const bool open_;
  std::string name_;  // of the family's samples
  std::string head_;  // of a family without samples so far
  std::string text_;
};

// The statistics may come from a daemon of another version, or from a program that only claims to
// be one. So nothing is expected of them. A key that is missing counts as null.
const Json& At(const Json& object, const char* key) {
  static const Json missing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? missing : *found;
}

std::string TextAt(const Json& object, const char* key) {
  const Json& text = At(object, key);
  return text.is_string() ? text.get<std::string>() : "";
}

// A pointer may lead to nothing: without deltas, for example, their statistics are null.
const Json* NumberAt(const Json& document, const char* pointer) {
  const Json::json_pointer place(pointer);
  if (!document.contains(place)) return nullptr;
  const Json& found = document.at(place);
  return found.is_number() || found.is_boolean() ? &found : nullptr;
}

Labels InfoLabels(const Json& statistics) {
  return {{"engine", TextAt(At(statistics, "index"), "engine")},
          {"chunker_kernel", TextAt(statistics, "chunker_kernel")},
          {"sha1_kernel", TextAt(statistics, "sha1_kernel")},
          {"transport", TextAt(statistics, "transport")},
          {"mountpoint", TextAt(statistics, "mountpoint")}};
}

// Calls `write` with each store whose statistics could be read.
template <typename Write>
void ForEachRead(std::span<const StoreStatistics> stores, Write write) {
  for (const StoreStatistics& store : stores) {
    if (!store.statistics.is_null()) write(store.store, store.statistics);
  }
}

void WriteStates(std::span<const StoreStatistics> stores, Writer& writer) {
  writer.Family(
      {"up", "", MetricType::kGauge, "",
       "1 if the statistics of the store could be read; otherwise there is no other metric."});
  for (const StoreStatistics& store : stores)
    writer.Sample(store.store, store.statistics.is_null() ? 0 : 1);
  writer.Family({"mounted", "", MetricType::kGauge, "", "1 if the store is mounted."});
  ForEachRead(stores, [&](const std::string& store, const Json& statistics) {
    writer.Sample(store, At(statistics, "pid").is_null() ? 0 : 1);
  });
  writer.Family(
      {"failed", "", MetricType::kGauge, "", "1 if a failure has made the store read-only."});
  ForEachRead(stores, [&](const std::string& store, const Json& statistics) {
    writer.Sample(store, At(statistics, "read_only_cause").is_null() ? 0 : 1);
  });
  writer.Family(
      {"store_info", "", MetricType::kGauge, "", "Always 1; the labels describe the store."});
  ForEachRead(stores, [&](const std::string& store, const Json& statistics) {
    writer.Sample(store, 1, InfoLabels(statistics));
  });
}

void WriteFamily(const MetricFamily& family, std::span<const StoreStatistics> stores,
                 Writer& writer) {
  writer.Family(family);
  ForEachRead(stores, [&](const std::string& store, const Json& statistics) {
    if (const Json* number = NumberAt(statistics, family.pointer)) writer.Sample(store, *number);
  });
}

void WriteKindFamily(const MetricFamily& family, std::span<const StoreStatistics> stores,
                     Writer& writer) {
  writer.Family(family);
  ForEachRead(stores, [&](const std::string& store, const Json& statistics) {
    std::set<std::string> kinds;  // each is written once
    for (const Json& kind : At(At(statistics, "index"), "stores")) {
      if (!kinds.insert(TextAt(kind, "kind")).second) continue;
      if (const Json* number = NumberAt(kind, family.pointer))
        writer.Sample(store, *number, {{"kind", TextAt(kind, "kind")}});
    }
  });
}

void WriteBucketRequests(std::span<const StoreStatistics> stores, Writer& writer) {
  writer.Family(kBucketRequestsFamily);
  ForEachRead(stores, [&](const std::string& store, const Json& statistics) {
    for (const RequestKind& kind : BucketRequestKinds()) {
      if (const Json* number = NumberAt(statistics, kind.pointer))
        writer.Sample(store, *number, {{"kind", kind.kind}});
    }
  });
}

}  // namespace

std::string FormatMetrics(std::span<const StoreStatistics> stores, MetricsFormat format) {
  Writer writer(format);
  WriteStates(stores, writer);
  for (const MetricFamily& family : StoreMetricFamilies()) WriteFamily(family, stores, writer);
  for (const MetricFamily& family : IndexKindMetricFamilies())
    WriteKindFamily(family, stores, writer);
  WriteBucketRequests(stores, writer);
  return writer.Finish();
}

std::string FormatMetrics(const std::string& store, const Json& statistics, MetricsFormat format) {
  return FormatMetrics(std::vector<StoreStatistics>{{store, statistics}}, format);
}

}  // namespace siltfs
