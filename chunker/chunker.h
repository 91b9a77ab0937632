// Cuts a stream of bytes into chunks by its content, so that equal stretches of two streams are
// mostly cut alike, whatever stands before them (Muthitacharoen et al., LBFS, SOSP 2001; the
// fingerprint is Rabin's).
//
// A chunk that begins at byte s of the stream ends after the smallest length L such that
//     L >= min and the fingerprint of the last 64 bytes, [s + L - 64, s + L), is at least the
//     limit, or L == max,
// or where the stream ends. docs/chunker.md defines it to the bit. As min is at least the window,
// a fingerprint never reaches before the start of its chunk: where a chunk ends depends on its own
// bytes alone. Hence whoever knows one cut point can go on from it, and the bytes up to min - 64 of
// each chunk are never looked at.
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

// What all chunkers of a store share: 5 KiB of tables. Thread-safety: immutable.
class ChunkerTables {
 public:
  // kInvalidArgument as for ChunkerParameters::Validate, and as for ChosenKernel unless a kernel is
  // given, which RunnableKernels has.
  static Result<std::shared_ptr<const ChunkerTables>> Create(const ChunkerParameters& parameters);
  static Result<std::shared_ptr<const ChunkerTables>> Create(const ChunkerParameters& parameters,
                                                             const ChunkerKernel& kernel);

  const ChunkerParameters& parameters() const { return parameters_; }
  const CutCondition& condition() const { return condition_; }
  const ChunkerKernel& kernel() const { return kernel_; }

  // The length of the chunk that begins at data[0]; nothing if it does not end within `data`. A
  // chunk that ends exactly with `data` does end within it.
  std::optional<size_t> FindCut(ByteView data) const;

  // The same, or data.size() if it does not end within `data`: as if the file ended there.
  size_t FirstCut(ByteView data) const { return FindCut(data).value_or(data.size()); }

  // The lengths of all chunks of a file with these contents, in order; they add up to data.size().
  std::vector<uint32_t> CutAll(ByteView data) const;

 private:
  ChunkerTables(const ChunkerParameters& parameters, const ChunkerKernel& kernel);

  const ChunkerParameters parameters_;
  const CutCondition condition_;
  const ChunkerKernel& kernel_;
};

// Cuts contiguous data one chunk after another: the same as FindCut for the rest each time, but
// several times as fast, as it looks ahead over as much data as lets a kernel run at its full
// speed. Thread-safety: none. Borrows the tables and the data. Memory: 8.2 KB, in the object.
class CutSequence {
 public:
  CutSequence(const ChunkerTables& tables, ByteView data) : tables_(tables), data_(data) {}

  // The length of the next chunk; nothing if it does not end within the data.
  std::optional<size_t> Next();

 private:
  std::optional<size_t> FindNext();

  const ChunkerTables& tables_;
  const ByteView data_;
  size_t begin_ = 0;  // of the next chunk
  MatchMap matches_;
  size_t matches_begin_ = 0;
};

// Cuts a stream that comes in pieces. The cut points do not depend on how it is split. Copies no
// data but the last 64 bytes of each piece. Each call looks for one cut, so CutSequence is faster.
// Thread-safety: none; one per stream.
class Chunker {
 public:
  explicit Chunker(std::shared_ptr<const ChunkerTables> tables) : tables_(std::move(tables)) {}

  // `data` continues the stream. Returns how many of its bytes belong to the current chunk if that
  // ends within `data`: call again with the rest, which begins a new chunk. Otherwise nothing: all
  // of it belongs to the current chunk. `data` is not referred to after the call.
  std::optional<size_t> Next(ByteView data);

  // The bytes of the current chunk so far; at the end of the stream, the length of the last chunk
  // (0: there is none).
  size_t pending() const { return pending_; }

  // Begins a new stream.
  void Reset() { pending_ = 0; }

 private:
  size_t FindEnd(ByteView data) const;
  void Remember(ByteView data);

  std::shared_ptr<const ChunkerTables> tables_;
  size_t pending_ = 0;
  // The last min(64, pending_) bytes of the chunk, at the end.
  std::array<uint8_t, kWindowSize> tail_{};
};

}  // namespace siltfs
