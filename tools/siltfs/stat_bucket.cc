#include "tools/siltfs/stat_bucket.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "store/base/size_text.h"
#include "tools/siltfs/printable_text.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

// The bucket's object in the statistics, or one in it.
class Figures {
 public:
  explicit Figures(const Json& json) : json_(json) {}

  bool Has(const char* key) const { return json_.is_object() && json_.contains(key); }
  uint64_t Number(const char* key) const {
    const Json* const value = Find(key);
    return value != nullptr && value->is_number_unsigned() ? value->get<uint64_t>() : 0;
  }
  double Real(const char* key) const {
    const Json* const value = Find(key);
    return value != nullptr && value->is_number() ? value->get<double>() : 0;
  }
  bool IsTrue(const char* key) const {
    const Json* const value = Find(key);
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }
  std::string Text(const char* key) const {
    const Json* const value = Find(key);
    return value != nullptr && value->is_string() ? Printable(value->get<std::string>()) : "";
  }
  Figures In(const char* key) const {
    static const Json kNone;
    const Json* const value = Find(key);
    return Figures(value == nullptr ? kNone : *value);
  }
  std::string Size(const char* key) const { return FormatSize(Number(key)); }
  std::string Count(const char* key) const { return FormatCount(Number(key)); }

 private:
  const Json* Find(const char* key) const { return Has(key) ? &json_.at(key) : nullptr; }

  const Json& json_;
};

// Rounded up, so that a lag is never shown as none.
std::string Seconds(double seconds) {
  constexpr double kMost = 1e15;
  return FormatCount(static_cast<uint64_t>(std::ceil(std::clamp(seconds, 0.0, kMost)))) + " s";
}

std::string Moment(double seconds) {
  constexpr double kLatest = 253'402'300'799;  // in the year 9999
  const double shown = std::clamp(seconds, 0.0, kLatest);
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(shown)));
}

void AddBytes(const Figures& bucket, StatTable& table) {
  table.Row("cache", bucket.Size("cache_bytes"),
            fmt::format("local, of {}", bucket.Size("cache_limit_bytes")));
  table.Row(
      "in the bucket", bucket.Size("bucket_bytes"),
      bucket.Number("metadata_bytes") == 0
          ? "of segments"
          : fmt::format("of segments, and at most {} of metadata", bucket.Size("metadata_bytes")));
  const uint64_t waiting = bucket.Number("waiting_segments");
  table.Row("waiting", bucket.Size("waiting_bytes"),
            fmt::format("in {} segment{} that the bucket does not have", FormatCount(waiting),
                        waiting == 1 ? "" : "s"));
  if (!bucket.IsTrue("cache_full")) return;
  table.Row("writers", "wait",
            "because the cache is full of segments that the bucket does not have");
}

void AddLag(const Figures& bucket, StatTable& table) {
  if (!bucket.Has("commits_behind")) return;
  if (bucket.Number("commits_behind") == 0 && bucket.Number("waiting_segments") == 0) {
    table.Row("behind", "no", "the bucket has everything");
    return;
  }
  std::string note = fmt::format("{} commits, with {} of metadata", bucket.Count("commits_behind"),
                                 bucket.Size("commit_bytes_behind"));
  if (bucket.IsTrue("checkpoint_waits")) note += "; a checkpoint brings them";
  table.Row("behind", Seconds(bucket.Real("seconds_behind")), std::move(note));
}

void AddWriter(const Figures& bucket, double now, StatTable& table) {
  if (bucket.Number("epoch") == 0) return;
  const double lease = bucket.Real("lease_end");
  std::string text = fmt::format("{}, epoch {}", bucket.Text("writer"), bucket.Count("epoch"));
  text += lease > now ? fmt::format(", lease until {}", Moment(lease)) : ", whose lease has ended";
  if (bucket.IsTrue("fenced")) text += "; this copy of the store has been replaced";
  table.Name("writer", std::move(text));
}

void AddFailures(const Figures& bucket, StatTable& table) {
  const double outage = bucket.Real("outage_seconds");
  if (outage > 0) table.Row("outage", Seconds(outage), "the bucket does not answer");
  const std::string error = bucket.Text("last_request_error");
  if (error.empty()) return;
  table.Name("last error",
             fmt::format("{}: {}", Moment(bucket.Real("last_request_error_at")), error));
}

std::string Kinds(const Figures& requests) {
  return fmt::format("{} PUT, {} GET, {} HEAD, {} LIST, {} DELETE", requests.Count("put_requests"),
                     requests.Count("get_requests"), requests.Count("head_requests"),
                     requests.Count("list_requests"), requests.Count("delete_requests"));
}

std::string Sum(const Figures& requests) {
  uint64_t sum = 0;
  for (const char* key :
       {"put_requests", "get_requests", "head_requests", "list_requests", "delete_requests"})
    sum += requests.Number(key);
  return FormatCount(sum);
}

void AddRequests(const Figures& bucket, bool mounted, StatTable& table) {
  const std::string since = mounted ? "since the mount" : "for this report";
  table.Row("requests", Sum(bucket), fmt::format("{}: {}", since, Kinds(bucket)));
  table.Row("repeated", bucket.Count("retries"),
            fmt::format("of them; {} calls failed", bucket.Count("request_failures")));
  table.Row("sent", bucket.Size("sent_bytes"),
            fmt::format("{} received, {}", bucket.Size("received_bytes"), since));
  const Figures total = bucket.In("total");
  if (!total.Has("since")) return;
  table.Row("all requests", Sum(total),
            fmt::format("since {}: {}", Moment(total.Real("since")), Kinds(total)));
  table.Row("all bytes sent", total.Size("sent_bytes"),
            fmt::format("{} received", total.Size("received_bytes")));
}

void AddCost(const Figures& bucket, bool mounted, StatTable& table) {
  const Figures cost = bucket.In("estimated_cost");
  if (!cost.Has("storage_per_month")) return;
  const std::string currency = cost.Text("currency");
  table.Name(
      "estimated",
      fmt::format("{:.2f} {} a month for storage; {:.2f} for requests and {:.2f} for reading {}",
                  cost.Real("storage_per_month"), currency, cost.Real("requests"),
                  cost.Real("egress"), mounted ? "since the mount" : "for this report"));
  table.Name("",
             fmt::format("{:.2f} {} for requests and {:.2f} for reading over the life of the store",
                         cost.Real("total_requests"), currency, cost.Real("total_egress")));
  if (bucket.In("prices").IsTrue("are_defaults"))
    table.Name("", "with prices that may not be yours; see siltfs tune --bucket-prices");
}

}  // namespace

void AddBucket(const Json& statistics, double now, StatTable& table) {
  const auto found = statistics.find("bucket");
  if (found == statistics.end() || !found->is_object()) return;
  const Figures bucket(*found);
  const auto pid = statistics.find("pid");
  const bool mounted = pid != statistics.end() && !pid->is_null();
  table.Section(fmt::format("Bucket ({})", bucket.Text("address")));
  AddBytes(bucket, table);
  AddLag(bucket, table);
  AddWriter(bucket, now, table);
  AddFailures(bucket, table);
  AddRequests(bucket, mounted, table);
  AddCost(bucket, mounted, table);
}

}  // namespace siltfs
