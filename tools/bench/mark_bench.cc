// siltfs-bench mark: measures how long garbage collection takes to mark the live chunks of a store
// with a given number of chunks. Counts the live chunks of each segment (CountLive), and finds the
// live chunks of a few segments (SegmentMark). Compares every count with the expected one.
#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "fs/mark/mark.h"
#include "store/env/daemon.h"
#include "store/env/files.h"
#include "store/env/page_allocator.h"
#include "store/env/posix_env.h"
#include "store/env/resources.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/mark_store.h"
#include "tools/bench/memory_meter.h"
#include "tools/bench/rounds.h"
#include "tools/bench/scratch_directory.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

struct MarkBenchArguments {
  uint64_t entries = 0;
  std::string directory;
  uint64_t memory = 8u << 20;
  bool cold = false;
  bool no_spill = false;
  uint64_t seed = 1;
};

// Number of segments that SegmentMark marks.
constexpr uint64_t kMarkedSegments = 8;

void Expect(bool right, const char* what) {
  if (!right) throw BenchFailure(std::string("the mark is wrong: ") + what);
}

class MarkBench {
 public:
  explicit MarkBench(const MarkBenchArguments& arguments)
      : arguments_(arguments),
        env_(NewPosixEnv()),
        scratch_(*env_, arguments.directory),
        store_(*env_, JoinPath(scratch_.path(), "store"), arguments.entries, arguments.seed) {}

  Json Run() {
    Require(RaiseFileLimit().status());
    const Stopwatch making;
    made_ = store_.Make();
    const double make_seconds = making.seconds();
    if (arguments_.cold) Require(DropPageCache());
    store_.Open();
    snapshot_ = store_.metadata().Snapshot();
    Json statistics = {{"entries", arguments_.entries},
                       {"dead", made_.dead},
                       {"nodes", made_.nodes},
                       {"files", made_.files},
                       {"references", made_.references},
                       {"make_seconds", make_seconds},
                       {"index_flash_bytes", store_.index().stats().flash_bytes},
                       {"index_memory_bytes", store_.index().stats().memory_bytes},
                       {"verified", true}};  // a wrong answer throws
    // The first count also fills the caches. The second one finds them filled, as in a store that
    // is mounted and in use.
    statistics["first"] = Count();
    statistics["again"] = Count();
    statistics["segment_mark"] = MarkSegments();
    snapshot_.reset();
    return statistics;
  }

 private:
  // What this process has used until now: the processor time of all threads, the number of reads by
  // the index, and the number of blocks that the chunk store has decoded.
  struct Work {
    explicit Work(MarkStore& store)
        : index(store.index().stats().flash_reads),
          blocks(store.chunks().read_stats().blocks_decoded) {}
    double processor_seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    uint64_t index;
    uint64_t blocks;
  };

  Json Statistics(double seconds, MemoryMeter& memory, const Work& before) {
    const Work after(store_);
    const uint64_t peak = memory.PeakGrowth();
    const auto entries = static_cast<double>(arguments_.entries);
    return {{"seconds", seconds},
            {"processor_seconds", after.processor_seconds - before.processor_seconds},
            {"chunks_per_s", entries / seconds},
            {"peak_memory_bytes", peak},
            {"peak_memory_bytes_per_chunk", static_cast<double>(peak) / entries},
            {"index_lookup_reads", after.index - before.index},
            {"node_blocks_read", after.blocks - before.blocks}};
  }

  Json Count() {
    MarkOptions options;
    options.spill_directory = store_.SpillDirectory();
    options.memory_bytes = arguments_.memory;
    if (arguments_.no_spill) options.minimum_free_bytes = UINT64_MAX;
    ReleaseFreePages();
    const Work before(store_);
    MemoryMeter memory;
    const Stopwatch watch;
    const auto counts = CountLive(*env_, *snapshot_, store_.chunks(), store_.index(), options);
    const double seconds = watch.seconds();
    Require(counts.status());
    Json statistics = Statistics(seconds, memory, before);
    statistics["references"] = counts->references;
    statistics["spilled_bytes"] = counts->spilled_bytes;
    statistics["passes"] = counts->passes;
    CheckCounts(*counts);
    return statistics;
  }

  void CheckCounts(const LiveCounts& counts) {
    Expect(counts.dead_entries == made_.dead, "dead entries");
    Expect(counts.live == arguments_.entries - made_.dead + made_.nodes, "live entries");
    uint64_t segments = 0;
    uint64_t nodes = 0;
    for (const auto& [segment, live] : counts.live_chunks) {
      if (!MarkStore::IsOfChunks(segment)) {
        nodes += live;
        continue;
      }
      ++segments;
      Expect(live == store_.LiveIn(segment), "live chunks of a segment");
    }
    Expect(nodes == made_.nodes, "live nodes");
    Expect(segments == store_.SegmentCount(), "segments with live chunks");
  }

  Json MarkSegments() {
    const uint64_t count = std::min(kMarkedSegments, store_.SegmentCount());
    ReleaseFreePages();
    const Work before(store_);
    MemoryMeter memory;
    const Stopwatch watch;
    SegmentMark mark;
    for (uint64_t i = 0; i < count; ++i) mark.Add(SegmentAt(i, count), ChunksAt(i, count));
    Require(mark.Mark(*snapshot_, store_.chunks(), {}));
    const double seconds = watch.seconds();
    Json statistics = Statistics(seconds, memory, before);
    statistics["segments"] = count;
    for (uint64_t i = 0; i < count; ++i) {
      const SegmentId segment = SegmentAt(i, count);
      Expect(mark.LiveCount(segment) == store_.LiveIn(segment), "live chunks of a marked segment");
      const size_t chunks = ChunksAt(i, count).size();
      for (uint32_t ordinal = 0; ordinal < chunks; ++ordinal) {
        Expect(mark.IsLive(segment, ordinal) != MarkStore::IsDead(ordinal), "a chunk");
      }
    }
    return statistics;
  }

  // Returns the i-th of `count` segments that are spread over the whole store.
  SegmentId SegmentAt(uint64_t i, uint64_t count) const {
    return store_.SegmentOf(store_.SegmentCount() * i / count * MarkStore::kSegmentChunks);
  }
  std::vector<FooterChunk> ChunksAt(uint64_t i, uint64_t count) const {
    return store_.ChunksOf(SegmentAt(i, count));
  }

  const MarkBenchArguments& arguments_;
  const std::unique_ptr<Env> env_;
  const ScratchDirectory scratch_;
  MarkStore store_;
  MarkStoreStatistics made_;
  std::shared_ptr<const KvSnapshot> snapshot_;
};

}  // namespace

std::function<Json()> ConfigureMarkBench(CLI::App& app) {
  auto arguments = std::make_shared<MarkBenchArguments>();
  app.add_option("--entries", arguments->entries, "Number of chunks")
      ->required()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32));
  app.add_option("--dir", arguments->directory,
                 "Where to make the store, which is removed at the end (the temporary directory)");
  app.add_option("--memory", arguments->memory, "Memory for sorting")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_flag("--cold", arguments->cold, "Empty the page cache first (as root)");
  app.add_flag("--no-spill", arguments->no_spill,
               "Spill nothing to the disk, as if the disk were full");
  app.add_option("--seed", arguments->seed, "Seed of the names")->capture_default_str();
  return [arguments] { return MarkBench(*arguments).Run(); };
}

}  // namespace siltfs
