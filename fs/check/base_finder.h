// Reads the bases of deltas for checks and repairs. The index is asked first; bases that it does
// not find are searched in all segments, many in one pass.
//
// Thread-safety: one thread. Memory: some 80 bytes for each base that was searched, and 8 MiB of
// decoded blocks. Errors of ReadBase: kNotFound if no whole copy was found; kCorruption if the only
// copies found are damaged; kIoError.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"
#include "fs/segments/chunk_verifier.h"
#include "store/base/location.h"
#include "store/base/lru_cache.h"
#include "store/segment/base_source.h"

namespace siltfs {

class BaseFinder final : public BaseSource {
 public:
  // How it is decided whether a copy is undamaged.
  enum class Trust : uint8_t {
    kKnownDamage,  // by the damaged chunks in `context`; a copy of such a chunk is read
    kNothing,      // every copy is read
  };
  BaseFinder(CheckContext& context, ChunkFinder& finder, ChunkVerifier verifier,
             Trust trust = Trust::kKnownDamage);

  // Finds these bases with one search at most, and remembers the result of the search until the
  // next call. Fails only with errors that end the whole check.
  Status Resolve(std::span<const BaseRef> bases);
  // Whether a base that was passed to the last Resolve has a whole copy, as far as block heads and
  // the damage found so far tell.
  bool IsThere(const BaseRef& base);

  // Searches all segments if the index does not find the base, and Resolve has not searched it.
  Result<BaseBytes> ReadBase(const BaseRef& base) override;

 private:
  // Looks the bases up in the index. Adds those that it does not find to `unknown`.
  void LookUp(std::span<const BaseRef> bases, std::map<BaseRef, std::optional<Location>>& unknown);
  // The place to which the index leads, if the base is whole there.
  std::optional<Location> InIndex(const BaseRef& base);
  bool IsWholeAt(const Location& location, const BaseRef& base);
  void NoteFailure(const BaseRef& base, const Status& failure);
  Result<BaseBytes> ReadAt(const Location& location, const BaseRef& base);
  Status Search(std::map<BaseRef, std::optional<Location>>& wanted);

  CheckContext& context_;
  ChunkFinder& finder_;
  ChunkVerifier verifier_;
  const Trust trust_;
  std::map<BaseRef, std::optional<Location>> searched_;  // empty: in no segment
  std::map<BaseRef, Status> unreadable_;                 // device errors
  LruCache<uint64_t, const DecodedBlock> blocks_;
};

}  // namespace siltfs
