#include "fs/bucket/bucket_usage.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "fs/open/store_layout.h"
#include "store/base/checksum.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kFirstLine = "siltfs bucket usage 1\n";
constexpr std::string_view kAnyFirstLine = "siltfs bucket usage ";
constexpr std::string_view kChecksum = "checksum ";
constexpr std::string_view kSince = "since";
constexpr size_t kMostBytes = 4096;
// A sync of a small file in this time costs nothing, and a killed process loses little.
constexpr std::chrono::minutes kInterval(5);

struct Field {
  std::string_view name;
  uint64_t ObjectStoreCounters::*value;
};
constexpr std::array<Field, 9> kFields = {{{"put", &ObjectStoreCounters::puts},
                                           {"get", &ObjectStoreCounters::gets},
                                           {"head", &ObjectStoreCounters::stats},
                                           {"list", &ObjectStoreCounters::lists},
                                           {"delete", &ObjectStoreCounters::removes},
                                           {"retries", &ObjectStoreCounters::retries},
                                           {"failures", &ObjectStoreCounters::failures},
                                           {"sent", &ObjectStoreCounters::sent_bytes},
                                           {"received", &ObjectStoreCounters::received_bytes}}};

Status Damaged(std::string_view what) {
  return {StatusCode::kCorruption, fmt::format("the file of the bucket's usage {}", what)};
}

std::string ChecksumLine(std::string_view lines) {
  return fmt::format("{}{:016x}\n", kChecksum, Checksum(AsBytes(lines)));
}

template <typename Number>
bool ParseNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

Status SetField(std::string_view name, std::string_view value, BucketUsage& usage) {
  if (name == kSince)
    return ParseNumber(value, usage.since_ns) ? Status::Ok() : Damaged("has a wrong time");
  for (const Field& field : kFields) {
    if (field.name != name) continue;
    return ParseNumber(value, usage.requests.*field.value) ? Status::Ok()
                                                           : Damaged("has a wrong number");
  }
  return {StatusCode::kNeedsNewer, fmt::format("has the unknown line \"{}\"", name)};
}

// a + b - c
ObjectStoreCounters Sum(const ObjectStoreCounters& a, const ObjectStoreCounters& b,
                        const ObjectStoreCounters& c) {
  ObjectStoreCounters sum;
  for (const Field& field : kFields)
    sum.*field.value = a.*field.value + b.*field.value - c.*field.value;
  return sum;
}

}  // namespace

std::string EncodeBucketUsage(const BucketUsage& usage) {
  std::string lines(kFirstLine);
  lines += fmt::format("{} {}\n", kSince, usage.since_ns);
  for (const Field& field : kFields)
    lines += fmt::format("{} {}\n", field.name, usage.requests.*field.value);
  return lines + ChecksumLine(lines);
}

Result<BucketUsage> DecodeBucketUsage(std::string_view text) {
  if (!text.starts_with(kAnyFirstLine)) return Damaged("has another first line");
  if (!text.starts_with(kFirstLine))
    return Status(StatusCode::kNeedsNewer, "a newer siltfs has written the bucket's usage");
  const size_t end = text.rfind(kChecksum);
  if (end == std::string_view::npos || text.substr(end) != ChecksumLine(text.substr(0, end)))
    return Damaged("does not have its checksum");
  std::string_view lines = text.substr(kFirstLine.size(), end - kFirstLine.size());
  BucketUsage usage;
  while (!lines.empty()) {
    const size_t line_end = lines.find('\n');
    const size_t space = lines.find(' ');
    if (line_end == std::string_view::npos || space > line_end) return Damaged("has a wrong line");
    SILTFS_RETURN_IF_ERROR(
        SetField(lines.substr(0, space), lines.substr(space + 1, line_end - space - 1), usage));
    lines.remove_prefix(line_end + 1);
  }
  return usage;
}

Result<BucketUsage> ReadBucketUsage(Env& env, const std::string& store, int64_t now_ns) {
  const std::string path = BucketUsagePath(store);
  const auto text = ReadWholeFile(env, path, kMostBytes);
  if (text.status().Is(StatusCode::kNotFound))
    return BucketUsage{.requests = {}, .since_ns = now_ns};
  if (text.status().Is(StatusCode::kFileTooLarge)) return Damaged("is too large").At(path);
  SILTFS_RETURN_IF_ERROR(text.status());
  auto usage = DecodeBucketUsage(*text);
  if (!usage.ok()) return std::move(usage).status().At(path);
  return usage;
}

BucketUsageRecorder::BucketUsageRecorder(Env& env, std::string store, const ObjectStore& objects)
    : env_(env), store_(std::move(store)), objects_(objects) {
  const int64_t now = env_.NowNanoseconds();
  auto saved = ReadBucketUsage(env_, store_, now);
  MutexLock lock(mutex_);
  saved_ = saved.ok() ? *saved : BucketUsage{.requests = {}, .since_ns = now};
}

BucketUsageRecorder::~BucketUsageRecorder() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
  Save().IgnoreError("the numbers are for people; the store is complete without them");
}

void BucketUsageRecorder::Start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { ThreadMain(); });
}

void BucketUsageRecorder::ThreadMain() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    const auto end = std::chrono::steady_clock::now() + kInterval;
    for (;;) {
      const auto left = end - std::chrono::steady_clock::now();
      if (stopping_ || left.count() <= 0) break;
      changed_.WaitFor(mutex_, left);
    }
    if (!stopping_) SaveLocked().IgnoreError("it is repeated");
  }
}

Status BucketUsageRecorder::Save() {
  MutexLock lock(mutex_);
  return SaveLocked();
}

// The file is read again: the end of this process may overlap with the start of the next one, after
// the lock of the store was released.
Status BucketUsageRecorder::SaveLocked() {
  const ObjectStoreCounters now = objects_.Counters();
  const auto read = ReadBucketUsage(env_, store_, saved_.since_ns);
  if (!read.ok() && !read.status().Is(StatusCode::kCorruption)) return read.status();
  BucketUsage usage = read.ok() ? *read : saved_;
  usage.requests = Sum(usage.requests, now, counted_);
  SILTFS_RETURN_IF_ERROR(
      ReplaceFile(env_, BucketUsagePath(store_), AsBytes(EncodeBucketUsage(usage))));
  saved_ = usage;
  counted_ = now;
  return Status::Ok();
}

BucketUsage BucketUsageRecorder::Total() const {
  MutexLock lock(mutex_);
  return {.requests = Sum(saved_.requests, objects_.Counters(), counted_),
          .since_ns = saved_.since_ns};
}

}  // namespace siltfs
