// siltfs-bench attach-index: adds many entries to the index of a small store, to measure the store
// with a large index.
//
// The entries have random names, so no lookup asks for them. They point to segment ids that no
// store uses. They are permanent, because entries of missing segments are never removed from an
// index.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fs/meta/id_allocator.h"
#include "fs/open/store_index.h"
#include "store/env/daemon.h"
#include "store/env/posix_env.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/index_keys.h"
#include "tools/bench/memory_meter.h"
#include "tools/bench/rounds.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

constexpr unsigned kOrdinalBits = 20;
static_assert((1U << kOrdinalBits) - 1 == Location::kMaxOrdinal);
constexpr uint64_t kSegments = UINT32_MAX - IdAllocator::first_unused_segment() + uint64_t{1};
constexpr size_t kBatch = 4096;

struct AttachIndexArguments {
  std::string store;
  uint64_t entries = 0;
  uint64_t first = 0;
  uint64_t seed = 1;
};

IndexEntry EntryOf(const IndexKeys& keys, uint64_t number) {
  const uint64_t segment =
      IdAllocator::first_unused_segment() + (number >> kOrdinalBits) % kSegments;
  return {keys.NameOf(number),
          {.segment = static_cast<SegmentId>(segment),
           .ordinal = static_cast<uint32_t>(number) & Location::kMaxOrdinal,
           .block_offset = static_cast<uint32_t>(number) & Location::kMaxBlockOffset}};
}

void PutAll(ChunkIndex& index, const AttachIndexArguments& arguments) {
  const IndexKeys keys(MixNumber(arguments.seed));
  const uint64_t sequence = index.durable_sequence() + 1;
  const uint64_t end = arguments.first + arguments.entries;
  std::vector<IndexEntry> batch;
  for (uint64_t number = arguments.first; number < end;) {
    batch.clear();
    for (; number < end && batch.size() < kBatch; ++number) batch.push_back(EntryOf(keys, number));
    Require(index.Put(batch, sequence));
  }
}

Json RunAttachIndex(const AttachIndexArguments& arguments) {
  const auto limit = RaiseFileLimit();
  Require(limit.status());
  const auto env = NewPosixEnv();
  MemoryMeter memory;
  const auto opened = OpenStoreIndexForWriting(*env, arguments.store);
  Require(opened.status());
  ChunkIndex& index = *opened->index;
  const uint64_t before = index.stats().entries;
  const Stopwatch putting;
  PutAll(index, arguments);
  const double put_seconds = putting.seconds();
  const IndexStats stats = index.stats();
  const Stopwatch closing;
  Require(index.Close());
  return {{"entries", arguments.entries},
          {"entries_before", before},
          {"entries_after", stats.entries},
          {"put_seconds", put_seconds},
          {"put_per_s", static_cast<double>(arguments.entries) / put_seconds},
          {"close_seconds", closing.seconds()},
          {"conversions", stats.conversions},
          {"merges", stats.merges},
          {"flash_bytes", stats.flash_bytes},
          {"index_memory_bytes", stats.memory_bytes},
          {"peak_memory_bytes", memory.PeakGrowth()},
          {"durable_sequence", index.durable_sequence()}};
}

}  // namespace

std::function<Json()> ConfigureAttachIndex(CLI::App& app) {
  auto arguments = std::make_shared<AttachIndexArguments>();
  app.add_option("STORE", arguments->store,
                 "A store that is not mounted, and was unmounted cleanly")
      ->required();
  app.add_option("--entries", arguments->entries, "How many entries to put into its index")
      ->required()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32));
  app.add_option("--first", arguments->first,
                 "Number of the first entry; each number gives a different entry")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 47))
      ->capture_default_str();
  app.add_option("--seed", arguments->seed, "Seed of the names")->capture_default_str();
  return [arguments] { return RunAttachIndex(*arguments); };
}

}  // namespace siltfs
