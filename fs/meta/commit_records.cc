#include "fs/meta/commit_records.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "fs/records/schema.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

bool IsOwnKey(std::string_view key) {
  if (key.empty()) return false;
  const auto table = static_cast<Table>(key[0]);
  return key == kCommitNumberKey || key == kCountersKey || table == Table::kSnapshot ||
         table == Table::kBucketPosition || table == Table::kEpochFloors ||
         table == Table::kFormerSegments || table == Table::kVersion ||
         table == Table::kVersionList || ParseInodeKey(Table::kLineage, key).has_value();
}

Status Refused(std::string_view key) {
  return {StatusCode::kInvalidArgument,
          "key \"" + std::string(key) + "\" is written by commits alone"};
}

Result<Counters> DecodeCounters(std::string_view value) {
  Counters counters{};
  Decoder decoder(AsBytes(value));
  for (int64_t& counter : counters) counter = decoder.I64();
  if (!decoder.Done()) return Status(StatusCode::kCorruption, "the counters have a wrong length");
  return counters;
}

}  // namespace

// Adds as unsigned numbers, which wrap around. With signed numbers, a damaged counter could cause
// undefined behaviour.
void AddTo(Counters& sum, const Counters& differences) {
  for (size_t i = 0; i < sum.size(); ++i) {
    sum[i] =
        static_cast<int64_t>(static_cast<uint64_t>(sum[i]) + static_cast<uint64_t>(differences[i]));
  }
}

std::string EncodeCommitNumber(uint64_t number) { return Encoder().U64(number).Take(); }

std::string EncodeCounters(const Counters& counters) {
  Encoder encoder;
  for (int64_t counter : counters) encoder.I64(counter);
  return encoder.Take();
}

Result<uint64_t> LoadCommitNumber(const KvStore& kv) {
  SILTFS_ASSIGN_OR_RETURN(const std::optional<std::string> value, kv.Get(kCommitNumberKey));
  if (!value) return uint64_t{0};
  Decoder decoder(AsBytes(*value));
  const uint64_t number = decoder.U64();
  if (!decoder.Done()) {
    return Status(StatusCode::kCorruption, "the number of the last commit is not 8 bytes long");
  }
  return number;
}

Result<Counters> LoadCounters(const KvStore& kv, uint64_t last_commit) {
  SILTFS_ASSIGN_OR_RETURN(const std::optional<std::string> value, kv.Get(kCountersKey));
  if (!value && last_commit == 0) return Counters{};
  if (!value) return Status(StatusCode::kCorruption, "the counters are missing");
  return DecodeCounters(*value);
}

Result<uint64_t> CountInodes(const KvSnapshot& metadata) {
  SILTFS_ASSIGN_OR_RETURN(const std::optional<std::string> value, metadata.Get(kCountersKey));
  if (!value) return uint64_t{0};
  SILTFS_ASSIGN_OR_RETURN(const Counters counters, DecodeCounters(*value));
  const auto count = [&](Counter which) {
    return static_cast<uint64_t>(std::max<int64_t>(counters[static_cast<size_t>(which)], 0));
  };
  return count(Counter::kFiles) + count(Counter::kDirectories);
}

Status RefuseOwnKeys(const std::vector<Mutation>& mutations) {
  for (const Mutation& mutation : mutations) {
    if (IsOwnKey(mutation.key)) return Refused(mutation.key);
  }
  return Status::Ok();
}

Status RefuseOwnKeys(const KvRun& run) {
  for (const KvRecord& record : run) {
    if (IsOwnKey(record.key)) return Refused(record.key);
  }
  return Status::Ok();
}

}  // namespace siltfs
