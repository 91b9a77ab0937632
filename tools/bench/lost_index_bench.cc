#include "tools/bench/lost_index_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fs/chunks/segment_search.h"
#include "fs/guide/segment_guide.h"
#include "fs/interface/file_system.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/make_store.h"
#include "fs/open/store_index.h"
#include "fs/open/store_layout.h"
#include "store/base/random.h"
#include "store/env/daemon.h"
#include "store/env/files.h"
#include "store/env/page_allocator.h"
#include "store/env/posix_env.h"
#include "store/env/resources.h"
#include "store/superblock/superblock.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/rounds.h"
#include "tools/bench/scratch_directory.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

// Short chunks make a store of many chunks small.
constexpr uint32_t kChunkMin = 64;
constexpr uint32_t kChunkAvg = 128;
constexpr uint32_t kChunkMax = 1024;
constexpr uint64_t kFileBytes = 1u << 20;
// With these chunks, a segment has as many of them as a segment of usual size has usual chunks.
constexpr uint32_t kSegmentBytes = 1u << 20;
constexpr int kFullSearches = 5;
constexpr int kRounds = 3;

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class LostIndex {
 public:
  explicit LostIndex(const LostIndexArguments& arguments)
      : arguments_(arguments),
        env_(NewPosixEnv()),
        scratch_(*env_, arguments.directory),
        store_(JoinPath(scratch_.path(), "store")) {}

  Json Run() {
    Require(RaiseFileLimit().status());
    const Stopwatch making;
    MakeIt();
    Json report = {{"chunks", chunks_}, {"make_seconds", making.seconds()}};
    report.update(Search());
    report.update(Mount());
    report["verified"] = true;
    return report;
  }

 private:
  FileSystemOptions Options() const {
    FileSystemOptions options;
    options.store = store_;
    options.keep_guide = true;
    options.guide_shape = arguments_.guide;
    return options;
  }
  std::unique_ptr<FileSystem> Open(FileSystemOptions options) {
    auto opened = FileSystem::Open(*env_, std::move(options));
    Require(opened.status());
    return std::move(*opened);
  }
  Bytes ContentOf(uint64_t file) const {
    Bytes content(kFileBytes);
    Random(arguments_.seed * 1'000'003 + file).Fill(content);
    return content;
  }

  void MakeIt() {
    MakeStoreOptions make;
    make.path = store_;
    make.chunk_min = kChunkMin;
    make.chunk_avg = kChunkAvg;
    make.chunk_max = kChunkMax;
    Require(MakeStore(*env_, make));
    auto state = ReadSuperblock(*env_, store_);
    Require(state.status());
    state->superblock.segment_bytes = kSegmentBytes;
    Require(WriteSuperblock(*env_, store_, state->superblock));
    const auto fs = Open(Options());
    while (chunks_ < arguments_.chunks) {
      const auto made = fs->CreateFile(kRootInode, fmt::format("f{}", files_), 0644, {});
      Require(made.status());
      const Bytes content = ContentOf(files_++);
      constexpr size_t kPiece = 128u << 10;
      for (size_t at = 0; at < content.size(); at += kPiece)
        Require(fs->Write(made->inode, at, ByteView(content).subspan(at, kPiece)));
      fs->ReleaseFile(made->inode);
      chunks_ = StatsOf(*fs).chunks_unique;
    }
    // This seals full segments, and enters them into the guide.
    Require(fs->maintenance().CollectGarbage(/*dry_run=*/false).status());
    const FileSystemStats stats = StatsOf(*fs);
    written_per_name_ = static_cast<double>(stats.guide->flash_bytes_written) /
                        static_cast<double>(stats.guide->names);
    Require(fs->Close());
  }
  static FileSystemStats StatsOf(FileSystem& fs) {
    auto stats = fs.maintenance().GetStats();
    Require(stats.status());
    return *stats;
  }

  // Searches for chunks of random segments, each of them once.
  Json Search() {
    const auto state = ReadSuperblock(*env_, store_);
    Require(state.status());
    const BlockCodec codec;
    const auto segments = OpenSegmentStore(*env_, store_, nullptr);
    SegmentCache cache(*segments, state->superblock.uuid, codec, nullptr, 256);
    const auto guide = SegmentGuide::Open(
        *env_, {.directory = GuidePath(store_), .read_only = true, .report = {}, .filters = {}},
        {});
    if (!guide->usable()) throw BenchFailure("lost index: the store has no segment guide");
    const SegmentGuideStats shape = guide->stats();
    const auto listing = segments->List();
    Require(listing.status());
    std::vector<SegmentId> covered;
    for (const SegmentId id : listing->ids) {
      if (guide->Covers(id)) covered.push_back(id);
    }
    if (covered.empty()) throw BenchFailure("lost index: the guide covers no segment");
    Random random(arguments_.seed);
    std::vector<std::pair<Location, uint64_t>> wanted;
    while (wanted.size() < arguments_.searches + kFullSearches) {
      const SegmentId id = covered[random.Below(covered.size())];
      const auto opened = cache.Open(id);
      Require(opened.status());
      const auto footer = (*opened)->reader->ReadFooter();
      Require(footer.status());
      for (int i = 0; i < 8; ++i) {
        const auto ordinal = static_cast<uint32_t>(random.Below(footer->chunks.size()));
        wanted.push_back({{id, ordinal, 0}, footer->chunks[ordinal].name_prefix});
      }
    }
    SegmentSearch search(cache, guide.get());
    const auto find = [&](size_t i, SegmentSearch::Extent extent) {
      const Stopwatch stopwatch;
      const auto found = search.Find(wanted[i].second, {}, extent);
      const double seconds = stopwatch.seconds();
      Require(found.status());
      if (std::ranges::find(found.value()->places, wanted[i].first) == found.value()->places.end())
        throw BenchFailure("lost index: a search did not find a chunk");
      return seconds;
    };
    const auto measure = [&](size_t begin, size_t end, SegmentSearch::Extent extent) {
      std::vector<double> seconds;
      for (size_t i = begin; i < end; ++i) seconds.push_back(find(i, extent));
      return Median(std::move(seconds));
    };
    // The page cache has all footers after this. This favours the search of all segments.
    find(arguments_.searches, SegmentSearch::Extent::kAll);
    const double all = measure(arguments_.searches + 1, wanted.size(), SegmentSearch::Extent::kAll);
    const uint64_t before = search.segments_read();
    const uint64_t pages = guide->stats().filters.flash_pages_read;
    const double guided = measure(0, arguments_.searches, SegmentSearch::Extent::kGuided);
    const auto searches = static_cast<double>(arguments_.searches);
    return {{"segments", listing->ids.size()},
            {"guide_groups", shape.filters.groups},
            {"guide_slicefilters", shape.filters.filters},
            {"guide_bytes_per_name", static_cast<double>(shape.filters.flash_bytes) /
                                         static_cast<double>(shape.filters.names)},
            {"guide_written_bytes_per_name", written_per_name_},
            {"guide_memory_bytes", shape.filters.memory_bytes},
            {"search_all_seconds", all},
            {"search_guided_seconds", guided},
            {"search_speedup", all / guided},
            {"segments_read_per_search",
             static_cast<double>(search.segments_read() - before) / searches},
            {"guide_pages_per_search",
             static_cast<double>(guide->stats().filters.flash_pages_read - pages) / searches}};
  }

  // Removes the index, and measures until the first file is read: with the guide, and with a mount
  // that waits for the index. The rounds are in turn.
  Json Mount() {
    std::vector<double> guided;
    std::vector<double> waiting;
    std::vector<double> rebuilt;
    for (int round = 0; round < kRounds; ++round) {
      guided.push_back(FirstFile(FileSystemOptions().most_replayed_at_open, rebuilt));
      std::vector<double> ignored;
      waiting.push_back(FirstFile(std::numeric_limits<uint64_t>::max(), ignored));
    }
    return {{"first_file_seconds", Median(guided)},
            {"first_file_seconds_waiting", Median(waiting)},
            {"index_seconds", Median(rebuilt)}};
  }
  double FirstFile(uint64_t most_replayed, std::vector<double>& rebuilt) {
    Require(EmptyIndexDirectory(*env_, store_));
    Require(DropPageCache());
    FileSystemOptions options = Options();
    options.most_replayed_at_open = most_replayed;
    const Stopwatch stopwatch;
    const auto fs = Open(std::move(options));
    ReadFile(*fs, files_ / 2);
    const double seconds = stopwatch.seconds();
    while (StatsOf(*fs).index_replay.running)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    rebuilt.push_back(stopwatch.seconds());
    for (uint64_t file = 0; file < files_; file += 1 + files_ / 8) ReadFile(*fs, file);
    Require(fs->Close());
    return seconds;
  }
  void ReadFile(FileSystem& fs, uint64_t file) {
    const auto found = fs.Lookup(kRootInode, fmt::format("f{}", file));
    Require(found.status());
    Bytes content(kFileBytes);
    for (size_t at = 0; at < content.size();) {
      const auto got = fs.Read(
          found->inode, at,
          MutableByteView(content).subspan(at, std::min<size_t>(128u << 10, content.size() - at)));
      Require(got.status());
      if (*got == 0) throw BenchFailure("lost index: a file is too short");
      at += *got;
    }
    fs.Forget(found->inode, 1);
    if (content != ContentOf(file)) throw BenchFailure("lost index: a file has wrong content");
  }

  const LostIndexArguments arguments_;
  const std::unique_ptr<Env> env_;
  ScratchDirectory scratch_;
  const std::string store_;
  uint64_t files_ = 0;
  uint64_t chunks_ = 0;
  double written_per_name_ = 0;
};

}  // namespace

Json MeasureLostIndex(const LostIndexArguments& arguments) { return LostIndex(arguments).Run(); }

}  // namespace siltfs
