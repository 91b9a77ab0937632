// The records of a quota (docs/quotas.md): its limits and its usage. Encoding: docs/format.md,
// "Quota".
//
// A quota has a number, which inodes below its directory have in their records. Its records are
// shown by snapshots like the records of an inode with this number. No inode has this number.
// Thread-safety: as for plain values. Errors: kCorruption for malformed records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/result.h"

namespace siltfs {

// The number of a quota; kNoQuota: none.
using QuotaNumber = uint64_t;
inline constexpr QuotaNumber kNoQuota = 0;

struct QuotaLimits {
  uint64_t bytes = 0;  // logical bytes of regular files; 0: no limit
  uint64_t files = 0;  // inodes of every type, without the directory of the quota; 0: no limit
  bool operator==(const QuotaLimits&) const = default;
};

// What counts against the limits; or a difference.
struct QuotaUsage {
  int64_t bytes = 0;
  int64_t files = 0;
  bool operator==(const QuotaUsage&) const = default;
  QuotaUsage& operator+=(const QuotaUsage& other);  // wraps around
  QuotaUsage operator-() const;
};

struct QuotaRecord {
  uint64_t directory = 0;  // its inode
  QuotaLimits limits;

  std::string Encode() const;
  static Result<QuotaRecord> Decode(std::string_view value);
  bool operator==(const QuotaRecord&) const = default;
};

std::string EncodeUsage(const QuotaUsage& usage);
Result<QuotaUsage> DecodeUsage(std::string_view value);

// The keys of the two records.
enum class QuotaPart : char { kLimits = 'l', kUsage = 'u' };
std::string QuotaKey(QuotaNumber quota, QuotaPart part);
struct ParsedQuotaKey {
  QuotaNumber quota = kNoQuota;
  QuotaPart part = QuotaPart::kLimits;
};
std::optional<ParsedQuotaKey> ParseQuotaKey(std::string_view key);

// Removes the number of a quota from the encoded record of an inode, if it has one.
void RemoveQuotaNumber(std::string& inode_record);

}  // namespace siltfs
