#include "tools/bench/trace_record.h"

#include <algorithm>
#include <memory>

#include "chunker/chunk_namer.h"
#include "chunker/chunker.h"
#include "store/env/files.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/chunker_data.h"

namespace siltfs {
namespace {

class Recorder {
 public:
  Recorder(Env& env, uint32_t chunk_bytes) : env_(env) {
    auto tables = ChunkerTables::Create(ParametersForBench(chunk_bytes, kBenchPolynomial));
    Require(tables.status());
    tables_ = *tables;
    auto namer = ChunkNamer::Create({});
    Require(namer.status());
    namer_ = std::make_unique<ChunkNamer>(std::move(*namer));
    buffer_.resize(kBufferSize);
  }

  void AddDirectory(const std::string& directory) {
    auto entries = env_.ListDirectory(directory);
    Require(entries.status());
    std::ranges::sort(*entries, {}, &DirectoryEntry::name);
    for (const DirectoryEntry& entry : *entries) {
      const std::string path = JoinPath(directory, entry.name);
      if (entry.type == FileType::kDirectory) AddDirectory(path);
      if (entry.type == FileType::kRegular) AddFile(path);
    }
  }

  RecordedTrace Take() { return std::move(recorded_); }

 private:
  static constexpr size_t kBufferSize = 8U << 20;

  // Reads the file in pieces. A piece ends with the last cut in the buffer; the rest is read again.
  void AddFile(const std::string& path) {
    auto file = env_.OpenFile(path, {.mode = OpenMode::kRead});
    Require(file.status());
    ++recorded_.files;
    for (uint64_t at = 0;;) {
      const auto got = (*file)->Read(at, buffer_);
      Require(got.status());
      const bool last = *got < buffer_.size();
      const size_t used = AddPiece(ByteView(buffer_).first(*got), last);
      at += used;
      recorded_.bytes += used;
      if (last) return;
    }
  }

  // Returns the size of the chunks that end in the piece.
  size_t AddPiece(ByteView piece, bool last) {
    std::vector<ByteView> chunks;
    size_t begin = 0;
    CutSequence cuts(*tables_, piece);
    while (const auto length = cuts.Next()) {
      chunks.push_back(piece.subspan(begin, *length));
      begin += *length;
    }
    if (last && begin < piece.size()) {
      chunks.push_back(piece.subspan(begin));
      begin = piece.size();
    }
    std::vector<ChunkName>& names = recorded_.trace.names;
    const size_t before = names.size();
    names.resize(before + chunks.size());
    namer_->NamesOf(chunks, std::span(names).subspan(before));
    return begin;
  }

  Env& env_;
  std::shared_ptr<const ChunkerTables> tables_;
  std::unique_ptr<ChunkNamer> namer_;
  Bytes buffer_;
  RecordedTrace recorded_;
};

}  // namespace

RecordedTrace RecordTrace(Env& env, const std::vector<std::string>& directories,
                          uint32_t chunk_bytes, uint32_t value_bytes) {
  Recorder recorder(env, chunk_bytes);
  for (const std::string& directory : directories) recorder.AddDirectory(directory);
  RecordedTrace recorded = recorder.Take();
  recorded.trace.chunk_bytes = chunk_bytes;
  recorded.trace.value_bytes = value_bytes;
  return recorded;
}

}  // namespace siltfs
