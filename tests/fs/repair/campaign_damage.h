// Damage to one file of a campaign's store, drawn at random.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "store/base/random.h"
#include "tests/fs/repair/campaign_store.h"

namespace siltfs::testing {

enum class DamageKind : uint8_t { kFlip, kZeroPage, kTruncate, kDelete };

struct Damage {
  std::string path;
  DamageKind kind = DamageKind::kFlip;
  uint64_t offset = 0;
  uint64_t size = 0;  // the file's size

  std::string ToString() const;
  // "segments", "index", "meta" ...: the part of the store it is in.
  std::string part() const;
};

// Parts for damage anywhere: drawn independently of the number of files in each part.
inline constexpr std::array<std::string_view, 6> kAnywhere = {"segments", "segments",   "index",
                                                              "meta/",    "superblock", ""};

// Draws damage in files whose path within the store begins with one of `parts`; each part has equal
// probability.
Damage DrawDamage(const CampaignStore& store, std::span<const std::string_view> parts,
                  Random& random);

// False if it changes nothing.
bool Apply(const Damage& damage, SimEnv& env, Random& random);

// The reason, by the file's name, if siltfs never reads the damaged bytes or does without them.
std::optional<std::string> WhyUnused(const Damage& damage);

// Whether a repair loses nothing of this damage.
bool IsRepairable(const CampaignStore& store, const Damage& damage);

}  // namespace siltfs::testing
