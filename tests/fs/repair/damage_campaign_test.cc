// Damage at places drawn at random, over every file of a store, one at a time: it is found or it
// harms nothing, no file is ever read wrong, and what can be repaired is.
//
// SILTFS_DAMAGE_PLACES says how many places, SILTFS_DAMAGE_SEED draws others, and
// SILTFS_DAMAGE_FIRST goes on from a place on. 100,000 take some hours.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <map>

#include "fs/core/make_store.h"
#include "fs/repair/repair_store.h"
#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

const std::string kPath = "/store";
constexpr uint64_t kPage = 4096;

uint64_t FromEnvironment(const char* name, uint64_t usual) {
  const char* text = std::getenv(name);
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

// A store with files short, long, shared, sparse and overwritten in place, that was unmounted.
class Sound {
 public:
  Sound() {
    MakeStoreOptions options;
    options.path = kPath;
    options.index_memory = 4u << 20;
    REQUIRE_OK(MakeStore(env_, options));
    auto state = ReadSuperblock(env_, kPath);
    REQUIRE_OK(state);
    state->superblock.segment_bytes = 256u << 10;
    REQUIRE_OK(WriteSuperblock(env_, kPath, state->superblock));
    auto fs = Open(env_, false);
    REQUIRE_OK(fs);
    for (uint64_t i = 0; i < 6; ++i)
      Write(**fs, fmt::format("file {}", i), RandomBytes(i, 1000 + i * 20'000));
    Write(**fs, "large", RandomBytes(50, 1'500'000));
    Write(**fs, "copy", RandomBytes(50, 1'500'000));
    Bytes sparse(600'000);
    const Bytes end = RandomBytes(51, 50'000);
    std::copy(end.begin(), end.end(), sparse.end() - 50'000);
    Write(**fs, "sparse", sparse);
    REQUIRE_OK((*fs)->Close());
    fs->reset();
    // Once more, so that metadata has tables of several mounts.
    fs = Open(env_, false);
    REQUIRE_OK(fs);
    Write(**fs, "later", RandomBytes(52, 100'000));
    REQUIRE_OK((*fs)->Close());
    fs->reset();
    List(kPath);
  }

  static Result<std::unique_ptr<FileSystem>> Open(Env& env, bool read_only) {
    FileSystemOptions options;
    options.store = kPath;
    options.read_only = read_only;
    options.commit_interval = std::chrono::hours(1);
    return FileSystem::Open(env, options);
  }

  const SimEnv& env() const { return env_; }
  const std::vector<std::string>& paths() const { return paths_; }
  const std::map<std::string, Bytes>& files() const { return files_; }

 private:
  void Write(FileSystem& fs, const std::string& name, const Bytes& content) {
    WriteLargeFile(fs, name, content);
    files_[name] = content;
  }
  void List(const std::string& directory) {
    auto entries = env_.ListDirectory(directory);
    REQUIRE_OK(entries);
    for (const DirectoryEntry& entry : *entries) {
      const std::string path = JoinPath(directory, entry.name);
      if (entry.type == FileType::kDirectory) {
        List(path);
      } else {
        paths_.push_back(path);
      }
    }
    std::sort(paths_.begin(), paths_.end());
  }

  SimEnv env_;
  std::map<std::string, Bytes> files_;
  std::vector<std::string> paths_;
};

enum class Kind : uint8_t { kFlip, kZeroPage, kTruncate, kDelete };

struct Damage {
  std::string path;
  Kind kind = Kind::kFlip;
  uint64_t offset = 0;
  uint64_t size = 0;  // of the file

  std::string ToString() const {
    constexpr const char* kKinds[] = {"flip", "zero", "truncate", "delete"};
    return fmt::format("{} {} of {} bytes at {}", kKinds[static_cast<int>(kind)], path, size,
                       offset);
  }
};

// The parts of a store as often as each other, however many files they have.
std::string DrawPath(const Sound& sound, Random& random) {
  constexpr std::array<std::string_view, 6> kParts = {"segments", "segments",   "index",
                                                      "meta/",    "superblock", ""};
  const std::string part = kPath + "/" + std::string(kParts[random.Below(kParts.size())]);
  std::vector<std::string> paths;
  for (const std::string& path : sound.paths()) {
    if (path.starts_with(part)) paths.push_back(path);
  }
  return paths[random.Below(paths.size())];
}

Damage Draw(const Sound& sound, SimEnv& env, Random& random) {
  Damage damage;
  damage.path = DrawPath(sound, random);
  const auto info = env.GetFileInfo(damage.path);
  REQUIRE_OK(info);
  damage.size = info->size;
  const uint64_t kind = random.Below(10);
  damage.kind = kind < 5   ? Kind::kFlip
                : kind < 8 ? Kind::kZeroPage
                : kind < 9 ? Kind::kTruncate
                           : Kind::kDelete;
  // Some at the beginning and the end, where headers and footers are.
  const uint64_t within = std::min<uint64_t>(damage.size, random.Below(4) == 0 ? 500 : damage.size);
  damage.offset = damage.size == 0 ? 0 : random.Below(within);
  if (random.Below(2) == 0 && within > 0) damage.offset = damage.size - 1 - damage.offset;
  return damage;
}

// False if it changes nothing.
bool Apply(const Damage& damage, SimEnv& env, Random& random) {
  if (damage.kind == Kind::kDelete) {
    REQUIRE_OK(env.RemoveFile(damage.path));
    return true;
  }
  if (damage.size == 0) return false;
  auto file = env.OpenFile(damage.path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  if (damage.kind == Kind::kTruncate) {
    REQUIRE_OK((*file)->Truncate(damage.offset));
    return true;
  }
  const bool flip = damage.kind == Kind::kFlip;
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

// What siltfs never reads, or reads and does without: by the file's name, why.
std::optional<std::string> WhyUnused(const Damage& damage) {
  const std::string name = damage.path.substr(damage.path.rfind('/') + 1);
  if (name == "lock" || name == "LOCK") return "lock files";
  if (name == "IDENTITY" || name.starts_with("OPTIONS-")) return "RocksDB's notes to itself";
  if (name == "meta.ledger") return "slots of the sync ledger that are not the newest";
  if (damage.path.find("/meta/") != std::string::npos && name.ends_with(".log"))
    return "RocksDB's log, empty after an unmount";
  return std::nullopt;
}

// A repair loses nothing where this was damaged.
bool IsRepairable(const Sound& sound, const Damage& damage) {
  const auto segment = ParseSegmentFileName(damage.path.substr(damage.path.rfind('/') + 1));
  if (segment && damage.kind == Kind::kFlip) {
    const auto env = sound.env().Fork();
    const auto state = ReadSuperblock(*env, kPath);
    REQUIRE_OK(state);
    const BlockCodec codec;
    const auto reader = SegmentReader::Open(*env, kPath, {state->superblock.uuid, *segment}, codec);
    REQUIRE_OK(reader);
    const auto trailer = (*reader)->ReadTrailer();
    // Of one that is not sealed all is blocks.
    const uint64_t data_end = trailer.ok() ? trailer->data_end : damage.size;
    return damage.offset < kSegmentHeaderSize || damage.offset >= data_end;
  }
  return damage.path.find("/index/") != std::string::npos ||
         damage.path.find("/superblock.") != std::string::npos;
}

struct Tally {
  uint64_t places = 0;
  uint64_t unchanged = 0;
  std::map<std::string, uint64_t> found;   // by the file's kind
  std::map<std::string, uint64_t> unused;  // by the reason
  uint64_t refused = 0;                    // the store did not open
  uint64_t unreadable = 0;                 // files that failed to be read, in part
  uint64_t repaired = 0;                   // without a loss
  uint64_t repaired_segments = 0;          // of these in segments
  uint64_t repaired_all = 0;               // by a full repair
  uint64_t left = 0;                       // of which a full repair leaves something
};

Result<RepairReport> RepairIt(SimEnv& env, RepairMode mode) {
  RepairOptions options;
  options.check.store = kPath;
  options.check.data = true;
  options.mode = mode;
  return RepairStore(env, options);
}

// Reads everything: the right bytes or none. Whether all of it could be read.
bool ReadAll(const Sound& sound, SimEnv& env, Tally& tally, const RepairReport* repaired) {
  auto fs = Sound::Open(env, /*read_only=*/true);
  if (!fs.ok()) {
    fs.status().IgnoreError("refused");
    ++tally.refused;
    return false;
  }
  bool whole = true;
  for (const auto& [name, content] : sound.files()) {
    Bytes expected = content;
    for (const LostContent& lost :
         repaired == nullptr ? std::vector<LostContent>() : repaired->lost) {
      if (lost.path != "/" + name) continue;
      std::fill_n(expected.begin() + static_cast<ptrdiff_t>(lost.range.offset), lost.range.length,
                  uint8_t{0});
      whole = false;
    }
    const auto inode = Resolve(**fs, name);
    if (!inode.ok()) {
      // Names go only where metadata fails to be read.
      REQUIRE_FALSE(inode.status().Is(StatusCode::kNotFound));
      whole = false;
      continue;
    }
    constexpr size_t kStep = 100'000;
    bool failed = false;
    for (size_t at = 0; at < expected.size(); at += kStep) {
      Bytes piece(std::min(kStep, expected.size() - at));
      const auto got = (*fs)->Read(*inode, at, piece);
      if (!got.ok()) {
        got.status().IgnoreError("an error is right");
        failed = true;
        continue;
      }
      const bool same =
          *got == piece.size() &&
          std::equal(piece.begin(), piece.end(), expected.begin() + static_cast<ptrdiff_t>(at));
      INFO(name << " at " << at);
      REQUIRE(same);
    }
    tally.unreadable += failed ? 1 : 0;
    whole = whole && !failed;
  }
  (*fs)->Close().IgnoreError("nothing was written");
  return whole;
}

std::string KindOf(const Damage& damage) {
  for (const std::string part : {"segments", "index", "meta.ledger", "meta", "superblock"}) {
    if (damage.path.starts_with(kPath + "/" + part)) return part;
  }
  return damage.path;
}

void RunOne(const Sound& sound, uint64_t seed, Tally& tally) {
  Random random(seed);
  const auto env = sound.env().Fork();
  const Damage damage = Draw(sound, *env, random);
  INFO("place " << seed << ": " << damage.ToString());
  ++tally.places;
  if (!Apply(damage, *env, random)) {
    ++tally.unchanged;
    return;
  }
  CheckOptions options;
  options.store = kPath;
  options.data = true;
  std::string findings;
  options.on_finding = [&findings](const Finding& finding) {
    findings += finding.code + " " + finding.path + ": " + finding.message + "\n";
  };
  const auto report = CheckStore(*env, options);
  if (report.ok() && report->findings == 0) {
    const auto why = WhyUnused(damage);
    REQUIRE(why.has_value());
    ++tally.unused[*why];
    REQUIRE(ReadAll(sound, *env, tally, nullptr));
    return;
  }
  report.status().IgnoreError("a refusal says it, too");
  ++tally.found[KindOf(damage)];
  INFO(findings);
  const auto read_from = env->Fork();
  ReadAll(sound, *read_from, tally, nullptr);

  const auto safe = env->Fork();
  const auto repaired = RepairIt(*safe, RepairMode::kSafe);
  repaired.status().IgnoreError("looked at below");
  const bool nothing_left = repaired.ok() && repaired->left == 0;
  if (nothing_left) {
    REQUIRE(repaired->lost.empty());
    REQUIRE(ReadAll(sound, *safe, tally, nullptr));
    ++tally.repaired;
    tally.repaired_segments += KindOf(damage) == "segments" ? 1 : 0;
    return;
  }
  REQUIRE_FALSE(IsRepairable(sound, damage));
  const auto full = RepairIt(*env, RepairMode::kAll);
  full.status().IgnoreError("looked at below");
  if (full.ok() && full->left == 0) {
    ++tally.repaired_all;
    ReadAll(sound, *env, tally, &*full);
    const auto again = CheckStore(*env, options);
    REQUIRE_OK(again);
    REQUIRE(again->findings == 0);
  } else {
    ++tally.left;
    // Metadata is RocksDB's: what it cannot open nobody can.
    REQUIRE(KindOf(damage) == "meta");
  }
}

std::string Describe(const Tally& tally) {
  std::string text = fmt::format(
      "{} places, {} of them as before; repaired without a loss {} ({} in segments), with one {}, "
      "not {}; {} times the "
      "store did not open, {} files failed to be read in part\n",
      tally.places, tally.unchanged, tally.repaired, tally.repaired_segments, tally.repaired_all,
      tally.left, tally.refused, tally.unreadable);
  for (const auto& [kind, count] : tally.found)
    text += fmt::format("  found in {}: {}\n", kind, count);
  for (const auto& [why, count] : tally.unused)
    text += fmt::format("  unused: {}: {}\n", why, count);
  return text;
}

}  // namespace

TEST_CASE("damage anywhere is found or harms nothing, and no file is read wrong") {
  const uint64_t usual = 100 / kCallStep;
  const uint64_t places = FromEnvironment("SILTFS_DAMAGE_PLACES", usual);
  const uint64_t seed = FromEnvironment("SILTFS_DAMAGE_SEED", 1);
  const uint64_t first = FromEnvironment("SILTFS_DAMAGE_FIRST", 0);
  const Sound sound;
  Tally tally;
  for (uint64_t i = first; i < first + places; ++i) RunOne(sound, seed * 1'000'000'000 + i, tally);
  if (places != usual) std::cout << Describe(tally);
  INFO(Describe(tally));
  CHECK(tally.repaired > 0);
  CHECK(tally.found.size() >= (places >= usual ? 3u : 1u));
}

}  // namespace siltfs::testing
