#include "fs/check/node_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fs/check/segment_check_run.h"

namespace siltfs {
namespace {

constexpr size_t kCacheBytes = 4u << 20;

}  // namespace

NodeFinder::NodeFinder(CheckContext& context, ChunkFinder& finder)
    : context_(context), finder_(finder), nodes_(kCacheBytes) {}

Result<ChunkName> NodeFinder::PutNode(ByteView /*node*/) {
  return Status(StatusCode::kReadOnly, "a check writes nothing").At(context_.store());
}

Result<std::shared_ptr<const Bytes>> NodeFinder::ReadAt(const Location& location,
                                                        const ChunkName& name) {
  SILTFS_ASSIGN_OR_RETURN(const auto record, finder_.RecordAt(location));
  if (!record || record->name != name) {
    return Status(StatusCode::kCorruption,
                  fmt::format("recipe node {} is in no segment", name.ToHex()))
        .At(context_.store());
  }
  return finder_.ReadAt(location);
}

Result<std::shared_ptr<const Bytes>> NodeFinder::GetNode(const ChunkName& name,
                                                         uint32_t /*node_bytes*/) {
  if (auto node = nodes_.Get(name)) return node;
  Result<std::shared_ptr<const Bytes>> node(
      Status(StatusCode::kCorruption, fmt::format("recipe node {} is in no segment", name.ToHex()))
          .At(context_.store()));
  bool shared = false;  // the index entry is that of another chunk
  if (context_.index) {
    const auto location = context_.index->Get(name);
    if (location.ok() && *location) {
      node = ReadAt(**location, name);
      const auto record = finder_.RecordAt(**location);
      shared = record.ok() && *record && context_.ShareEntry((*record)->name, name);
    }
  }
  if (!node.ok()) {
    if (!IsDamage(node.status())) return node;
    SILTFS_RETURN_IF_ERROR(ListNodes());
    bool replayed = false;
    auto place = std::lower_bound(
        places_.begin(), places_.end(), name.Prefix64(),
        [](const Place& candidate, uint64_t prefix) { return candidate.name_prefix < prefix; });
    for (; !replayed && place != places_.end() && place->name_prefix == name.Prefix64(); ++place) {
      auto other = ReadAt(place->location, name);
      if (!other.ok()) continue;
      replayed = place->replayed;
      node = std::move(other);
    }
    if (!replayed && !shared) context_.NoteReferenceNotIndexed();
  }
  if (node.ok()) nodes_.Put(name, *node, (*node)->size());
  return node;
}

Status NodeFinder::ListNodes() {
  if (listed_) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(ForEachBlock(
      context_, finder_, SegmentKind::kRecipeNodes, [this](const BlockHead& head, uint32_t offset) {
        const bool replayed = context_.index && context_.IsReplayed(head);
        uint32_t ordinal = head.first_ordinal;
        for (const ChunkRecord& chunk : head.records)
          places_.push_back({chunk.name.Prefix64(), {head.segment, ordinal++, offset}, replayed});
        return Status::Ok();
      }));
  std::sort(places_.begin(), places_.end(),
            [](const Place& a, const Place& b) { return a.name_prefix < b.name_prefix; });
  listed_ = true;
  return Status::Ok();
}

}  // namespace siltfs
