// An instance of BloomStore on a simulated device, whose lookups count what they read.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "index/bloom_store/bloom_store_engine.h"
#include "index/bloom_store/filter_chain.h"
#include "index/flash/flash_partition.h"
#include "store/base/coding.h"
#include "store/base/random.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

struct PagesRead {
  uint64_t chain = 0;
  uint64_t data = 0;
  uint64_t damaged = 0;  // as FlashIndex counts them
};

struct BloomStoreFixture {
  static constexpr const char* kDirectory = "/index";

  explicit BloomStoreFixture(const EngineParameters& parameters)
      : engine(MakeBloomStoreEngine(parameters)) {
    REQUIRE_OK(env.CreateDirectory(kDirectory));
    files = std::make_unique<PageFiles>(env, engine->Logs(kDirectory), false);
    context = std::unique_ptr<FlashContext>(new FlashContext{.files = *files, .read_only = false});
    partition = engine->Make(*context, 1, HashPrefix());
  }

  // The i-th entry of a test; `version` makes its location different.
  static FlashEntry Entry(uint64_t i, uint32_t version = 1) {
    return {.hash = Random(i + 1).Next() | 1, .location = {version, static_cast<uint32_t>(i), 1}};
  }
  // Inserts the entry; writes the buffer when it is full. Fills the partition again when it wants
  // it.
  void Put(const FlashEntry& entry) {
    if (partition->Insert(entry)) return;
    REQUIRE_FALSE(partition->WantsRewrite());
    REQUIRE_OK(partition->WriteBuffer());
    REQUIRE(partition->Insert(entry));
  }
  // Puts the entries of numbers from `first` on.
  void Put(uint64_t first, uint64_t count, uint32_t version = 1) {
    for (uint64_t i = first; i < first + count; ++i) Put(Entry(i, version));
  }
  std::optional<FlashEntry> Find(uint64_t hash, PagesRead& read) const {
    LookupState state;
    state.hash = hash;
    const auto version = partition->Begin(state);
    while (version != nullptr && !state.found) {
      state.page_is_spare = false;
      const auto address = version->NextPage(state);
      if (!address) break;
      REQUIRE_OK(files->Read(*address, 1, [&](uint32_t, std::optional<ConstPageBytes> page) {
        if (!page && !state.page_is_spare) ++read.damaged;
        const bool chain = page && PageKindOf(*page) == BloomStoreShape::kChainPage;
        ++(chain ? read.chain : read.data);
        version->Take(state, page);
        return Status::Ok();
      }));
    }
    return state.found;
  }
  // REQUIREs that lookups find these entries.
  void CheckFinds(uint64_t first, uint64_t count, PagesRead& read, uint32_t version = 1) const {
    for (uint64_t i = first; i < first + count; ++i) {
      REQUIRE(Find(Entry(i).hash, read) == Entry(i, version));
    }
  }
  void CheckVerifies() const {
    const auto snapshot = partition->TakeSnapshot();
    REQUIRE_OK(snapshot.version->Verify(
        [](const std::string& code, const std::string& text) { FAIL(code << ": " << text); }));
  }
  // Makes the partition again from its state, as an index does that opens. The buffer is lost.
  void Reopen() {
    const std::string state = partition->Encode();
    auto opened = engine->Open(*context, 1, HashPrefix(), AsBytes(state));
    REQUIRE_OK(opened);
    partition = std::move(*opened);
  }
  PageAddress FirstOfChain() const {
    const std::string state = partition->Encode();
    return {Decoder(AsBytes(state)).U64()};
  }
  // Flips a bit of a page.
  void Damage(PageAddress page) {
    const auto place = files->Resolve(page);
    REQUIRE(place);
    auto file = env.OpenFile(place->file->path(), {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    uint8_t byte = 0;
    REQUIRE_OK((*file)->Read(place->offset + 100, {&byte, 1}));
    byte ^= 4;
    REQUIRE_OK((*file)->Write(place->offset + 100, {&byte, 1}));
  }

  SimEnv env;
  std::unique_ptr<FlashEngine> engine;
  std::unique_ptr<PageFiles> files;
  std::unique_ptr<FlashContext> context;
  std::unique_ptr<FlashPartition> partition;
};

inline constexpr size_t kChainLog = BloomStoreShape::kChainLog;
inline constexpr size_t kDataLog = BloomStoreShape::kDataLog;
inline constexpr uint64_t kPerPage = 204;
inline constexpr uint64_t kAbsent = 1'000'000'000;  // numbers from here on are never put

// Fills the instance's pages with entries, the last page also.
inline void PutPages(BloomStoreFixture& fixture, uint64_t pages) {
  fixture.Put(0, pages * kPerPage);
  REQUIRE_OK(fixture.partition->WriteBuffer());
}

inline uint64_t PagesIn(const FlashPartition& partition, uint64_t file) {
  uint64_t pages = 0;
  partition.ForEachFile(
      [&](uint64_t id, uint64_t count) { pages += id == file ? count : uint64_t{0}; });
  return pages;
}

inline PagesRead ReadsOfAbsent(const BloomStoreFixture& fixture, uint64_t lookups) {
  PagesRead read;
  for (uint64_t i = 0; i < lookups; ++i) {
    REQUIRE_FALSE(fixture.Find(fixture.Entry(kAbsent + i).hash, read));
  }
  return read;
}

inline std::vector<FlashEntry> Collected(const FlashPartition& partition, uint64_t& damaged) {
  std::vector<FlashEntry> entries;
  REQUIRE_OK(partition.TakeSnapshot().version->Collect(
      [&](const FlashEntry& entry) { entries.push_back(entry); }, damaged));
  return entries;
}

}  // namespace siltfs::testing
