// A reference to a chunk, for sorting: the beginning of the chunk's name, the user and the length.
// The references to a chunk come in the order of their places.
//
// Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fs/mark/sorted_run.h"
#include "fs/recipe/recipe_entry.h"
#include "fs/space/report_tree.h"
#include "store/base/chunk_name.h"

namespace siltfs {

// A place below the paths, and what else refers to the same. As a mark of LevelWalk it is 64 bits.
struct ChunkUser {
  ReportTree::Place place = 0;  // 0: nothing below the paths
  bool snapshot = false;
  bool other = false;  // a live file that is not below the paths, or has another name elsewhere

  uint64_t Encode() const {
    return uint64_t{place} << 2 | uint64_t{snapshot} << 1 | uint64_t{other};
  }
  static ChunkUser Decode(uint64_t mark) {
    return {.place = static_cast<ReportTree::Place>(mark >> 2),
            .snapshot = (mark & 2) != 0,
            .other = (mark & 1) != 0};
  }

  // Two users with different places stay apart. `next` does not have a lower place than `mark`.
  static bool Unite(const RecipeChild&, uint64_t& mark, uint64_t next) {
    if (mark >> 2 != 0 && mark >> 2 != next >> 2) return false;
    mark |= next;
    return true;
  }
};

class ChunkReference {
 public:
  // `node`: whether it is a recipe node.
  static TwoWords Encode(const ChunkName& name, uint64_t length, uint64_t mark, bool node) {
    return {name.Prefix64(),
            (mark << 1 | uint64_t{node}) << kLengthBits | std::min(length, kMaxLength)};
  }
  static ChunkUser UserOf(const TwoWords& record) {
    return ChunkUser::Decode(record[1] >> (kLengthBits + 1));
  }
  static bool IsNode(const TwoWords& record) { return (record[1] >> kLengthBits & 1) != 0; }
  static uint64_t LengthOf(const TwoWords& record) { return record[1] & kMaxLength; }

 private:
  static constexpr unsigned kLengthBits = 24;
  static constexpr uint64_t kMaxLength = (uint64_t{1} << kLengthBits) - 1;
  static_assert(RecipeEntry::kMaxChunkLength <= kMaxLength);
  static_assert(RecipeChild::kMaxNodeBytes <= kMaxLength);
};

}  // namespace siltfs
