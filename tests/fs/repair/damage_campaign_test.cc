// Damages random places in all files of a store. The damage must be found or harmless, no file is
// ever read wrong, exactly the lost ranges cannot be read, and repairable damage is repaired.
//
// For long manual runs: SILTFS_DAMAGE_TRIALS sets the number of trials, SILTFS_DAMAGE_TOGETHER the
// number of damaged places per trial (in segments, the index and superblock copies; each in another
// file, so that the findings can be distinguished), SILTFS_DAMAGE_BYTES the store's size,
// SILTFS_DAMAGE_SEED the random places, and SILTFS_DAMAGE_FIRST the first trial.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "fs/repair/repair_store.h"
#include "store/base/random.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/fs/repair/campaign_damage.h"
#include "tests/support/catch.h"
#include "tests/support/test_scale.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kSmallStore = 1'500'000;
constexpr uint64_t kSmallSegment = 256u << 10;

uint64_t FromEnvironment(const char* name, uint64_t usual) {
  const char* text = std::getenv(name);
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

struct Tally {
  uint64_t trials = 0;
  uint64_t places = 0;
  uint64_t unchanged = 0;
  std::map<std::string, uint64_t> found;   // by the part of the store
  std::map<std::string, uint64_t> unused;  // by the reason
  uint64_t refused = 0;                    // trials where the store did not open
  uint64_t bytes_read = 0;                 // read and compared
  uint64_t pieces_failed = 0;              // unreadable pieces of files
  uint64_t repairable = 0;                 // places that a repair fixes without a loss
  uint64_t repaired = 0;                   // trials that a safe repair fixed
  uint64_t repaired_all = 0;               // other trials, which a full repair fixed
  uint64_t salvaged = 0;                   // of these, trials with damage in metadata
  uint64_t salvaged_whole = 0;             // of these, trials that left all files unchanged
  uint64_t nameless = 0;                   // files moved to /lost+found

  std::string ToString() const {
    std::string text = fmt::format(
        "{} trials, {} places, {} of them as before\n"
        "  {} places can be repaired without a loss, and were\n"
        "  trials repaired without a loss {}, by all means {}; {} times the store did not open\n"
        "  metadata salvaged {} times, {} of them all files as they were, {} files without names\n"
        "  {} bytes were read and right, {} pieces of files failed to be read\n",
        trials, places, unchanged, repairable, repaired, repaired_all, refused, salvaged,
        salvaged_whole, nameless, bytes_read, pieces_failed);
    for (const auto& [part, count] : found) text += fmt::format("  found in {}: {}\n", part, count);
    for (const auto& [why, count] : unused) text += fmt::format("  unused: {}: {}\n", why, count);
    return text;
  }
};

// The result of a check.
struct Checked {
  bool refused = false;  // the check could not begin
  std::vector<Finding> findings;
  std::vector<LostRange> lost;

  bool clean() const { return !refused && findings.empty(); }
  bool Names(const std::string& path) const {
    return std::any_of(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.path == path; });
  }
  bool Has(std::string_view codes) const {
    return std::any_of(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.code.starts_with(codes); });
  }
  std::string ToString() const {
    std::string text;
    for (const Finding& finding : findings)
      text += finding.code + " " + finding.path + ": " + finding.message + "\n";
    return text;
  }
};

Checked Check(SimEnv& env) {
  Checked checked;
  CheckOptions options;
  options.store = CampaignStore::kPath;
  options.data = true;
  options.on_finding = [&](const Finding& finding) { checked.findings.push_back(finding); };
  options.on_lost = [&](const LostRange& range) { checked.lost.push_back(range); };
  const auto report = CheckStore(env, options);
  report.status().IgnoreError("a refusal also reports it");
  checked.refused = !report.ok();
  if (report.ok()) REQUIRE(report->findings == checked.findings.size());
  return checked;
}

Result<RepairReport> RepairIt(SimEnv& env, RepairMode mode) {
  RepairOptions options;
  options.check.store = CampaignStore::kPath;
  options.check.data = true;
  options.mode = mode;
  return RepairStore(env, options);
}

// The expected content of a file: the original with zeros in the ranges that the repair reported as
// holes; nullopt if it reported the file as lost.
std::optional<Bytes> ContentAfter(const std::string& name, const Bytes& content,
                                  const RepairReport* repaired) {
  if (repaired == nullptr) return content;
  Bytes expected = content;
  for (const LostContent& lost : repaired->lost) {
    if (lost.path != "/" + name) continue;
    if (lost.range.length == 0) return std::nullopt;
    std::fill_n(expected.begin() + static_cast<ptrdiff_t>(lost.range.offset), lost.range.length,
                uint8_t{0});
  }
  return expected;
}

bool IsLost(const std::vector<LostRange>& lost, InodeNumber inode, uint64_t begin, uint64_t end) {
  return std::any_of(lost.begin(), lost.end(), [&](const LostRange& range) {
    return range.inode == inode && range.offset < end && begin < range.offset + range.length;
  });
}

// Reads everything and requires right bytes or an error. If `lost` is given, exactly its ranges
// must have errors. Returns whether everything could be read.
bool ReadAll(const CampaignStore& store, SimEnv& env, const std::vector<LostRange>* lost,
             const RepairReport* repaired, Tally& tally) {
  auto fs = CampaignStore::Open(env, /*read_only=*/true);
  if (!fs.ok()) {
    fs.status().IgnoreError("refused");
    REQUIRE(repaired == nullptr);
    ++tally.refused;
    return false;
  }
  bool whole = true;
  for (const auto& [name, content] : store.files()) {
    const auto expected = ContentAfter(name, content, repaired);
    whole = whole && expected == content;
    if (!expected) continue;
    const auto inode = Resolve(**fs, name);
    if (!inode.ok()) {
      // Only damaged metadata may prevent the lookup of a name.
      REQUIRE_FALSE(inode.status().Is(StatusCode::kNotFound));
      whole = false;
      continue;
    }
    constexpr size_t kStep = 100'000;
    for (size_t at = 0; at < expected->size(); at += kStep) {
      Bytes piece(std::min(kStep, expected->size() - at));
      const auto got = (*fs)->Read(*inode, at, piece);
      INFO(name << " at " << at << ": " << got.status().ToString());
      if (lost != nullptr) REQUIRE(got.ok() != IsLost(*lost, *inode, at, at + piece.size()));
      if (!got.ok()) {
        got.status().IgnoreError("an error is right");
        ++tally.pieces_failed;
        whole = false;
        continue;
      }
      const bool same =
          *got == piece.size() &&
          std::equal(piece.begin(), piece.end(), expected->begin() + static_cast<ptrdiff_t>(at));
      REQUIRE(same);
      tally.bytes_read += piece.size();
    }
  }
  (*fs)->Close().IgnoreError("nothing was written");
  return whole;
}

// Whether each salvaged byte is the file's byte at its place, or zero, as before the file was
// written.
bool IsMadeOf(const Bytes& salvaged, const Bytes& content) {
  if (salvaged.size() > content.size()) return false;
  for (size_t at = 0; at < salvaged.size(); ++at) {
    if (salvaged[at] != content[at] && salvaged[at] != 0) return false;
  }
  return true;
}

// After a salvage of metadata, files may be older, nameless or gone; none has another file's bytes.
void ReadSalvaged(const CampaignStore& store, SimEnv& env, Tally& tally) {
  auto fs = CampaignStore::Open(env, /*read_only=*/true);
  REQUIRE_OK(fs);
  uint64_t whole = 0;
  for (const std::string& name : ListNames(**fs, kRootInode)) {
    const auto inode = Resolve(**fs, name);
    REQUIRE_OK(inode);
    if (name == "lost+found") {
      for (const std::string& nameless : ListNames(**fs, *inode)) {
        const auto found = Resolve(**fs, name + "/" + nameless);
        REQUIRE_OK(found);
        const auto bytes = ReadFile(**fs, *found);
        REQUIRE_OK(bytes);
        INFO(nameless);
        REQUIRE(std::any_of(store.files().begin(), store.files().end(),
                            [&](const auto& file) { return IsMadeOf(*bytes, file.second); }));
        ++tally.nameless;
      }
      continue;
    }
    INFO(name);
    const auto file = store.files().find(name);
    REQUIRE(file != store.files().end());
    const auto bytes = ReadFile(**fs, *inode);
    REQUIRE_OK(bytes);
    REQUIRE(IsMadeOf(*bytes, file->second));
    tally.bytes_read += bytes->size();
    whole += *bytes == file->second ? 1 : 0;
  }
  ++tally.salvaged;
  tally.salvaged_whole += whole == store.files().size() ? 1 : 0;
  REQUIRE_OK((*fs)->Close());
}

// Draws one place anywhere, or several places in files that do not hide each other's damage.
std::vector<Damage> DrawTrial(const CampaignStore& store, size_t together, Random& random) {
  if (together == 1) return {DrawDamage(store, kAnywhere, random)};
  std::vector<Damage> damages;
  // Draw one place each in the index and the superblock, because findings there name the part, not
  // the place.
  constexpr std::array<std::string_view, 1> kIndex = {"index"};
  constexpr std::array<std::string_view, 1> kSuperblock = {"superblock"};
  constexpr std::array<std::string_view, 1> kSegments = {"segments"};
  std::set<std::string> paths;
  for (size_t i = 0; i < together; ++i) {
    Damage damage = i == 0   ? DrawDamage(store, kIndex, random)
                    : i == 1 ? DrawDamage(store, kSuperblock, random)
                             : DrawDamage(store, kSegments, random);
    if (paths.insert(damage.path).second) damages.push_back(std::move(damage));
  }
  return damages;
}

bool IsReported(const Damage& damage, const Checked& checked, bool alone) {
  if (alone) return !checked.clean();
  if (damage.part() == "index") return checked.Has("index-") || checked.Has("not-indexed");
  if (damage.part() == "superblock") return checked.Has("superblock");
  return checked.Names(damage.path);
}

void RunTrial(const CampaignStore& store, size_t together, uint64_t seed, Tally& tally) {
  Random random(seed);
  const auto env = store.env().Fork();
  std::string what;
  std::vector<Damage> damages;
  ++tally.trials;
  for (Damage& damage : DrawTrial(store, together, random)) {
    ++tally.places;
    what += "\n  " + damage.ToString();
    if (Apply(damage, *env, random)) {
      damages.push_back(std::move(damage));
    } else {
      ++tally.unchanged;
    }
  }
  INFO("trial " << seed << ":" << what);
  if (damages.empty()) return;
  const bool alone = damages.size() == 1;

  const Checked checked = Check(*env);
  INFO(checked.ToString());
  for (const Damage& damage : damages) {
    const auto why = WhyUnused(damage);
    INFO(damage.ToString());
    if (IsReported(damage, checked, alone)) {
      ++tally.found[damage.part()];
    } else {
      REQUIRE(why.has_value());
      ++tally.unused[*why];
    }
  }
  const auto read_from = env->Fork();
  const bool readable =
      ReadAll(store, *read_from, checked.refused ? nullptr : &checked.lost, nullptr, tally);
  if (checked.clean()) {
    REQUIRE(readable);
    return;
  }

  const bool repairable = std::all_of(damages.begin(), damages.end(), [&](const Damage& damage) {
    return IsRepairable(store, damage);
  });
  for (const Damage& damage : damages) tally.repairable += IsRepairable(store, damage) ? 1 : 0;
  const auto safe = env->Fork();
  const auto repaired = RepairIt(*safe, RepairMode::kSafe);
  repaired.status().IgnoreError("looked at below");
  if (repaired.ok() && repaired->left == 0) {
    REQUIRE(repaired->lost.empty());
    REQUIRE(ReadAll(store, *safe, nullptr, nullptr, tally));
    REQUIRE(Check(*safe).clean());
    ++tally.repaired;
    return;
  }
  REQUIRE_FALSE(repairable);
  if (repaired.ok()) {
    // All findings about repairable damage must have been repaired.
    for (const RepairedFinding& one : repaired->findings) {
      for (const Damage& damage : damages) {
        if (IsRepairable(store, damage) && one.finding.path == damage.path) REQUIRE(one.repaired);
      }
    }
  }
  const auto full = RepairIt(*env, RepairMode::kAll);
  REQUIRE_OK(full);
  REQUIRE(full->left == 0);
  ++tally.repaired_all;
  if (damages.front().part() == "meta") {
    ReadSalvaged(store, *env, tally);
  } else {
    ReadAll(store, *env, nullptr, &*full, tally);
  }
  const Checked again = Check(*env);
  INFO(again.ToString());
  REQUIRE(again.clean());
}

Tally Run(uint64_t trials, size_t together) {
  const CampaignStore store(FromEnvironment("SILTFS_DAMAGE_BYTES", kSmallStore), kSmallSegment);
  const uint64_t seed = FromEnvironment("SILTFS_DAMAGE_SEED", 1);
  const uint64_t first = FromEnvironment("SILTFS_DAMAGE_FIRST", 0);
  Tally tally;
  for (uint64_t i = first; i < first + trials; ++i)
    RunTrial(store, together, seed * 1'000'000'000 + i, tally);
  return tally;
}

}  // namespace

TEST_CASE("damage anywhere is found or harmless, and no file is read wrong") {
  const Tally tally = Run(std::max<uint64_t>(20, Share(100)), 1);
  INFO(tally.ToString());
  CHECK(tally.repaired > 0);
  CHECK(tally.found.size() >= 3);
}

TEST_CASE("damage at many places at once is reported one by one") {
  const Tally tally = Run(std::max<uint64_t>(2, Share(10)), 8);
  INFO(tally.ToString());
  CHECK(tally.repairable > 0);
  CHECK(tally.found.size() == 3);
}

TEST_CASE("damage at the requested number of places", "[.campaign]") {
  const Tally tally = Run(FromEnvironment("SILTFS_DAMAGE_TRIALS", 100),
                          FromEnvironment("SILTFS_DAMAGE_TOGETHER", 1));
  std::cout << tally.ToString();
  CHECK(tally.places > 0);
}

}  // namespace siltfs::testing
