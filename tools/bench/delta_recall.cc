#include "tools/bench/delta_recall.h"

#include <zstd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "chunker/chunk_namer.h"
#include "chunker/chunker.h"
#include "chunker/resemblance.h"
#include "index/slice_lsh/slice_lsh.h"
#include "store/base/chunk_name.h"
#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/posix_env.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/chunker_data.h"
#include "tools/bench/rounds.h"
#include "tools/bench/scratch_directory.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLevel = 3;
constexpr int kRankingLevel = 1;  // for the comparison of all bases, which takes most of the time
constexpr uint64_t kBlockBytes = 128U << 10;  // of chunks that are compressed together
constexpr uint64_t kTableBytes = 40;          // of a delta in a block's table

// A file below one of the paths. Files with the same relative name are versions of each other.
struct SourceFile {
  std::string name;  // relative
  size_t root = 0;
  std::string path;
};

struct SampleChunk {
  Bytes bytes;
  double share = 0;                  // of its compressed block
  uint64_t best_delta = UINT64_MAX;  // with the best base among all earlier chunks
};

bool IsUseful(const SampleChunk& chunk, uint64_t delta) {
  return delta != UINT64_MAX && static_cast<double>(delta + kTableBytes) < chunk.share * 7 / 8;
}

class DeltaCompressor {
 public:
  DeltaCompressor() : context_(ZSTD_createCCtx()) {
    if (context_ == nullptr) throw BenchFailure("delta: no memory for a zstd context");
  }

  // The size of the delta; without a base that of the compressed bytes.
  uint64_t SizeOf(ByteView bytes, ByteView base, int level = kLevel) {
    ZSTD_CCtx_reset(context_.get(), ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_refPrefix(context_.get(), base.data(), base.size());
    out_.resize(ZSTD_compressBound(bytes.size()));
    const size_t size =
        ZSTD_compress2(context_.get(), out_.data(), out_.size(), bytes.data(), bytes.size());
    if (ZSTD_isError(size) != 0) throw BenchFailure("delta: zstd cannot compress");
    return size;
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context_;
  Bytes out_;
};

class Recall {
 public:
  explicit Recall(const DeltaRecallArguments& arguments)
      : arguments_(arguments), env_(NewPosixEnv()) {
    auto tables =
        ChunkerTables::Create(ParametersForBench(arguments.chunk_bytes, kBenchPolynomial));
    Require(tables.status());
    tables_ = *tables;
  }

  Json All() {
    TakeSample();
    ShareBlocks();
    const Stopwatch stopwatch;
    FindBestBases();
    const double seconds = stopwatch.seconds();
    uint64_t bytes = 0;
    double stored = 0;
    uint64_t useful = 0;
    double saved = 0;
    for (const SampleChunk& chunk : chunks_) {
      bytes += chunk.bytes.size();
      stored += chunk.share;
      if (!IsUseful(chunk, chunk.best_delta)) continue;
      ++useful;
      saved += chunk.share - static_cast<double>(chunk.best_delta + kTableBytes);
    }
    Json report = {{"sample_chunks", chunks_.size()},
                   {"sample_files", files_},
                   {"sample_bytes", bytes},
                   {"compressed_bytes", static_cast<uint64_t>(stored)},
                   {"useful_bases", useful},
                   {"brute_force_saved_bytes", static_cast<uint64_t>(saved)},
                   {"brute_force_seconds", seconds}};
    constexpr ResemblanceShape kShapes[] = {{3, 4}, {3, 2},  {3, 1},  {6, 2},
                                            {6, 1}, {10, 4}, {10, 2}, {10, 1}};
    for (const ResemblanceShape& shape : kShapes) {
      const std::string name =
          std::to_string(shape.super_features) + "x" + std::to_string(shape.features);
      report["super_features_x_features"][name] = Measure(shape, useful, saved);
    }
    return report;
  }

 private:
  void ListFiles(const std::string& path, const std::string& name, size_t root,
                 std::vector<SourceFile>& files);
  void TakeSample();
  void AddChunksOf(const SourceFile& file, ChunkNamer& namer);
  void ShareBlocks();
  void FindBestBases();
  Json Measure(const ResemblanceShape& shape, uint64_t useful, double saved);

  const DeltaRecallArguments& arguments_;
  const std::unique_ptr<Env> env_;
  std::shared_ptr<const ChunkerTables> tables_;
  std::set<ChunkName> names_;
  uint64_t files_ = 0;
  std::vector<SampleChunk> chunks_;
};

void Recall::ListFiles(const std::string& path, const std::string& name, size_t root,
                       std::vector<SourceFile>& files) {
  const auto info = env_->GetFileInfo(path);
  Require(info.status());
  if (info->type != FileType::kDirectory) {
    if (info->type == FileType::kRegular)
      files.push_back({.name = name, .root = root, .path = path});
    return;
  }
  const auto entries = env_->ListDirectory(path);
  Require(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    if (entry.type != FileType::kDirectory && entry.type != FileType::kRegular) continue;
    ListFiles(JoinPath(path, entry.name), JoinPath(name, entry.name), root, files);
  }
}

// Takes whole files with all their versions, in a random order of their names. The chunks come in
// the order in which backups of the paths, one after the other, would store them.
void Recall::TakeSample() {
  std::vector<SourceFile> files;
  for (size_t root = 0; root < arguments_.paths.size(); ++root) {
    ListFiles(arguments_.paths[root], "", root, files);
  }
  std::map<std::string, std::vector<SourceFile>> versions;
  for (SourceFile& file : files) versions[file.name].push_back(std::move(file));
  std::vector<std::vector<SourceFile>> order;
  for (auto& [name, those] : versions) order.push_back(std::move(those));
  Random random(arguments_.seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  auto namer = ChunkNamer::Create({});
  Require(namer.status());
  std::vector<std::pair<size_t, SampleChunk>> sample;  // with the numbers of their paths
  for (const auto& those : order) {
    if (sample.size() >= arguments_.sample) break;
    for (const SourceFile& file : those) {
      AddChunksOf(file, *namer);
      for (SampleChunk& chunk : chunks_) sample.emplace_back(file.root, std::move(chunk));
      chunks_.clear();
    }
  }
  std::ranges::stable_sort(sample, {}, [](const auto& one) { return one.first; });
  for (auto& [root, chunk] : sample) {
    if (chunks_.size() < arguments_.sample) chunks_.push_back(std::move(chunk));
  }
  if (chunks_.size() < 2) throw BenchFailure("delta: the files have too few chunks");
}

// Chunks that are new.
void Recall::AddChunksOf(const SourceFile& file, ChunkNamer& namer) {
  const Bytes data = ReadForBench(file.path);
  ++files_;
  size_t at = 0;
  for (const uint32_t length : tables_->CutAll(data)) {
    const ByteView chunk = ByteView(data).subspan(at, length);
    at += length;
    if (!names_.insert(namer.NameOf(chunk)).second || chunks_.size() >= arguments_.sample) continue;
    chunks_.emplace_back().bytes.assign(chunk.begin(), chunk.end());
  }
}

void Recall::ShareBlocks() {
  DeltaCompressor compressor;
  for (size_t begin = 0, end = 0; begin < chunks_.size(); begin = end) {
    Bytes block;
    for (end = begin; end < chunks_.size() && block.size() < kBlockBytes; ++end) {
      block.insert(block.end(), chunks_[end].bytes.begin(), chunks_[end].bytes.end());
    }
    const double ratio = std::min(
        1.0, static_cast<double>(compressor.SizeOf(block, {})) / static_cast<double>(block.size()));
    for (size_t i = begin; i < end; ++i) {
      chunks_[i].share = ratio * static_cast<double>(chunks_[i].bytes.size());
    }
  }
}

void Recall::FindBestBases() {
  RunThreads(arguments_.threads, [this](unsigned thread) {
    DeltaCompressor compressor;
    for (size_t i = thread; i < chunks_.size(); i += arguments_.threads) {
      SampleChunk& chunk = chunks_[i];
      size_t best = 0;
      uint64_t least = UINT64_MAX;
      for (size_t base = 0; base < i; ++base) {
        const uint64_t delta = compressor.SizeOf(chunk.bytes, chunks_[base].bytes, kRankingLevel);
        if (delta < least) best = base;
        least = std::min(least, delta);
      }
      if (i > 0) chunk.best_delta = compressor.SizeOf(chunk.bytes, chunks_[best].bytes);
    }
  });
}

// Recall: the share of the chunks with a useful base for which a useful one is found. Precision:
// the share of the first candidates that are useful.
Json Recall::Measure(const ResemblanceShape& shape, uint64_t useful, double saved) {
  auto resemblance = Resemblance::Create(tables_, shape);
  Require(resemblance.status());
  ScratchDirectory scratch(*env_, arguments_.directory);
  auto lsh = SliceLsh::Open(*env_, {.directory = scratch.path(),
                                    .shape = {.tables = shape.super_features},
                                    .buffer_bytes = 16384});
  Require(lsh.status());
  DeltaCompressor compressor;
  uint64_t found_useful = 0;
  uint64_t found_best = 0;
  uint64_t with_candidates = 0;
  uint64_t first_useful = 0;
  uint64_t tried = 0;
  uint64_t bytes = 0;
  double found_saved = 0;
  double feature_seconds = 0;
  for (uint32_t i = 0; i < chunks_.size(); ++i) {
    const SampleChunk& chunk = chunks_[i];
    std::vector<uint64_t> features(shape.super_features);
    const Stopwatch stopwatch;
    const bool any = resemblance->FeaturesOf(chunk.bytes, features);
    feature_seconds += stopwatch.seconds();
    bytes += chunk.bytes.size();
    if (!any) continue;
    std::vector<std::vector<SliceLshCandidate>> found;
    Require((*lsh)->Find(features, found));
    const auto& candidates = found[0];
    uint64_t least = UINT64_MAX;
    for (size_t c = 0; c < std::min<size_t>(candidates.size(), arguments_.candidates); ++c) {
      const size_t base = candidates[c].place.segment - 1;
      if (base >= i) throw BenchFailure("delta: a candidate was never added");
      const uint64_t delta = compressor.SizeOf(chunk.bytes, chunks_[base].bytes);
      ++tried;
      if (c == 0) {
        ++with_candidates;
        first_useful += IsUseful(chunk, delta) ? 1 : 0;
      }
      least = std::min(least, delta);
    }
    if (least != UINT64_MAX && IsUseful(chunk, least)) {
      ++found_useful;
      found_best += least <= chunk.best_delta + chunk.best_delta / 10 ? 1 : 0;
      found_saved += chunk.share - static_cast<double>(least + kTableBytes);
    }
    Require((*lsh)->Add(features, {.segment = i + 1, .ordinal = 0}));
  }
  const auto ratio = [](double part, double whole) { return whole == 0 ? 0 : part / whole; };
  return {
      {"recall", ratio(static_cast<double>(found_useful), static_cast<double>(useful))},
      {"recall_of_best", ratio(static_cast<double>(found_best), static_cast<double>(useful))},
      {"precision", ratio(static_cast<double>(first_useful), static_cast<double>(with_candidates))},
      {"share_of_savings", ratio(found_saved, saved)},
      {"candidates_tried_per_chunk",
       static_cast<double>(tried) / static_cast<double>(chunks_.size())},
      {"features_mb_per_s", static_cast<double>(bytes) / 1e6 / feature_seconds}};
}

}  // namespace

Json MeasureDeltaRecall(const DeltaRecallArguments& arguments) { return Recall(arguments).All(); }

}  // namespace siltfs
