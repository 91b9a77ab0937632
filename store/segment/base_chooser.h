// Chooses bases for the chunks of a segment that is rewritten (segment_rewrite.h). fs/ implements
// it with its index of resembling chunks.
//
// Thread-safety: the thread that calls PrepareRewrite calls Choose, for one block at a time.
#pragma once

#include <cstddef>
#include <functional>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/segment/base_ref.h"
#include "store/segment/block.h"

namespace siltfs {

class BaseChooser {
 public:
  virtual ~BaseChooser() = default;

  // Takes a possible base of the chunk at `position` in the block. Compresses the chunk against the
  // base at once, so `bytes` need to stay valid during the call only. A failure must be returned
  // from Choose.
  using Offer = std::function<Status(size_t position, const BaseRef& base, ByteView bytes)>;

  // Offers bases for chunks of this block, in any order. Several may be offered for one chunk; the
  // one with the smallest delta is used. No chunk of the block is missing. The chooser
  // - verifies `bytes`, by hash, against the name and tag of `base`;
  // - offers only bases that are stored whole outside of the segment that is rewritten, and that
  //   stay whole, or that are whole in this segment: PrepareRewrite sees to it that a chunk of the
  //   segment does not become both a base and a delta;
  // - offers nothing for a chunk that is the base of a delta in any other segment, because this
  //   chunk must stay whole.
  // If Choose fails, the rewrite ends with this failure and leaves no new file.
  virtual Status Choose(const DecodedBlock& block, const Offer& offer) = 0;
};

}  // namespace siltfs
