// The chunks that a sender need not send, because the receiver has them: one bit for each chunk of
// the segments that were met.
//
// Not thread-safe. Memory: 1 bit for each chunk of these segments; for chunks whose place is not
// known, 12 to 17 bytes each.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "fs/chunks/chunk_reader.h"
#include "fs/mark/node_set.h"
#include "store/base/chunk_name.h"

namespace siltfs {

class SentChunks {
 public:
  // Adds the chunk; false if it was added before. `place`: null if it is not known. A chunk that
  // moves between two calls counts as new, and is then sent twice.
  bool Add(const ChunkName& name, const ChunkReader::Place* place) {
    if (place == nullptr) return unplaced_.Insert(name);
    std::vector<bool>& chunks = segments_[place->segment];
    if (chunks.size() <= place->ordinal) chunks.resize(place->ordinal + 1);
    if (chunks[place->ordinal]) return false;
    chunks[place->ordinal] = true;
    return true;
  }

 private:
  std::unordered_map<SegmentId, std::vector<bool>> segments_;
  NodeSet unplaced_{NodeSet::kWholeNames};
};

}  // namespace siltfs
