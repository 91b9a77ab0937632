#include "tools/bench/delta_stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "fs/interface/file_system.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/make_store.h"
#include "store/base/checksum.h"
#include "store/env/files.h"
#include "store/env/posix_env.h"
#include "store/env/resources.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/rounds.h"
#include "tools/bench/scratch_directory.h"

namespace siltfs {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPieceBytes = 128U << 10;  // as a kernel sends them

struct Source {
  std::string path;
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // of the whole file; known when it was stored
};

// Adds the regular files below a path in the order of their names.
void AddSources(Env& env, const std::string& path, std::vector<Source>& sources) {
  auto entries = env.ListDirectory(path);
  if (entries.status().Is(StatusCode::kNotADirectory)) {
    sources.push_back({.path = path});
    return;
  }
  Require(entries.status());
  std::ranges::sort(*entries, {}, &DirectoryEntry::name);
  for (const DirectoryEntry& entry : *entries) {
    const std::string inner = JoinPath(path, entry.name);
    if (entry.type == FileType::kDirectory) AddSources(env, inner, sources);
    if (entry.type == FileType::kRegular) sources.push_back({.path = inner});
  }
}

struct Times {
  std::vector<double> ingest;
  std::vector<double> recompress;
  std::vector<double> restore;
};

// A store that is filled, recompressed and read.
class OneStore {
 public:
  OneStore(Env& env, std::string path, bool deltas, std::vector<Source>& sources, bool cold)
      : env_(env), path_(std::move(path)), sources_(sources), cold_(cold) {
    MakeStoreOptions make;
    make.path = path_;
    make.deltas = deltas;
    Require(MakeStore(env_, make));
    Open();
  }

  double Ingest() {
    if (cold_) Require(DropPageCache());
    for (Source& source : sources_) ReadSource(source, [](ByteView) {});  // into the page cache
    const Stopwatch stopwatch;
    for (size_t i = 0; i < sources_.size(); ++i) Store(i);
    Require(fs_->SyncAll());
    return stopwatch.seconds();
  }

  double Recompress() {
    const Stopwatch stopwatch;
    const auto report = fs_->maintenance().Recompress();
    Require(report.status());
    const double seconds = stopwatch.seconds();
    delta_chunks_ = report->delta_chunks;
    delta_saved_ = report->delta_saved_bytes;
    const FileSystemStats stats = StatsOf();
    unique_ = stats.unique_bytes;
    if (stats.deltas) choice_ = *stats.deltas;
    Require(fs_->Close());
    fs_.reset();
    return seconds;
  }

  double Restore() {
    Open();
    if (cold_) Require(DropPageCache());
    Bytes piece(kPieceBytes);
    const Stopwatch stopwatch;
    for (size_t i = 0; i < sources_.size(); ++i) {
      const auto found = fs_->Lookup(kRootInode, NameOf(i));
      Require(found.status());
      Require(fs_->OpenFile(found->inode, /*truncate=*/false));
      StreamingChecksum checksum;
      for (uint64_t at = 0; at < sources_[i].bytes;) {
        const auto got = fs_->Read(found->inode, at, piece);
        Require(got.status());
        if (*got == 0) break;
        checksum.Add(ByteView(piece).first(*got));
        at += *got;
      }
      fs_->ReleaseFile(found->inode);
      fs_->Forget(found->inode, 1);
      if (checksum.value() != sources_[i].checksum)
        throw BenchFailure(
            fmt::format("delta: {} was not read as it was stored", sources_[i].path));
    }
    const double seconds = stopwatch.seconds();
    const FileSystemStats stats = StatsOf();
    stored_ = stats.stored_bytes;
    index_ = stats.index_bytes;
    Require(fs_->Close());
    fs_.reset();
    return seconds;
  }

  uint64_t stored_bytes() const { return stored_; }
  uint64_t index_bytes() const { return index_; }
  uint64_t unique_bytes() const { return unique_; }
  uint64_t delta_chunks() const { return delta_chunks_; }
  uint64_t delta_saved_bytes() const { return delta_saved_; }
  const DeltaStats& delta_stats() const { return choice_; }

 private:
  static std::string NameOf(size_t i) { return fmt::format("{:08}", i); }

  void Open() {
    FileSystemOptions options;
    options.store = path_;
    options.keep_guide = true;
    auto opened = FileSystem::Open(env_, std::move(options));
    Require(opened.status());
    fs_ = std::move(*opened);
  }
  FileSystemStats StatsOf() {
    auto stats = fs_->maintenance().GetStats();
    Require(stats.status());
    return *stats;
  }

  template <typename Visit>
  void ReadSource(Source& source, const Visit& visit) {
    const auto file = env_.OpenFile(source.path, {.mode = OpenMode::kRead});
    Require(file.status());
    Bytes piece(kPieceBytes);
    StreamingChecksum checksum;
    for (source.bytes = 0;;) {
      const auto got = (*file)->Read(source.bytes, piece);
      Require(got.status());
      if (*got == 0) break;
      const ByteView bytes = ByteView(piece).first(*got);
      checksum.Add(bytes);
      visit(bytes);
      source.bytes += *got;
    }
    source.checksum = checksum.value();
  }

  void Store(size_t i) {
    const auto made = fs_->CreateFile(kRootInode, NameOf(i), 0644, {});
    Require(made.status());
    uint64_t at = 0;
    ReadSource(sources_[i], [&](ByteView bytes) {
      Require(fs_->Write(made->inode, at, bytes));
      at += bytes.size();
    });
    fs_->ReleaseFile(made->inode);
    fs_->Forget(made->inode, 1);
  }

  Env& env_;
  const std::string path_;
  std::vector<Source>& sources_;
  const bool cold_;
  std::unique_ptr<FileSystem> fs_;
  uint64_t stored_ = 0;
  uint64_t index_ = 0;
  uint64_t unique_ = 0;
  uint64_t delta_chunks_ = 0;
  uint64_t delta_saved_ = 0;
  DeltaStats choice_;
};

}  // namespace

Json MeasureDeltaStores(const DeltaStoresArguments& arguments) {
  Require(RaiseFileLimit().status());
  const std::unique_ptr<Env> env = NewPosixEnv();
  std::vector<Source> sources;
  for (const std::string& path : arguments.paths) AddSources(*env, path, sources);
  if (sources.empty()) throw BenchFailure("delta: the paths have no files");
  std::array<Times, 2> times;  // without deltas, with deltas
  Json report;
  for (unsigned round = 0; round < arguments.rounds; ++round) {
    const ScratchDirectory scratch(*env, arguments.directory);
    OneStore without(*env, JoinPath(scratch.path(), "without"), false, sources, arguments.cold);
    OneStore with(*env, JoinPath(scratch.path(), "with"), true, sources, arguments.cold);
    const std::array<OneStore*, 2> stores = {&without, &with};
    // The first store of a round is another one each time.
    const auto in_turn = [&](auto step) {
      for (unsigned i = 0; i < 2; ++i) step((round + i) % 2);
    };
    in_turn([&](size_t i) { times[i].ingest.push_back(stores[i]->Ingest()); });
    in_turn([&](size_t i) { times[i].recompress.push_back(stores[i]->Recompress()); });
    in_turn([&](size_t i) { times[i].restore.push_back(stores[i]->Restore()); });
    uint64_t logical = 0;
    for (const Source& source : sources) logical += source.bytes;
    const DeltaStats& deltas = with.delta_stats();
    report = {{"files", sources.size()},
              {"logical_bytes", logical},
              {"unique_bytes", without.unique_bytes()},
              {"stored_bytes_without", without.stored_bytes()},
              {"stored_bytes_with", with.stored_bytes()},
              {"stored_bytes_saved_percent",
               100.0 * (1 - static_cast<double>(with.stored_bytes()) /
                                static_cast<double>(without.stored_bytes()))},
              {"index_bytes_without", without.index_bytes()},
              {"index_bytes_with", with.index_bytes()},
              {"lsh_bytes", deltas.lsh ? deltas.lsh->flash_bytes : 0},
              {"delta_chunks", with.delta_chunks()},
              {"delta_saved_bytes", with.delta_saved_bytes()},
              {"examined", deltas.examined},
              {"offered", deltas.offered}};
  }
  const auto logical = report.at("logical_bytes").get<double>();
  const auto unique = report.at("unique_bytes").get<double>();
  const std::array<const char*, 2> names = {"without", "with"};
  for (size_t i = 0; i < 2; ++i) {
    report[fmt::format("ingest_bytes_per_s_{}", names[i])] = logical / Median(times[i].ingest);
    report[fmt::format("recompress_bytes_per_s_{}", names[i])] =
        unique / Median(times[i].recompress);
    report[fmt::format("restore_bytes_per_s_{}", names[i])] = logical / Median(times[i].restore);
  }
  report["cold"] = arguments.cold;
  return report;
}

}  // namespace siltfs
