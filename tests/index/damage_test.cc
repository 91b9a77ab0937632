// Damage: in any file of an index a bit is flipped, or the file is cut short, extended or removed.
// Either the index reports the damage, or entries are missing and the durable sequence shows it.
// Opening does not read the pages of HashStores and SortedStores. Verification reports damage in
// these pages, and only such damage may cause a wrong answer of a lookup.
#include <set>

#include "engines.h"
#include "history.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/index";

using Files = std::map<std::string, std::string>;

// The files of the index, also those in subdirectories.
Files ReadFiles(Env& env, const std::string& folder = "") {
  Files files;
  auto entries = env.ListDirectory(JoinPath(kDirectory, folder));
  REQUIRE_OK(entries);
  for (const DirectoryEntry& entry : *entries) {
    const std::string name = JoinPath(folder, entry.name);
    if (entry.type == FileType::kDirectory) {
      files.merge(ReadFiles(env, name));
      continue;
    }
    auto contents = ReadWholeFile(env, JoinPath(kDirectory, name), 1U << 30);
    REQUIRE_OK(contents);
    files[name] = *contents;
  }
  return files;
}

std::unique_ptr<SimEnv> EnvWith(const Files& files) {
  auto env = std::make_unique<SimEnv>();
  REQUIRE_OK(env->CreateDirectory(kDirectory));
  std::set<std::string> folders;
  for (const auto& [name, contents] : files) {
    const std::string path = JoinPath(kDirectory, name);
    const std::string folder = path.substr(0, path.rfind('/'));
    if (folder != kDirectory && folders.insert(folder).second) {
      REQUIRE_OK(env->CreateDirectory(folder));
    }
    auto file = env->OpenFile(path, {.mode = OpenMode::kCreate});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(0, AsBytes(contents)));
    REQUIRE_OK((*file)->Sync());
  }
  for (const std::string& folder : folders) REQUIRE_OK(env->SyncDirectory(folder));
  REQUIRE_OK(env->SyncDirectory(kDirectory));
  REQUIRE_OK(env->SyncDirectory("/"));
  return env;
}

// The number of repetitions in this run if a whole campaign has `whole`. Each kind of place in each
// file of each engine stays in a short run.
uint64_t Repetitions(uint64_t whole) {
  return TestScale() == kWholeScale ? whole : whole / (kIsSanitized ? 4 : 2);
}

enum class Outcome { kRefused, kLessDurable, kFoundByVerify, kNothingLost };

uint64_t FindingsOf(ChunkIndex& index) {
  uint64_t findings = 0;
  REQUIRE_OK(index.Verify([&](const IndexFinding& finding) {
    CHECK_FALSE(finding.code.empty());
    CHECK(finding.text.find(finding.path) != std::string::npos);
    ++findings;
  }));
  return findings;
}

// REQUIREs that puts into an index with a damaged page succeed, and that lookups find them. If a
// merge has read the damaged page, the index must not open again.
void CheckNewPutsGoIn(std::unique_ptr<ChunkIndex> index, const Engine& engine, Env& env) {
  const uint64_t sequence = index->durable_sequence() + 1;
  const uint64_t at_opening = index->stats().damaged_pages;  // in logs; opening dropped them
  Random random(7);
  std::map<ChunkName, Location> put;
  std::vector<IndexEntry> batch;
  for (uint64_t i = 0; i < 1200; ++i) {
    batch.push_back({NameOf(50'000 + i), RandomLocation(random)});
    put[batch.back().name] = batch.back().location;
    if (i % 16 != 15) continue;
    REQUIRE_OK(index->Put(batch, sequence + i));
    batch.clear();
  }
  for (const auto& [name, location] : put) {
    auto got = index->Get(name);
    REQUIRE_OK(got);
    REQUIRE(*got == location);
  }
  REQUIRE_OK(index->Close());
  const bool met = index->stats().damaged_pages > at_opening;
  index.reset();
  auto again = engine.open(env, kDirectory, false);
  REQUIRE(again.ok() == !met);
  if (met) REQUIRE_CODE(again, kCorruption);
}

// Opens an index, and waits until all of its stores are open.
Result<std::unique_ptr<ChunkIndex>> OpenWhole(const Engine& engine, Env& env, bool read_only) {
  SILTFS_ASSIGN_OR_RETURN(auto index, engine.open(env, kDirectory, read_only));
  SILTFS_RETURN_IF_ERROR(index->WaitUntilOpen());
  return index;
}

// Opens an index of these damaged files, read-only and for writing, and REQUIREs that it answers
// and reports correctly.
Outcome CheckDamaged(const Engine& engine, const Files& files, const History& history) {
  auto env = EnvWith(files);
  auto open = [&] { return OpenWhole(engine, *env, false); };
  auto read_only = OpenWhole(engine, *env, true);
  auto index = open();
  REQUIRE(read_only.ok() == index.ok());
  if (!index.ok()) {
    REQUIRE_CODE(index, kCorruption);
    return Outcome::kRefused;
  }
  REQUIRE((*read_only)->durable_sequence() == (*index)->durable_sequence());
  const uint64_t findings = FindingsOf(**index);
  CHECK(FindingsOf(**read_only) == findings);
  if (findings > 0) {
    CheckNewPutsGoIn(std::move(*index), engine, *env);
    return Outcome::kFoundByVerify;
  }
  CheckAfterCrash(**read_only, history, false);
  CheckForEach(**read_only, history);
  CheckAfterCrash(**index, history, false);
  CheckForEach(**index, history);

  // The missing entries were not put again. So the index must report the same durable sequence when
  // it is opened again.
  const uint64_t durable = (*index)->durable_sequence();
  index->reset();
  index = open();
  REQUIRE_OK(index);
  REQUIRE((*index)->durable_sequence() == durable);
  REQUIRE((*index)->stats().damaged_pages == 0);
  CheckAfterCrash(**index, history, false);
  CheckLifeGoesOn(std::move(*index), history, [&] {
    auto again = open();
    REQUIRE_OK(again);
    return std::move(*again);
  });
  return durable < history.last_sequence() ? Outcome::kLessDurable : Outcome::kNothingLost;
}

// Returns the files of a closed index. Some of its names were deleted, and some were put again.
Files MakeFiles(const Engine& engine, History& history) {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory(kDirectory));
  auto index = engine.open(env, kDirectory, false);
  REQUIRE_OK(index);
  REQUIRE(RunWorkload(**index, history, {.seed = 21, .steps = 120}).failures == 0);
  REQUIRE_OK((*index)->Close());
  history.NoteFlushed();
  REQUIRE(FindingsOf(**engine.open(env, kDirectory, true)) == 0);
  return ReadFiles(env);
}

}  // namespace

TEST_CASE("a flipped byte anywhere, or the loss of entries that it causes, is reported") {
  const size_t engine_number = GENERATE(range(size_t{0}, Engines().size()));
  const Engine& engine = Engines()[engine_number];
  History history;
  const Files files = MakeFiles(engine, history);
  Random random(22);
  for (const auto& [name, contents] : files) {
    const size_t tries = std::min<size_t>(contents.size(), Repetitions(24));
    for (size_t i = 0; i < tries; ++i) {
      // Headers and ends of files are the critical places.
      const size_t place = i < tries / 3   ? random.Below(std::min<size_t>(contents.size(), 64))
                           : i < tries / 2 ? contents.size() - 1 - random.Below(16)
                                           : random.Below(contents.size());
      INFO(engine.name << ", " << name << ", byte " << place);
      Files damaged = files;
      damaged[name][place] ^= static_cast<char>(1U << random.Below(8));
      CHECK(CheckDamaged(engine, damaged, history) != Outcome::kNothingLost);
    }
  }
}

TEST_CASE("a file cut short anywhere, or the loss of its entries, is reported") {
  const size_t engine_number = GENERATE(range(size_t{0}, Engines().size()));
  const Engine& engine = Engines()[engine_number];
  History history;
  const Files files = MakeFiles(engine, history);
  Random random(23);
  for (const auto& [name, contents] : files) {
    if (contents.empty()) continue;
    for (size_t length : {size_t{0}, size_t{1}, contents.size() / 2, contents.size() - 1,
                          random.Below(contents.size()), random.Below(contents.size())}) {
      INFO(engine.name << ", " << name << ", cut to " << length);
      Files damaged = files;
      damaged[name].resize(length);
      CHECK(CheckDamaged(engine, damaged, history) != Outcome::kNothingLost);
    }
  }
}

TEST_CASE("a missing file, or the loss of its entries, is reported") {
  const size_t engine_number = GENERATE(range(size_t{0}, Engines().size()));
  const Engine& engine = Engines()[engine_number];
  History history;
  const Files files = MakeFiles(engine, history);
  for (const auto& [name, contents] : files) {
    if (contents.empty()) continue;
    INFO(engine.name << ", " << name);
    Files damaged = files;
    damaged.erase(name);
    CHECK(CheckDamaged(engine, damaged, history) != Outcome::kNothingLost);
  }
}

TEST_CASE("a file with extra bytes at its end is read up to its old end, or reported") {
  const size_t engine_number = GENERATE(range(size_t{0}, Engines().size()));
  const Engine& engine = Engines()[engine_number];
  History history;
  const Files files = MakeFiles(engine, history);
  for (const auto& [name, contents] : files) {
    for (size_t more : {1U, 4096U, 5000U}) {
      INFO(engine.name << ", " << name << ", " << more << " bytes more");
      Files damaged = files;
      damaged[name] += std::string(more, '\x5a');
      CHECK(CheckDamaged(engine, damaged, history) != Outcome::kLessDurable);
    }
  }
}

TEST_CASE("damage in several files at once is survived") {
  const size_t engine_number = GENERATE(range(size_t{0}, Engines().size()));
  const Engine& engine = Engines()[engine_number];
  History history;
  const Files files = MakeFiles(engine, history);
  Random random(24);
  for (uint64_t round = 0; round < Repetitions(30); ++round) {
    INFO(engine.name << ", round " << round);
    Files damaged = files;
    for (auto& [name, contents] : damaged) {
      if (name == "manifest" || contents.empty() || random.OneIn(2)) continue;
      for (uint64_t flips = 1 + random.Below(3); flips-- > 0;) {
        contents[random.Below(contents.size())] ^= static_cast<char>(1 + random.Below(255));
      }
    }
    CheckDamaged(engine, damaged, history);
  }
}

}  // namespace siltfs::testing
