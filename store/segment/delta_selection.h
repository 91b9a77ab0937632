// Decides which chunks of a segment become deltas while the segment is rewritten.
//
// A chunk becomes a delta if its delta and the entry in the delta table take less than 7/8 of its
// share of the old block's payload. Deltas of the old segment keep their bases if that is possible.
// No chunk becomes a delta after another chunk of the segment has become a delta against it, and
// the other way round, because a base must be whole.
//
// Thread-safety: one thread. Memory: some 60 bytes per delta and per base of the segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "store/base/chunk_name.h"
#include "store/base/result.h"
#include "store/segment/base_chooser.h"
#include "store/segment/base_source.h"
#include "store/segment/block.h"
#include "store/segment/block_codec.h"
#include "store/segment/delta_payload.h"

namespace siltfs {

class DeltaSelection {
 public:
  // `chooser` may be null. `bases` may be null if the segment has no deltas.
  DeltaSelection(const BlockCodec& codec, int level, BaseChooser* chooser, BaseSource* bases)
      : codec_(codec), level_(level), chooser_(chooser), bases_(bases) {}

  struct Selected {
    std::vector<DeltaFrame> deltas;  // ascending by position in the block
    uint64_t saved_bytes = 0;        // by which the chunks' shares of the old payload were larger
  };
  // Selects the deltas of the next block of the segment, in which no chunk is missing. Returns
  // failures of the chooser and of the source of bases.
  Result<Selected> Select(const DecodedBlock& block);

 private:
  class Candidates;

  const BlockCodec& codec_;
  const int level_;
  BaseChooser* const chooser_;
  BaseSource* const bases_;

  // Of all deltas selected so far. The names alone suffice: another chunk of the same name is
  // refused needlessly, but that happens only after a collision of SHA-1.
  std::unordered_set<ChunkName> names_of_deltas_;
  std::unordered_set<ChunkName> names_of_bases_;
};

}  // namespace siltfs
