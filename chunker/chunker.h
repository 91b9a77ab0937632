// Cuts a stream of bytes into chunks by its content, so that equal stretches of two streams are
// mostly cut alike, whatever stands before them (Muthitacharoen et al., LBFS, SOSP 2001; the
// fingerprint is Rabin's).
//
// A chunk that begins at byte s of the stream ends after the smallest length L such that
//     L >= min and the fingerprint of the last 64 bytes, [s + L - 64, s + L), is at least the
//     limit, or L == max,
// or where the stream ends. docs/chunker.md defines it to the bit. As min exceeds the window, a
// fingerprint never reaches before the start of its chunk: where a chunk ends depends on its own
// bytes alone. Hence whoever knows one cut point can go on from it, and the bytes up to min - 64 of
// each chunk are never looked at.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "chunker/kernel.h"
#include "chunker/parameters.h"
#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

// What all chunkers of a store share: 4 KiB of tables. Thread-safety: immutable.
class ChunkerTables {
 public:
  // kInvalidArgument as for ChunkerParameters::Validate.
  static Result<std::shared_ptr<const ChunkerTables>> Create(const ChunkerParameters& parameters);

  const ChunkerParameters& parameters() const { return parameters_; }
  const CutCondition& condition() const { return condition_; }

  // The length of the chunk that begins at data[0]; nothing if it does not end within `data`. A
  // chunk that ends exactly with `data` does end within it.
  std::optional<size_t> FindCut(ByteView data) const;

  // The same, or data.size() if it does not end within `data`: as if the file ended there.
  size_t FirstCut(ByteView data) const { return FindCut(data).value_or(data.size()); }

  // The lengths of all chunks of a file with these contents, in order; they add up to data.size().
  std::vector<uint32_t> CutAll(ByteView data) const;

 private:
  explicit ChunkerTables(const ChunkerParameters& parameters);

  const ChunkerParameters parameters_;
  const CutCondition condition_;
};

// Cuts a stream that comes in pieces. The cut points do not depend on how it is split. Copies no
// data but the last 64 bytes of each piece; each call costs some 100 ns beside the scanning itself.
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
  size_t FindMatch(ByteView data) const;
  void Remember(ByteView data);

  std::shared_ptr<const ChunkerTables> tables_;
  size_t pending_ = 0;
  // The last min(64, pending_) bytes of the chunk, at the end.
  std::array<uint8_t, kWindowSize> tail_{};
};

}  // namespace siltfs
