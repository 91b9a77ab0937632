#include "tools/siltfs/health.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/tools/run_in_process.h"
#include "tests/tools/some_statistics.h"
#include "tools/siltfs/monitored_store.h"

namespace siltfs::testing {
namespace {

HealthReport Judged(const FileSystemStats& stats, const HealthLimits& limits = {}) {
  return JudgeHealth(ToMountedJson(stats), limits, kSomeTime);
}

// Fails unless the report has only this finding, with a text like this in its line.
void CheckFinding(const HealthReport& report, HealthState state, const std::string& check,
                  const std::string& text) {
  const std::string line = FormatHealth(report);
  INFO(line);
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].check == check);
  CHECK(report.state() == state);
  CHECK(line.starts_with(std::string("SILTFS ") + std::string(NameOf(state)) + " - /mnt: "));
  CHECK(Has(line.substr(0, line.find('|')), text));
  CHECK(Lines(line) == 1);
}

TEST_CASE("a healthy store is OK, and the line has its figures") {
  const std::string line = FormatHealth(Judged(SomeStatistics()));
  CHECK(line ==
        "SILTFS OK - /mnt: 40.0 GiB of data in 5.0 GiB, disk 40% full, verified 3 days ago | "
        "'damaged_blocks'=0;;0;0 'damaged_chunks'=0;;;0 "
        "'disk_used'=42949672960B;91268055040;102005473280;0;107374182400 "
        "'awaiting_recompression'=1073741824B;107374182400;;0 'dead'=1048576B;;;0;5368709120 "
        "'scrub_age'=259200s;3024000;;0 'logical'=42949672960B;;;0 'total'=5371854848B;;;0 "
        "'index_memory'=25B;;;0 'total_ratio'=7.995315;;;0 'files'=3;;;0 "
        "'sha1_collisions'=0c;;;0\n");
}

TEST_CASE("a bucket that is far behind or does not answer is a warning, and a takeover critical") {
  const auto judged = [](const StoreBucketStats& bucket, const HealthLimits& limits = {}) {
    return JudgeHealth(WithBucket(ToMountedJson(SomeStatistics()), bucket), limits, kSomeTime);
  };
  StoreBucketStats bucket = SomeBucket();
  CHECK(judged(bucket).state() == HealthState::kOk);
  CHECK(Has(FormatHealth(judged(bucket)), "'bucket_behind'=0s;900;;0 'bucket_outage'=0s;900;;0"));
  bucket.lag->commits = 1;
  bucket.lag->seconds = 900;
  CHECK(judged(bucket).state() == HealthState::kOk);
  bucket.lag->seconds = 901;
  CheckFinding(judged(bucket), HealthState::kWarning, "bucket-lag",
               "the bucket is 901 seconds behind, and so much is lost with the disk; \"siltfs stat "
               "/mnt\" shows what waits");
  CHECK(judged(bucket, {.bucket_lag_seconds = 901}).state() == HealthState::kOk);
  CHECK(judged(bucket, {.bucket_lag_seconds = 0}).state() == HealthState::kOk);
  bucket = SomeBucket();
  bucket.segments.uploads = {
      .waiting = 1, .waiting_bytes = 1, .behind_seconds = 5000, .last_error = {}};
  CheckFinding(judged(bucket), HealthState::kWarning, "bucket-lag", "5000 seconds behind");
  bucket = SomeBucket();
  bucket.health.is_out = true;
  bucket.health.present_outage = std::chrono::seconds(1000);
  CheckFinding(judged(bucket), HealthState::kWarning, "bucket-outage",
               "the bucket has not answered for 1000 seconds; see the last error in \"siltfs stat");
  bucket = SomeBucket();
  bucket.lag->fenced = true;
  CheckFinding(judged(bucket), HealthState::kCritical, "bucket-writer",
               "another machine has taken over the bucket");
  // A daemon of another version.
  nlohmann::json other = ToMountedJson(SomeStatistics());
  for (const nlohmann::json& value : std::vector<nlohmann::json>{
           nullptr, 1, {{"fenced", 1}, {"seconds_behind", "x"}, {"outage_seconds", nullptr}}}) {
    other["bucket"] = value;
    CHECK(JudgeHealth(other, {}, kSomeTime).state() == HealthState::kOk);
  }
}

TEST_CASE("damage is critical") {
  FileSystemStats stats = SomeStatistics();
  stats.damaged_blocks = 2;
  stats.damaged_chunks = 9;
  CheckFinding(Judged(stats), HealthState::kCritical, "damage",
               "2 blocks with 9 chunks are damaged; run \"siltfs scrub /mnt\"");
  CHECK(HealthWord(ToMountedJson(stats)) == "damaged");
}

TEST_CASE("damaged footers are a warning, because they cost no data") {
  FileSystemStats stats = SomeStatistics();
  stats.last_scrub->damaged_footers = 4;
  CheckFinding(
      Judged(stats), HealthState::kWarning, "footers",
      "4 damaged footers of segments; unmount the store, run \"siltfs fsck -y /srv/store\"");
}

TEST_CASE("a store that a failure has made read-only is critical, one mounted so is not") {
  FileSystemStats stats = SomeStatistics();
  stats.read_only = true;
  CHECK(Judged(stats).state() == HealthState::kOk);
  CHECK(HealthWord(ToMountedJson(stats)) == "ok");
  stats.read_only_cause = "cannot write: Input/output error";
  CheckFinding(Judged(stats), HealthState::kCritical, "read-only",
               "read-only (cannot write: Input/output error); unmount it");
  CHECK(HealthWord(ToMountedJson(stats)) == "failed");
}

TEST_CASE("the disk below the store is judged by two limits") {
  FileSystemStats stats = SomeStatistics();
  stats.disk_bytes = 1000;
  const auto with = [&stats](uint64_t available, const HealthLimits& limits = {}) {
    stats.disk_available_bytes = available;
    return Judged(stats, limits);
  };
  CHECK(with(151).state() == HealthState::kOk);
  CheckFinding(with(150), HealthState::kWarning, "disk", "is 85% full; free space on it");
  CHECK(with(51).state() == HealthState::kWarning);
  CheckFinding(with(50), HealthState::kCritical, "disk", "is 95% full");
  CheckFinding(with(0), HealthState::kCritical, "disk", "is 100% full");
  CHECK(with(50, {.full_percent = 0}).state() == HealthState::kWarning);
  CHECK(with(0, {.nearly_full_percent = 0, .full_percent = 0}).state() == HealthState::kOk);
  CHECK(with(990, {.nearly_full_percent = 1}).state() == HealthState::kWarning);
  // A daemon of an earlier version does not report its disk.
  stats.disk_bytes = 0;
  CHECK(with(0).state() == HealthState::kOk);
}

TEST_CASE("much data that awaits recompression is a warning") {
  FileSystemStats stats = SomeStatistics();
  const HealthLimits limits = {.backlog_bytes = uint64_t{2} << 30};
  stats.awaiting_recompression_bytes = uint64_t{2} << 30;
  CHECK(Judged(stats, limits).state() == HealthState::kOk);
  stats.awaiting_recompression_bytes = uint64_t{3} << 30;
  CheckFinding(Judged(stats, limits), HealthState::kWarning, "backlog",
               "3.0 GiB of the stored data await recompression, more than 2.0 GiB; run "
               "\"siltfs settle /mnt\" at a time");
  CHECK(Judged(stats, {.backlog_bytes = 0}).state() == HealthState::kOk);
}

TEST_CASE("much dead data is a warning, but not in a small store") {
  FileSystemStats stats = SomeStatistics();
  stats.dead_bytes = stats.stored_bytes / 2;
  CheckFinding(Judged(stats), HealthState::kWarning, "dead",
               "50% of the stored data are dead; run \"siltfs gc /mnt\"");
  CHECK(Judged(stats, {.dead_percent = 51}).state() == HealthState::kOk);
  CHECK(Judged(stats, {.dead_percent = 0}).state() == HealthState::kOk);
  stats.stored_bytes = 1 << 20;
  stats.dead_bytes = stats.stored_bytes;
  stats.awaiting_recompression_bytes = 0;
  CHECK(Judged(stats).state() == HealthState::kOk);
}

TEST_CASE("a store must be verified at times, and a new one has as long until the first time") {
  const auto days_ago = [](double days) {
    return static_cast<int64_t>((kSomeTime - days * 86'400) * 1e9);
  };
  FileSystemStats stats = SomeStatistics();
  stats.last_scrub->ended_ns = days_ago(34.9);
  CHECK(Judged(stats).state() == HealthState::kOk);
  stats.last_scrub->ended_ns = days_ago(36);
  CheckFinding(Judged(stats), HealthState::kWarning, "scrub",
               "verified 36 days ago for the last time; run \"siltfs scrub /mnt\"");
  CHECK(Judged(stats, {.scrub_age_days = 40}).state() == HealthState::kOk);
  CHECK(Judged(stats, {.scrub_age_days = 0}).state() == HealthState::kOk);
  stats.last_scrub.reset();
  stats.created_ns = days_ago(34);
  CHECK(Judged(stats).state() == HealthState::kOk);
  CHECK(Has(FormatHealth(Judged(stats)), "not verified yet"));
  CHECK_FALSE(Has(FormatHealth(Judged(stats)), "scrub_age"));
  stats.created_ns = days_ago(50);
  CheckFinding(Judged(stats), HealthState::kWarning, "scrub",
               "is 50 days old, and its data were never verified");
  // The clock may be set back.
  stats.last_scrub = LastScrub{.ended_ns = days_ago(-5)};
  CHECK(Has(FormatHealth(Judged(stats)), "verified 0 days ago"));
}

TEST_CASE("a store whose index is rebuilt is a warning") {
  FileSystemStats stats = SomeStatistics();
  stats.index_replay = {true, 5, 60};
  CheckFinding(Judged(stats), HealthState::kWarning, "index", "5 of 60 segments are done; wait");
  CHECK(HealthWord(ToMountedJson(stats)) == "rebuilding");
}

TEST_CASE("SHA-1 collisions are a figure, and no finding") {
  FileSystemStats stats = SomeStatistics();
  stats.sha1_collisions = 3;
  const HealthReport report = Judged(stats);
  CHECK(report.state() == HealthState::kOk);
  CHECK(Has(FormatHealth(report), " 'sha1_collisions'=3c;;;0\n"));
}

TEST_CASE("a store that is not mounted is a finding only if it must be mounted") {
  const auto statistics = ToJson(SomeStatistics(), "/srv/store", std::nullopt);
  const HealthReport report = JudgeHealth(statistics, {}, kSomeTime);
  CHECK(report.state() == HealthState::kOk);
  CHECK(FormatHealth(report).starts_with("SILTFS OK - /srv/store: not mounted, 40.0 GiB of data"));
  const HealthReport required = JudgeHealth(statistics, {.must_be_mounted = true}, kSomeTime);
  CHECK(FormatHealth(required).starts_with(
      "SILTFS CRITICAL - /srv/store: the store is not mounted; run \"siltfs mount /srv/store "
      "MOUNTPOINT\" | "));
}

TEST_CASE("the worst of several findings comes first, and decides") {
  FileSystemStats stats = SomeStatistics();
  stats.disk_available_bytes = 0;
  stats.index_replay = {true, 5, 60};
  stats.damaged_blocks = 1;
  stats.dead_bytes = stats.stored_bytes;
  const HealthReport report = Judged(stats);
  std::vector<std::string> checks;
  for (const HealthFinding& finding : report.findings) checks.push_back(finding.check);
  CHECK(checks == std::vector<std::string>{"damage", "disk", "dead", "index"});
  CHECK(report.state() == HealthState::kCritical);
  const std::string line = FormatHealth(report);
  INFO(line);
  CHECK(Lines(line) == 1);
  CHECK(Has(line, "SILTFS CRITICAL - /mnt: 1 blocks with 0 chunks are damaged"));
  CHECK(Has(line, ". The disk below the store is 100% full"));
  const auto json = HealthToJson(report);
  CHECK(json.at("state") == "critical");
  CHECK(json.at("exit_code") == 2);
  CHECK(json.at("findings").size() == 4);
  CHECK(json.at("findings")[3].at("state") == "warning");
  CHECK(json.at("findings")[3].at("check") == "index");
  CHECK(json.at("figures").at("damaged_blocks") == 1);
}

TEST_CASE("a store that cannot be read is judged by the cause") {
  const control::DaemonAddress mount = {.store = "/srv/store", .mountpoint = "/mnt"};
  const control::DaemonAddress store = {.store = "/srv/store"};
  const auto line = [](const control::DaemonAddress& address, StatusCode code) {
    const Status failure(code, "the cause");
    return FormatHealth(JudgeFailure(address, failure));
  };
  CHECK(line(store, StatusCode::kNotFound) ==
        "SILTFS UNKNOWN - /srv/store: the cause; name the directory of a store, or where it is "
        "mounted\n");
  CHECK(line(mount, StatusCode::kNotFound) ==
        "SILTFS CRITICAL - /mnt: no daemon serves this mount; \"siltfs umount /mnt\" removes it\n");
  CHECK(line(mount, StatusCode::kStale) == "SILTFS CRITICAL - /mnt: the cause\n");
  CHECK(line(mount, StatusCode::kIoError) == "SILTFS CRITICAL - /mnt: the cause\n");
  CHECK(line(store, StatusCode::kCorruption) ==
        "SILTFS CRITICAL - /srv/store: the store cannot be opened (the cause); run \"siltfs fsck "
        "/srv/store\"\n");
  CHECK(line(store, StatusCode::kAccessDenied) ==
        "SILTFS UNKNOWN - /srv/store: the cause; run the check as root, or as the owner of the "
        "store\n");
  for (const StatusCode code : {StatusCode::kInUse, StatusCode::kNeedsNewer, StatusCode::kAborted,
                                StatusCode::kNotPermitted}) {
    CHECK(line(mount, code) == "SILTFS UNKNOWN - /mnt: the cause\n");
  }
  CHECK(HealthWord(Status(StatusCode::kStale, "")) == "crashed");
  CHECK(HealthWord(Status(StatusCode::kAborted, "")) == "closing");
  CHECK(HealthWord(Status(StatusCode::kNotPermitted, "")) == "not permitted");
  CHECK(HealthWord(Status(StatusCode::kIoError, "")) == "not answering");
}

TEST_CASE("a bar or a line break in a path does not end the text of a plugin") {
  const Status failure(StatusCode::kIoError, "a|b");
  const std::string line =
      FormatHealth(JudgeFailure({.store = "/s", .mountpoint = "/x|y\nz"}, failure));
  CHECK(line == "SILTFS CRITICAL - /x\\x7cy\\nz: a\\x7cb\n");
  CHECK(FormatUnknown("--full: \"1|2\" is no number") ==
        "SILTFS UNKNOWN - --full: \"1\\x7c2\" is no number\n");
}

}  // namespace
}  // namespace siltfs::testing
