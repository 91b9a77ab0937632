// Reads recipe nodes by name, for walking recipes. If the index does not lead to a readable copy of
// a node, the node is searched in a list of all nodes in the segments. The list is made once.
//
// Not thread-safe. Memory: 4 MiB of nodes, and 24 bytes for each of the store's nodes if the list
// is made.
#pragma once

#include <vector>

#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"
#include "fs/recipe/recipe_node.h"
#include "store/base/lru_cache.h"

namespace siltfs {

class NodeFinder final : public NodeStore {
 public:
  NodeFinder(CheckContext& context, ChunkFinder& finder);

  // kCorruption if the node is missing or damaged.
  Result<std::shared_ptr<const Bytes>> GetNode(const ChunkName& name, uint32_t node_bytes) override;
  // Always fails with kReadOnly.
  Result<ChunkName> PutNode(ByteView node) override;

 private:
  struct Place {
    uint64_t name_prefix = 0;
    Location location;
    bool replayed = false;  // CheckContext::IsReplayed
  };

  // Reads the node if it is at this location.
  Result<std::shared_ptr<const Bytes>> ReadAt(const Location& location, const ChunkName& name);
  Status ListNodes();

  CheckContext& context_;
  ChunkFinder& finder_;
  LruCache<ChunkName, const Bytes> nodes_;
  std::vector<Place> places_;  // ascending by name_prefix
  bool listed_ = false;
};

}  // namespace siltfs
