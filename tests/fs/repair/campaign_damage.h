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
  uint64_t size = 0;  // of the file

  std::string ToString() const;
  // "segments", "index", "meta" ...: the part of the store it is in.
  std::string part() const;
};

// Anywhere: the parts of a store as often as each other, however many files they have.
inline constexpr std::array<std::string_view, 6> kAnywhere = {"segments", "segments",   "index",
                                                              "meta/",    "superblock", ""};

// In files whose path within the store begins with one of `parts`, each as often as the others.
Damage DrawDamage(const CampaignStore& store, std::span<const std::string_view> parts,
                  Random& random);

// False if it changes nothing.
bool Apply(const Damage& damage, SimEnv& env, Random& random);

// What siltfs never reads, or reads and does without: by the file's name, why.
std::optional<std::string> WhyUnused(const Damage& damage);

// A repair loses nothing where this was damaged.
bool IsRepairable(const CampaignStore& store, const Damage& damage);

}  // namespace siltfs::testing
