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
  // The part of the store that has the file: "segments", "index", "meta" ...
  std::string part() const;
};

// The parts for DrawDamage that cover the whole store. Each element is drawn as often as any other,
// whatever its number of files. "segments" is there twice; the last one allows any file.
inline constexpr std::array<std::string_view, 6> kAnywhere = {"segments", "segments",   "index",
                                                              "meta/",    "superblock", ""};

// Draws damage in files whose path within the store begins with one of `parts`; each part has equal
// probability.
Damage DrawDamage(const CampaignStore& store, std::span<const std::string_view> parts,
                  Random& random);

// Applies the damage; returns false if that changes nothing.
bool Apply(const Damage& damage, SimEnv& env, Random& random);

// Returns why damage to this file cannot matter: siltfs never reads the bytes, or does not need
// them. The file's name decides. Returns nullopt for all other files.
std::optional<std::string> WhyUnused(const Damage& damage);

// Whether a repair undoes this damage without a loss.
bool IsRepairable(const CampaignStore& store, const Damage& damage);

}  // namespace siltfs::testing
