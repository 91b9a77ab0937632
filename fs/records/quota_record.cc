#include "fs/records/quota_record.h"

#include "fs/records/inode_record.h"
#include "fs/records/schema.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint8_t kVersion = 1;

Status Malformed(const char* what) {
  return {StatusCode::kCorruption, std::string("metadata holds a malformed ") + what};
}

int64_t Sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace

QuotaUsage& QuotaUsage::operator+=(const QuotaUsage& other) {
  bytes = Sum(bytes, other.bytes);
  files = Sum(files, other.files);
  return *this;
}

QuotaUsage QuotaUsage::operator-() const {
  QuotaUsage negated;
  negated.bytes = static_cast<int64_t>(-static_cast<uint64_t>(bytes));
  negated.files = static_cast<int64_t>(-static_cast<uint64_t>(files));
  return negated;
}

std::string QuotaRecord::Encode() const {
  return Encoder().U8(kVersion).U64(directory).U64(limits.bytes).U64(limits.files).Take();
}

Result<QuotaRecord> QuotaRecord::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  const bool known = in.U8() == kVersion;
  QuotaRecord record;
  record.directory = in.U64();
  record.limits.bytes = in.U64();
  record.limits.files = in.U64();
  if (!in.Done() || !known || record.directory == 0) return Malformed("quota");
  return record;
}

std::string EncodeUsage(const QuotaUsage& usage) {
  return Encoder().U8(kVersion).I64(usage.bytes).I64(usage.files).Take();
}

Result<QuotaUsage> DecodeUsage(std::string_view value) {
  Decoder in(AsBytes(value));
  const bool known = in.U8() == kVersion;
  QuotaUsage usage;
  usage.bytes = in.I64();
  usage.files = in.I64();
  if (!in.Done() || !known) return Malformed("usage of a quota");
  return usage;
}

std::string QuotaKey(QuotaNumber quota, QuotaPart part) {
  return Encoder()
      .U8(static_cast<uint8_t>(Table::kQuota))
      .BigU64(quota)
      .U8(static_cast<uint8_t>(part))
      .Take();
}

std::optional<ParsedQuotaKey> ParseQuotaKey(std::string_view key) {
  if (!IsKeyOf(Table::kQuota, key)) return std::nullopt;
  Decoder in(AsBytes(key.substr(1)));
  ParsedQuotaKey parsed;
  parsed.quota = in.BigU64();
  parsed.part = static_cast<QuotaPart>(in.U8());
  const bool known = parsed.part == QuotaPart::kLimits || parsed.part == QuotaPart::kUsage;
  if (!in.Done() || !known || parsed.quota == kNoQuota) return std::nullopt;
  return parsed;
}

void RemoveQuotaNumber(std::string& inode_record) {
  // The record was decoded before, or its reader finds out that it is malformed.
  if (!InodeRecord::HasQuotaNumber(inode_record)) return;
  auto record = InodeRecord::Decode(inode_record);
  if (!record.ok()) return;
  record->quota = kNoQuota;
  inode_record = record->Encode();
}

}  // namespace siltfs
