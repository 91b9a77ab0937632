#include "fs/bucket/bucket_config.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "fs/open/store_layout.h"
#include "store/base/checksum.h"
#include "store/env/files.h"
#include "store/s3/bucket_address.h"

namespace siltfs {
namespace {

constexpr std::string_view kFirstLine = "siltfs bucket 1\n";
constexpr std::string_view kAnyFirstLine = "siltfs bucket ";
constexpr std::string_view kChecksum = "checksum ";
constexpr std::string_view kCache = "cache";
constexpr std::string_view kPrices = "prices";
constexpr size_t kMostBytes = 16384;

struct Field {
  std::string_view name;
  std::string BucketConfig::*value;
};
constexpr std::array<Field, 5> kFields = {{{"address", &BucketConfig::address},
                                           {"endpoint", &BucketConfig::endpoint},
                                           {"region", &BucketConfig::region},
                                           {"credentials", &BucketConfig::credentials},
                                           {"ca-file", &BucketConfig::ca_file}}};

Status Damaged(std::string_view what) {
  return {StatusCode::kCorruption,
          fmt::format("{}; write the file again with siltfs tune, or take it from a copy", what)};
}

bool HasLineEnd(std::string_view text) { return text.find('\n') != std::string_view::npos; }

std::string ChecksumLine(std::string_view lines) {
  return fmt::format("{}{:016x}\n", kChecksum, Checksum(AsBytes(lines)));
}

Status SetField(std::string_view name, std::string_view value, BucketConfig& config) {
  if (name == kCache) {
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), config.cache_bytes);
    if (error != std::errc() || end != value.data() + value.size())
      return Damaged("the size of the cache is not a number");
    return Status::Ok();
  }
  if (name == kPrices) {
    auto prices = ParsePrices(value, BucketPrices());
    if (!prices.ok()) return Damaged(prices.status().cause());
    config.prices = *std::move(prices);
    return Status::Ok();
  }
  for (const Field& field : kFields) {
    if (field.name != name) continue;
    config.*field.value = value;
    return Status::Ok();
  }
  return {StatusCode::kNeedsNewer, fmt::format("has the unknown line \"{}\"", name)};
}

}  // namespace

bool NamesBucket(std::string_view text) { return LooksLikeBucketUrl(text); }

Status ValidateBucketConfig(const BucketConfig& config) {
  for (const Field& field : kFields) {
    if (HasLineEnd(config.*field.value)) {
      return {StatusCode::kInvalidArgument,
              fmt::format("the {} of the bucket has a line break", field.name)};
    }
  }
  SILTFS_RETURN_IF_ERROR(ParseBucketUrl(config.address).status());
  if (!config.endpoint.empty()) SILTFS_RETURN_IF_ERROR(ParseEndpoint(config.endpoint).status());
  if (config.cache_bytes < kLeastBucketCacheBytes) {
    return {StatusCode::kInvalidArgument, fmt::format("the cache of a bucket needs at least {} MiB",
                                                      kLeastBucketCacheBytes >> 20)};
  }
  return Status::Ok();
}

std::string EncodeBucketConfig(const BucketConfig& config) {
  std::string lines(kFirstLine);
  for (const Field& field : kFields) {
    const std::string& value = config.*field.value;
    if (!value.empty()) lines += fmt::format("{} {}\n", field.name, value);
  }
  lines += fmt::format("{} {}\n", kCache, config.cache_bytes);
  if (config.prices) lines += fmt::format("{} {}\n", kPrices, FormatPrices(*config.prices));
  return lines + ChecksumLine(lines);
}

Result<BucketConfig> DecodeBucketConfig(std::string_view text) {
  if (!text.starts_with(kAnyFirstLine)) return Damaged("the file is not a siltfs bucket file");
  if (!text.starts_with(kFirstLine))
    return Status(StatusCode::kNeedsNewer, "a newer siltfs has written the bucket file");
  const size_t end = text.rfind(kChecksum);
  if (end == std::string_view::npos || text.substr(end) != ChecksumLine(text.substr(0, end)))
    return Damaged("the bucket file does not have its checksum");
  std::string_view lines = text.substr(kFirstLine.size(), end - kFirstLine.size());
  BucketConfig config;
  while (!lines.empty()) {
    const size_t line_end = lines.find('\n');
    if (line_end == std::string_view::npos) return Damaged("a line of the bucket file has no end");
    const std::string_view line = lines.substr(0, line_end);
    lines.remove_prefix(line_end + 1);
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) return Damaged("a line of the bucket file has no value");
    SILTFS_RETURN_IF_ERROR(SetField(line.substr(0, space), line.substr(space + 1), config));
  }
  SILTFS_RETURN_IF_ERROR(ValidateBucketConfig(config));
  return config;
}

Status WriteBucketConfig(Env& env, const std::string& store, const BucketConfig& config) {
  SILTFS_RETURN_IF_ERROR(ValidateBucketConfig(config));
  return ReplaceFile(env, BucketConfigPath(store), AsBytes(EncodeBucketConfig(config)));
}

Result<std::optional<BucketConfig>> ReadBucketConfig(Env& env, const std::string& store) {
  const std::string path = BucketConfigPath(store);
  const auto text = ReadWholeFile(env, path, kMostBytes);
  if (text.status().Is(StatusCode::kNotFound)) return std::optional<BucketConfig>();
  if (text.status().Is(StatusCode::kFileTooLarge))
    return Damaged("the file is not a siltfs bucket file").At(path);
  SILTFS_RETURN_IF_ERROR(text.status());
  auto config = DecodeBucketConfig(*text);
  if (!config.ok()) return std::move(config).status().At(path);
  return std::optional<BucketConfig>(std::move(*config));
}

}  // namespace siltfs
