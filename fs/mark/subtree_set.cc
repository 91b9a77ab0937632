#include "fs/mark/subtree_set.h"

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {

ChunkName SubtreeSet::KeyOf(const RecipeChild& node, uint8_t level) {
  Encoder reference;
  EncodeItem(reference, node);
  reference.U8(level);
  Encoder key;
  key.U64(Checksum(reference.view(), 1)).U64(Checksum(reference.view(), 2));
  key.Raw(node.name.view().first(ChunkName::kSize - key.size()));
  return ChunkName::FromBytes(key.view());
}

bool SubtreeSet::Insert(const ChunkName& key, uint8_t level) {
  if (level > 0) return inner_.Insert(key);
  if (leaves_.size() < kMostLeaves) return leaves_.Insert(key);
  return !leaves_.Contains(key);
}

bool SubtreeSet::Contains(const RecipeChild& node, uint8_t level) const {
  return (level > 0 ? inner_ : leaves_).Contains(KeyOf(node, level));
}

}  // namespace siltfs
