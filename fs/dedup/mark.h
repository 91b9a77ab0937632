// Stand-in until the mark is merged.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fs/meta/kv_store.h"
#include "fs/meta/recipe_node.h"
#include "index/chunk_index.h"
#include "store/env/env.h"
#include "store/segment/segment_footer.h"

namespace siltfs {

using MarkPace = std::function<Status()>;
Status ForEachReference(const KvSnapshot& metadata, NodeStore& nodes, const MarkPace& pace,
                        const std::function<Status(const ChunkName&)>& visit);
struct MarkOptions {
  std::string spill_directory;
  size_t memory_bytes = 8u << 20;
  MarkPace pace;
};
struct LiveCounts {
  std::unordered_map<SegmentId, uint32_t> live_chunks;
  uint64_t references = 0;
  uint64_t live = 0;
  uint64_t dead_entries = 0;
};
Result<LiveCounts> CountLive(Env& env, const KvSnapshot& metadata, NodeStore& nodes,
                             ChunkIndex& index, const MarkOptions& options);
class SegmentMark {
 public:
  void Add(SegmentId segment, std::span<const FooterChunk> chunks);
  Status Mark(const KvSnapshot& metadata, NodeStore& nodes, const MarkPace& pace);
  bool IsLive(SegmentId segment, uint32_t ordinal) const;
  uint32_t LiveCount(SegmentId segment) const;

 private:
  std::unordered_map<SegmentId, std::vector<uint64_t>> names_;
  std::unordered_set<uint64_t> live_;
};

}  // namespace siltfs
