// One partition of a SkimpyStash index on a SimEnv, without FlashIndex.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "index/flash/entry_listing.h"
#include "index/flash/flash_lookup.h"
#include "index/skimpy_stash/skimpy_stash_engine.h"
#include "index/skimpy_stash/skimpy_stash_partition.h"
#include "store/base/random.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

inline uint64_t HashOf(uint64_t number) { return Random(number).Next() | 1; }
inline FlashEntry EntryOf(uint64_t number, uint32_t version = 1) {
  return {.hash = HashOf(number),
          .location = {.segment = version,
                       .ordinal = static_cast<uint32_t>(number) & Location::kMaxOrdinal}};
}
inline FlashEntry TombstoneOf(uint64_t number) { return {.hash = HashOf(number), .location = {}}; }

class ChainFixture {
 public:
  static constexpr const char* kDirectory = "/index";

  explicit ChainFixture(const EngineParameters& parameters, uint32_t pages_per_file = 16)
      : shape(SkimpyStashShapeOf(parameters)), pages_per_file_(pages_per_file) {
    REQUIRE_OK(env.CreateDirectory(kDirectory));
    MakeFiles();
    partition = std::make_unique<SkimpyStashPartition>(*context, 1, HashPrefix(), shape);
  }

  void Put(const FlashEntry& entry) {
    if (partition->Insert(entry)) return;
    REQUIRE_FALSE(partition->WantsRewrite());
    REQUIRE_OK(partition->WriteBuffer());
    REQUIRE(partition->Insert(entry));
  }
  void PutNumbers(uint64_t first, uint64_t count, uint32_t version = 1) {
    for (uint64_t i = first; i < first + count; ++i) Put(EntryOf(i, version));
  }
  void Flush() { REQUIRE_OK(partition->WriteBuffer()); }

  struct Answer {
    std::optional<FlashEntry> found;  // no tombstone
    uint32_t reads = 0;
    uint32_t damaged = 0;
  };
  Answer Get(uint64_t hash) const {
    const PageFiles::FilePin pin = files->Pin();
    FlashLookup lookup(hash);
    lookup.Begin(*partition, *files);
    FinishLookup(lookup);
    REQUIRE_OK(lookup.status());
    Answer answer{lookup.found(), lookup.pages_read(), lookup.damaged_pages()};
    if (answer.found && answer.found->tombstone()) answer.found.reset();
    return answer;
  }
  // Average number of pages that lookups of every `stride`-th of these numbers read.
  double Reads(uint64_t first, uint64_t count, uint64_t stride = 1) const {
    uint64_t reads = 0;
    uint64_t lookups = 0;
    for (uint64_t i = first; i < first + count; i += stride, ++lookups)
      reads += Get(HashOf(i)).reads;
    return static_cast<double>(reads) / static_cast<double>(lookups);
  }

  std::vector<FlashEntry> List() const {
    const PageFiles::FilePin pin = files->Pin();
    auto listing = ListEntries(partition->TakeSnapshot());
    REQUIRE_OK(listing);
    return listing->entries;
  }
  uint64_t Faults() const {
    const PageFiles::FilePin pin = files->Pin();
    const PartitionSnapshot snapshot = partition->TakeSnapshot();
    uint64_t faults = 0;
    if (snapshot.version == nullptr) return 0;
    REQUIRE_OK(snapshot.version->Verify([&](const std::string& code, const std::string& text) {
      UNSCOPED_INFO(code << ": " << text);
      ++faults;
    }));
    return faults;
  }

  // Closes the files, and opens the partition as FlashIndex does. The buffer must be empty.
  void Reopen() { Reopen(partition->Encode()); }
  void Reopen(const std::string& of_partition) {
    REQUIRE(partition->buffered_entries() == 0);
    REQUIRE_OK(files->Sync());
    for (auto& [id, state] : files->changes()) {
      if (state) {
        file_states_[id] = *state;
      } else {
        file_states_.erase(id);
      }
    }
    REQUIRE_OK(files->Committed());
    partition.reset();
    MakeFiles();
    for (const auto& [id, file] : file_states_) REQUIRE_OK(files->Enter(id, AsBytes(file)));
    REQUIRE_OK(files->Open());
    auto opened =
        SkimpyStashPartition::Open(*context, 1, HashPrefix(), shape, AsBytes(of_partition));
    REQUIRE_OK(opened);
    partition.reset(static_cast<SkimpyStashPartition*>(opened->release()));
  }

  SimEnv env;
  const SkimpyStashShape shape;
  std::unique_ptr<PageFiles> files;
  std::unique_ptr<FlashContext> context;
  std::unique_ptr<SkimpyStashPartition> partition;

 private:
  void MakeFiles() {
    context.reset();
    files = std::make_unique<PageFiles>(
        env,
        std::vector<PageLogSpec>{{.directory = kDirectory, .pages_per_file = pages_per_file_},
                                 {.directory = kDirectory, .pages_per_file = 1}},
        /*read_only=*/false);
    context.reset(new FlashContext{.files = *files, .read_only = false});
  }

  const uint32_t pages_per_file_;
  std::map<uint64_t, std::string> file_states_;
};

}  // namespace siltfs::testing
