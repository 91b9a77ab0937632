// The engines of the chunk index open directories of arbitrary files. An engine must either refuse
// the directory, or answer lookups, verify the index, take new entries and open the index again.
// Memory must stay bounded.
//
// The input: the engine, then the files (tests/fuzz/fuzz_files.h).
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "index/engines.h"
#include "index/open_index.h"
#include "index/silt/silt_index.h"
#include "store/base/coding.h"
#include "store/env/sim_env.h"
#include "tests/fuzz/fuzz_files.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {
namespace {

const std::string kDirectory = "/index";
constexpr uint64_t kMostBytes = 64u << 20;  // capacity of the device
constexpr uint64_t kNames = 400;

ChunkName NameOf(uint64_t number) {
  ChunkName name;
  for (size_t i = 0; i < name.bytes.size(); ++i) {
    number = number * 6364136223846793005u + 1442695040888963407u;
    name.bytes[i] = static_cast<uint8_t>(number >> 56);
  }
  return name;
}

IndexEntry EntryOf(uint64_t number) {
  return {NameOf(number),
          {static_cast<SegmentId>(number % 1000 + 1), static_cast<uint32_t>(number % 4096), 64}};
}

SiltIndexOptions SmallSilt() {
  SiltIndexOptions options;
  options.directory = kDirectory;
  options.partition_bits = 1;
  options.bucket_bits = 4;
  options.write_batch_pages = 1;
  options.hash_store_share = 0.4;
  options.hash_secret = 99;
  options.background = false;
  return options;
}

// The first byte of an input, modulo the number of kinds; 0 and 1 are SILT. The kinds from
// kPageFiles on are the engines with page files (docs/engines.md).
constexpr uint8_t kSiltWithRuns = 2;
constexpr uint8_t kMap = 3;
constexpr uint8_t kPageFiles = 4;

std::vector<const IndexEngineRow*> PageFileEngines() {
  std::vector<const IndexEngineRow*> engines;
  for (const IndexEngineRow* row : IndexEngines()) {
    if (row->number != IndexEngine::kSilt && row->number != IndexEngine::kMap) {
      engines.push_back(row);
    }
  }
  return engines;
}

uint8_t Kinds() { return static_cast<uint8_t>(kPageFiles + PageFileEngines().size()); }

Result<std::unique_ptr<ChunkIndex>> Open(Env& env, uint8_t kind, bool read_only) {
  if (kind >= kPageFiles) {
    const IndexEngineRow& row = *PageFileEngines()[kind - kPageFiles];
    IndexOptions options;
    options.engine = row.number;
    options.directory = kDirectory;
    options.read_only = read_only;
    options.background = false;
    for (const EngineParameterSpec& spec : row.parameters) {
      options.parameters.push_back({std::string(spec.name), spec.least});
    }
    return OpenIndex(env, options);
  }
  if (kind != kMap) {
    SiltIndexOptions options = SmallSilt();
    options.sorted_runs = kind == kSiltWithRuns;
    options.read_only = read_only;
    return OpenSiltIndex(env, options);
  }
  IndexOptions options;
  options.engine = IndexEngine::kMap;
  options.directory = kDirectory;
  options.read_only = read_only;
  return OpenIndex(env, options);
}

// Makes all kinds of lookups. Their answers may be wrong in any way, because the files are
// arbitrary. Only Write checks answers, for the entries that it has just put.
void Ask(ChunkIndex& index) {
  std::array<ChunkName, 16> names;
  std::array<std::optional<Location>, 16> places;
  for (uint64_t first = 0; first < kNames; first += names.size()) {
    for (size_t i = 0; i < names.size(); ++i) names[i] = NameOf(first + i);
    index.Get(names, places).IgnoreError("it may have lost them");
  }
  uint64_t entries = 0;
  index
      .ForEach([&](const OrderedEntry&) {
        ++entries;
        return Status::Ok();
      })
      .IgnoreError("it may be damaged");
  index.Verify([](const IndexFinding&) {}).IgnoreError("it may be damaged");
  MustHold(entries <= kMostBytes / kHashedSlotSize, "entries have room on the device");
  index.stats();
}

void Write(ChunkIndex& index) {
  constexpr uint64_t kFirst = 1'000'000;
  std::vector<IndexEntry> entries;
  for (uint64_t i = 0; i < 150; ++i) entries.push_back(EntryOf(kFirst + i));
  const Status put = index.Put(entries, index.durable_sequence() + 1);
  if (!put.ok()) return put.IgnoreError("it may be too damaged");
  for (const IndexEntry& entry : entries) {
    const auto found = index.Get(entry.name);
    if (!found.ok()) return found.status().IgnoreError("it may be too damaged");
    // The files may say that hashes have few bits, so that names share entries.
    const bool shared = std::any_of(entries.begin(), entries.end(), [&](const IndexEntry& other) {
      return other.location == *found && index.OrderOf(other.name) == index.OrderOf(entry.name);
    });
    MustHold(shared, "an entry that was put is found");
  }
  index.Delete(NameOf(3)).IgnoreError("it may be too damaged");
  index.Close().IgnoreError("it may be too damaged");
}

}  // namespace

void RunIndex(FuzzInput input) {
  const auto kind = static_cast<uint8_t>(input.Number(1) % Kinds());
  SimEnv env;
  env.SetCapacity(kMostBytes);
  PutFiles(env, kDirectory, input);
  for (const bool read_only : {true, false, false}) {
    const auto index = Open(env, kind, read_only);
    if (!index.ok()) {
      index.status().IgnoreError("any files may be refused");
      continue;
    }
    Ask(**index);
    if (!read_only) Write(**index);
  }
}

std::vector<Bytes> FuzzSeeds() {
  std::vector<Bytes> seeds;
  std::map<uint8_t, std::vector<uint64_t>> kinds{
      {uint8_t{0}, {10, 100, 400}}, {kSiltWithRuns, {100, 400}}, {kMap, {50}}};
  for (uint8_t kind = kPageFiles; kind < Kinds(); ++kind) kinds[kind] = {20, 200};
  for (const auto& [kind, count] : kinds) {
    for (const uint64_t names : count) {
      SimEnv env;
      MustHold(env.CreateDirectory(kDirectory).ok(), "there is a place for the index");
      auto index = Must(Open(env, kind, false));
      for (uint64_t i = 0; i < names; i += 10) {
        std::vector<IndexEntry> entries;
        for (uint64_t k = i; k < i + 10; ++k) entries.push_back(EntryOf(k));
        MustHold(index->Put(entries, i + 1).ok(), "entries are put");
      }
      MustHold(index->Close().ok(), "the index is closed");
      Encoder out;
      out.U8(kind).Raw(FilesAsInput(env, kDirectory));
      seeds.emplace_back(out.view().begin(), out.view().end());
    }
  }
  return seeds;
}

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::RunIndex(siltfs::testing::FuzzInput(data, size));
  return 0;
}
