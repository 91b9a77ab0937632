#include "tests/fs/repair/campaign_damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "store/env/files.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_format.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kPage = 4096;

std::string NameOf(const Damage& damage) { return damage.path.substr(damage.path.rfind('/') + 1); }

std::string Within(const std::string& part) {
  return std::string(CampaignStore::kPath) + "/" + part;
}

}  // namespace

std::string Damage::ToString() const {
  constexpr const char* kKinds[] = {"flip", "zero", "truncate", "delete"};
  return fmt::format("{} {} of {} bytes at {}", kKinds[static_cast<int>(kind)], path, size, offset);
}

std::string Damage::part() const {
  for (const std::string part : {"segments", "index", "meta.ledger", "meta", "superblock"}) {
    if (path.starts_with(Within(part))) return part;
  }
  return path;
}

Damage DrawDamage(const CampaignStore& store, std::span<const std::string_view> parts,
                  Random& random) {
  const std::string part = Within(std::string(parts[random.Below(parts.size())]));
  std::vector<Damage> files;
  for (const auto& [path, size] : store.sizes()) {
    if (path.starts_with(part)) files.push_back({path, DamageKind::kFlip, 0, size});
  }
  Damage damage = files[random.Below(files.size())];
  const uint64_t kind = random.Below(10);
  damage.kind = kind < 5   ? DamageKind::kFlip
                : kind < 8 ? DamageKind::kZeroPage
                : kind < 9 ? DamageKind::kTruncate
                           : DamageKind::kDelete;
  // Sometimes the place is near the beginning or the end of the file, where headers and footers
  // are.
  const uint64_t within = std::min<uint64_t>(damage.size, random.Below(4) == 0 ? 500 : damage.size);
  damage.offset = damage.size == 0 ? 0 : random.Below(within);
  if (random.Below(2) == 0 && within > 0) damage.offset = damage.size - 1 - damage.offset;
  return damage;
}

bool Apply(const Damage& damage, SimEnv& env, Random& random) {
  if (damage.kind == DamageKind::kDelete) {
    REQUIRE_OK(env.RemoveFile(damage.path));
    return true;
  }
  if (damage.size == 0) return false;
  auto file = env.OpenFile(damage.path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  if (damage.kind == DamageKind::kTruncate) {
    REQUIRE_OK((*file)->Truncate(damage.offset));
    return true;
  }
  const bool flip = damage.kind == DamageKind::kFlip;
  const uint64_t begin = flip ? damage.offset : damage.offset / kPage * kPage;
  Bytes bytes(flip ? 1 : std::min(kPage, damage.size - begin));
  REQUIRE_OK(ReadExactly(**file, begin, bytes));
  const Bytes before = bytes;
  if (flip) {
    bytes[0] = static_cast<uint8_t>(bytes[0] ^ (1u << random.Below(8)));
  } else {
    std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  }
  REQUIRE_OK((*file)->Write(begin, bytes));
  return bytes != before;
}

std::optional<std::string> WhyUnused(const Damage& damage) {
  const std::string name = NameOf(damage);
  if (name == "lock" || name == "LOCK") return "lock files";
  if (name == "IDENTITY" || name.starts_with("OPTIONS-")) return "RocksDB's notes to itself";
  if (name == "meta.ledger") return "the closing mark of the sync ledger";
  if (damage.part() == "meta" && name.ends_with(".log"))
    return "RocksDB's log, empty after an unmount";
  return std::nullopt;
}

bool IsRepairable(const CampaignStore& store, const Damage& damage) {
  const auto blocks_end = store.BlocksEnd(damage.path);
  if (blocks_end && damage.kind == DamageKind::kFlip)
    return damage.offset < kSegmentHeaderSize || damage.offset >= *blocks_end;
  return damage.part() == "index" || damage.part() == "superblock";
}

}  // namespace siltfs::testing
