#include "tools/siltfs/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "store/base/size_text.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr double kDay = 86'400;
// With less stored data the share of dead bytes says nothing: garbage collection leaves small
// stores alone.
constexpr uint64_t kLeastForDead = uint64_t{1} << 30;

uint64_t Number(const Json& statistics, const char* key) {
  return statistics.at(key).get<uint64_t>();
}

// The share in percent, rounded down, so that a limit is exceeded only if it is reached.
uint64_t Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0
                    : static_cast<uint64_t>(100 * static_cast<long double>(part) /
                                            static_cast<long double>(whole));
}

// Collects findings and figures about one store.
class Judge {
 public:
  Judge(const Json& statistics, const HealthLimits& limits, double now)
      : statistics_(statistics), limits_(limits), now_(now) {
    const Json& mountpoint = statistics.at("mountpoint");
    mounted_ = !statistics.at("pid").is_null();
    store_ = statistics.at("store").get<std::string>();
    report_.subject = mountpoint.is_null() ? store_ : mountpoint.get<std::string>();
  }

  HealthReport Finish() {
    Mounted();
    Damage();
    ReadOnly();
    Disk();
    Backlog();
    Scrub();
    Index();
    Bucket();
    Sizes();
    std::ranges::stable_sort(report_.findings, std::ranges::greater(), &HealthFinding::state);
    report_.overview = fmt::format(
        "{}{} of data in {}, disk {}% full, {}", mounted_ ? "" : "not mounted, ",
        FormatSize(Number(statistics_, "logical_bytes")), FormatSize(TotalBytes()), full_,
        age_ ? fmt::format("verified {} days ago", static_cast<uint64_t>(*age_ / kDay))
             : "not verified yet");
    return std::move(report_);
  }

 private:
  void Find(HealthState state, std::string check, std::string sentence) {
    report_.findings.push_back({state, std::move(check), std::move(sentence)});
  }

  uint64_t TotalBytes() const {
    return Number(statistics_, "stored_bytes") + Number(statistics_, "metadata_bytes") +
           Number(statistics_, "index_bytes");
  }

  void Mounted() {
    if (mounted_ || !limits_.must_be_mounted) return;
    Find(HealthState::kCritical, "mount",
         fmt::format("the store is not mounted; run \"siltfs mount {} MOUNTPOINT\"", store_));
  }

  void Damage() {
    const uint64_t blocks = Number(statistics_, "damaged_blocks");
    const uint64_t chunks = Number(statistics_, "damaged_chunks");
    report_.figures.push_back(
        {.label = "damaged_blocks", .value = static_cast<double>(blocks), .critical = 0.0});
    report_.figures.push_back({.label = "damaged_chunks", .value = static_cast<double>(chunks)});
    if (blocks > 0) {
      Find(HealthState::kCritical, "damage",
           fmt::format("{} blocks with {} chunks are damaged; run \"siltfs scrub {}\", which names "
                       "the damaged files, and write these files again from a backup",
                       blocks, chunks, report_.subject));
    }
    const Json scrub = statistics_.value("last_scrub", Json());
    const uint64_t footers = scrub.is_null() ? 0 : Number(scrub, "damaged_footers");
    if (footers > 0) {
      Find(
          HealthState::kWarning, "footers",
          fmt::format("the last scrub found {} damaged footers of segments; unmount the store, run "
                      "\"siltfs fsck -y {}\", and scrub it again",
                      footers, store_));
    }
  }

  void ReadOnly() {
    const Json& cause = statistics_.at("read_only_cause");
    if (cause.is_null()) return;
    Find(HealthState::kCritical, "read-only",
         fmt::format("a failure has made the store read-only ({}); unmount it, run \"siltfs fsck "
                     "{}\", and mount it again",
                     cause.get<std::string>(), store_));
  }

  void Disk() {
    const uint64_t size = statistics_.value("disk_bytes", uint64_t{0});
    if (size == 0) return;
    const uint64_t used =
        size - std::min(size, statistics_.value("disk_available_bytes", uint64_t{0}));
    full_ = Percent(used, size);
    const auto limit = [size](uint64_t percent) {
      return percent == 0
                 ? std::nullopt
                 : std::optional(static_cast<double>(size) / 100 * static_cast<double>(percent));
    };
    report_.figures.push_back({.label = "disk_used",
                               .value = static_cast<double>(used),
                               .unit = "B",
                               .warning = limit(limits_.nearly_full_percent),
                               .critical = limit(limits_.full_percent),
                               .maximum = static_cast<double>(size)});
    const auto reaches = [this](uint64_t percent) { return percent > 0 && full_ >= percent; };
    if (!reaches(limits_.full_percent) && !reaches(limits_.nearly_full_percent)) return;
    Find(reaches(limits_.full_percent) ? HealthState::kCritical : HealthState::kWarning, "disk",
         fmt::format("the disk below the store is {}% full; free space on it, or delete files and "
                     "snapshots and run \"siltfs gc {}\"",
                     full_, report_.subject));
  }

  void Backlog() {
    const uint64_t stored = Number(statistics_, "stored_bytes");
    const uint64_t awaiting = Number(statistics_, "awaiting_recompression_bytes");
    const uint64_t dead = Number(statistics_, "dead_bytes");
    HealthFigure backlog{
        .label = "awaiting_recompression", .value = static_cast<double>(awaiting), .unit = "B"};
    if (limits_.backlog_bytes > 0) backlog.warning = static_cast<double>(limits_.backlog_bytes);
    report_.figures.push_back(std::move(backlog));
    report_.figures.push_back({.label = "dead",
                               .value = static_cast<double>(dead),
                               .unit = "B",
                               .maximum = static_cast<double>(stored)});
    if (limits_.backlog_bytes > 0 && awaiting > limits_.backlog_bytes) {
      Find(HealthState::kWarning, "backlog",
           fmt::format("{} of the stored data await recompression, more than {}; run "
                       "\"siltfs settle {}\" at a time when the store is little used",
                       FormatSize(awaiting), FormatSize(limits_.backlog_bytes), report_.subject));
    }
    if (limits_.dead_percent > 0 && stored >= kLeastForDead &&
        Percent(dead, stored) >= limits_.dead_percent) {
      Find(HealthState::kWarning, "dead",
           fmt::format("{}% of the stored data are dead; run \"siltfs gc {}\"",
                       Percent(dead, stored), report_.subject));
    }
  }

  void Scrub() {
    const Json last = statistics_.value("last_scrub", Json());
    const double created = statistics_.value("created_at", 0.0);
    const double limit = static_cast<double>(limits_.scrub_age_days) * kDay;
    if (!last.is_null()) {
      age_ = std::max(0.0, now_ - last.at("ended_at").get<double>());
      HealthFigure figure{.label = "scrub_age", .value = *age_, .unit = "s"};
      if (limit > 0) figure.warning = limit;
      report_.figures.push_back(std::move(figure));
    }
    // Earlier versions of the daemon do not report the age of the store.
    const double unverified = age_ ? *age_ : created > 0 ? now_ - created : 0;
    if (limit == 0 || unverified <= limit) return;
    const auto days = static_cast<uint64_t>(unverified / kDay);
    Find(HealthState::kWarning, "scrub",
         age_ ? fmt::format("all data were verified {} days ago for the last time; run \"siltfs "
                            "scrub {}\"",
                            days, report_.subject)
              : fmt::format("the store is {} days old, and its data were never verified; run "
                            "\"siltfs scrub {}\"",
                            days, report_.subject));
  }

  void Index() {
    const Json& replay = statistics_.at("index_replay");
    if (replay.at("running") != true) return;
    Find(HealthState::kWarning, "index",
         fmt::format("the index is being rebuilt, {} of {} segments are done; wait until it is "
                     "ready, because all writes wait for it, too",
                     Number(replay, "segments_done"), Number(replay, "segments_total")));
  }

  // The bucket of a store comes from the daemon, so any key may be missing (store_bucket_report.h).
  void Bucket() {
    const auto found = statistics_.find("bucket");
    if (found == statistics_.end() || !found->is_object()) return;
    const auto number = [&found](const char* key) {
      const auto value = found->find(key);
      return value != found->end() && value->is_number() ? value->get<double>() : 0.0;
    };
    const auto fenced = found->find("fenced");
    if (fenced != found->end() && *fenced == true) {
      Find(HealthState::kCritical, "bucket-writer",
           "another machine has taken over the bucket of this copy of the store; unmount it, and "
           "mount the bucket with an empty directory if it is needed here");
    }
    const double behind = number("seconds_behind");
    const double outage = number("outage_seconds");
    const auto limit = static_cast<double>(limits_.bucket_lag_seconds);
    const auto figure = [&](const char* label, double value) {
      HealthFigure made{.label = label, .value = value, .unit = "s"};
      if (limit > 0) made.warning = limit;
      report_.figures.push_back(std::move(made));
    };
    figure("bucket_behind", behind);
    figure("bucket_outage", outage);
    if (limit == 0) return;
    if (outage > limit) {
      Find(HealthState::kWarning, "bucket-outage",
           fmt::format("the bucket has not answered for {:.0f} seconds; see the last error in "
                       "\"siltfs stat {}\", and check the network, the service and the credentials",
                       outage, report_.subject));
    }
    if (behind > limit) {
      Find(HealthState::kWarning, "bucket-lag",
           fmt::format("the bucket is {:.0f} seconds behind, and so much is lost with the disk; "
                       "\"siltfs stat {}\" shows what waits, and why",
                       behind, report_.subject));
    }
  }

  // Figures without a check.
  void Sizes() {
    const auto bytes = [this](const char* label, uint64_t value) {
      report_.figures.push_back({.label = label, .value = static_cast<double>(value), .unit = "B"});
    };
    bytes("logical", Number(statistics_, "logical_bytes"));
    bytes("total", TotalBytes());
    bytes("index_memory", Number(statistics_.at("index"), "memory_bytes"));
    report_.figures.push_back(
        {.label = "total_ratio", .value = statistics_.at("total_ratio").get<double>()});
    report_.figures.push_back(
        {.label = "files", .value = static_cast<double>(Number(statistics_, "files"))});
    report_.figures.push_back({.label = "sha1_collisions",
                               .value = static_cast<double>(Number(statistics_, "sha1_collisions")),
                               .unit = "c"});
  }

  const Json& statistics_;
  const HealthLimits& limits_;
  const double now_;
  bool mounted_ = false;
  std::string store_;
  uint64_t full_ = 0;          // of the disk, in percent
  std::optional<double> age_;  // of the last scrub, in seconds
  HealthReport report_;
};

}  // namespace

HealthState HealthReport::state() const {
  HealthState worst = HealthState::kOk;
  for (const HealthFinding& finding : findings) worst = std::max(worst, finding.state);
  return worst;
}

HealthReport JudgeHealth(const Json& statistics, const HealthLimits& limits, double now) {
  return Judge(statistics, limits, now).Finish();
}

HealthReport JudgeFailure(const control::DaemonAddress& address, const Status& failure) {
  HealthReport report;
  report.subject = address.mountpoint.empty() ? address.store : address.mountpoint;
  const std::string cause(failure.cause());
  HealthFinding finding{.state = HealthState::kUnknown, .check = "daemon", .sentence = cause};
  switch (failure.code()) {
    case StatusCode::kNotFound:
      if (!address.mountpoint.empty()) {
        finding.state = HealthState::kCritical;
        finding.sentence = fmt::format(
            "no daemon serves this mount; \"siltfs umount {}\" removes it", address.mountpoint);
        break;
      }
      finding.check = "store";
      finding.sentence =
          fmt::format("{}; name the directory of a store, or where it is mounted", cause);
      break;
    case StatusCode::kStale:
    case StatusCode::kIoError:
      finding.state = HealthState::kCritical;
      break;
    case StatusCode::kCorruption:
      finding = {HealthState::kCritical, "store",
                 fmt::format("the store cannot be opened ({}); run \"siltfs fsck {}\"",
                             failure.ToString(), address.store)};
      break;
    case StatusCode::kAccessDenied:
      finding.sentence += "; run the check as root, or as the owner of the store";
      break;
    default:
      break;
  }
  report.findings.push_back(std::move(finding));
  return report;
}

}  // namespace siltfs
