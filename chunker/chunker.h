// Content-defined chunking: cuts a byte stream at places that its content decides, with Rabin
// fingerprints (Muthitacharoen et al., LBFS, SOSP 2001). Equal ranges of two streams mostly get the
// same cuts, even if different bytes precede them.
//
// A chunk that begins at byte s of the stream ends after the smallest length L such that
//     L >= min and the fingerprint of the last 64 bytes, [s + L - 64, s + L), is at least the
//     limit, or L == max,
// or at the end of the stream. docs/chunker.md has the exact definition.
//
// min is at least the window, so a fingerprint never covers bytes before its chunk: the end of a
// chunk depends only on its own bytes. So chunking can resume at any known cut point, and the first
// min - 64 bytes of each chunk are never read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "chunker/parameters.h"
#include "chunker/scan/kernels.h"
#include "chunker/scan/match_map.h"
#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

// The 5 KiB of tables shared by all chunkers of a store. Thread-safety: immutable.
class ChunkerTables {
 public:
  // Makes the tables. kInvalidArgument as for ChunkerParameters::Validate and ChosenKernel. If a
  // kernel is given, it must be one of RunnableKernels.
  static Result<std::shared_ptr<const ChunkerTables>> Create(const ChunkerParameters& parameters);
  static Result<std::shared_ptr<const ChunkerTables>> Create(const ChunkerParameters& parameters,
                                                             const ChunkerKernel& kernel);

  const ChunkerParameters& parameters() const { return parameters_; }
  const CutCondition& condition() const { return condition_; }
  const ChunkerKernel& kernel() const { return kernel_; }

  // The length of the chunk that begins at data[0]; nullopt if the chunk does not end within
  // `data`. A chunk may end exactly at the end of `data`.
  std::optional<size_t> FindCut(ByteView data) const;

  // Like FindCut, but treats the end of `data` as the end of the file: returns data.size() instead
  // of nullopt.
  size_t FirstCut(ByteView data) const { return FindCut(data).value_or(data.size()); }

  // The lengths of all chunks of a file with these contents, in order; they add up to data.size().
  std::vector<uint32_t> CutAll(ByteView data) const;

 private:
  ChunkerTables(const ChunkerParameters& parameters, const ChunkerKernel& kernel);

  const ChunkerParameters parameters_;
  const CutCondition condition_;
  const ChunkerKernel& kernel_;
};

// Cuts contiguous data into successive chunks, at the same places as repeated FindCut calls. It is
// several times as fast as these calls, because it scans ahead far enough for a kernel to run at
// full speed. Thread-safety: none. Borrows the tables and the data. Memory: 8.2 KB, in the object.
class CutSequence {
 public:
  CutSequence(const ChunkerTables& tables, ByteView data) : tables_(tables), data_(data) {}

  // The length of the next chunk; nullopt if it does not end within the data.
  std::optional<size_t> Next();

 private:
  std::optional<size_t> FindNext();

  const ChunkerTables& tables_;
  const ByteView data_;
  size_t begin_ = 0;  // of the next chunk
  MatchMap matches_;
  size_t matches_begin_ = 0;
};

// Cuts a stream that arrives in pieces. The cut points do not depend on the sizes of the pieces.
// Copies only the last 64 bytes of each piece. Each call searches for one cut, so CutSequence is
// faster for contiguous data. Thread-safety: none; one per stream.
class Chunker {
 public:
  explicit Chunker(std::shared_ptr<const ChunkerTables> tables) : tables_(std::move(tables)) {}

  // `data` continues the stream. If the current chunk ends within `data`, returns how many bytes of
  // `data` belong to this chunk. The caller must pass the rest to the next call; the rest begins a
  // new chunk. If the chunk does not end, returns nullopt: all of `data` belongs to it. `data` is
  // not used after the call.
  std::optional<size_t> Next(ByteView data);

  // Length of the current chunk so far; at the end of the stream, the length of the last chunk (0:
  // none).
  size_t pending() const { return pending_; }

  // Begins a new stream.
  void Reset() { pending_ = 0; }

 private:
  size_t FindEnd(ByteView data) const;
  void Remember(ByteView data);

  std::shared_ptr<const ChunkerTables> tables_;
  size_t pending_ = 0;
  // The last min(64, pending_) bytes of the array are the last bytes of the current chunk.
  std::array<uint8_t, kWindowSize> tail_{};
};

}  // namespace siltfs
