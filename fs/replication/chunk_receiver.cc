#include "fs/replication/chunk_receiver.h"

#include <fmt/format.h>

#include <utility>

#include "fs/mark/subtree_set.h"
#include "fs/recipe/recipe_difference.h"
#include "fs/records/overlay_extent.h"
#include "store/segment/segment_format.h"

namespace siltfs {
namespace {

Status Malformed() { return {StatusCode::kCorruption, "the stream has a malformed block"}; }

}  // namespace

void ChunkReceiver::BeginBatch() {
  if (!use_) use_.emplace(chunks_);
}

void ChunkReceiver::EndBatch() {
  known_.clear();
  // Without the Use, nodes of earlier batches stay only as long as the head refers to them.
  verified_.emplace(NodeSet::kWholeNames);
  use_.reset();
}

Status ChunkReceiver::Put(const StreamBlock& block) {
  BeginBatch();
  BlockHead head;
  head.codec = block.compressed ? BlockCodecId::kZstd : BlockCodecId::kNone;
  uint64_t plain_bytes = 0;
  for (const StreamChunk& chunk : block.chunks) {
    plain_bytes += chunk.length;
    if (chunk.length == 0 || plain_bytes > kMaxChunkLength) return Malformed();
    head.records.push_back({.name = chunk.name, .length = chunk.length});
  }
  head.plain_bytes = static_cast<uint32_t>(plain_bytes);
  head.payload_bytes = static_cast<uint32_t>(block.payload.size());
  const auto plain = codec_.DecodePayload(head, block.payload);
  if (!plain.ok()) return Malformed();
  std::vector<ByteView> chunks;
  size_t at = 0;
  for (const StreamChunk& chunk : block.chunks) {
    chunks.push_back(ByteView(*plain).subspan(at, chunk.length));
    at += chunk.length;
  }
  std::vector<ChunkName> names(chunks.size());
  if (block.nodes) {
    for (size_t i = 0; i < chunks.size(); ++i) {
      SILTFS_ASSIGN_OR_RETURN(names[i], chunks_.PutNode(chunks[i]));
    }
  } else {
    SILTFS_RETURN_IF_ERROR(chunks_.Put(chunks, names));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const StreamChunk& chunk = block.chunks[i];
    if (names[i] != chunk.name) {
      if (chunk.salt == 0) {
        return {StatusCode::kCorruption,
                fmt::format("a chunk of the stream differs from its name {}", chunk.name.ToHex())};
      }
      return {StatusCode::kUnsupported,
              fmt::format("the chunk {} of the snapshot collides with another one (SHA-1), and "
                          "such chunks cannot be received",
                          chunk.name.ToHex())};
    }
    if (known_.size() < kMostKnown) known_.emplace(names[i], chunk.length);
    plain_bytes_ += chunk.length;
  }
  received_ += names.size();
  return Status::Ok();
}

StreamWants ChunkReceiver::Choose(const StreamOffer& offer) {
  BeginBatch();
  std::vector<ChunkName> names;
  std::vector<uint32_t> lengths;
  for (const StreamChunk& chunk : offer.chunks) {
    names.push_back(chunk.name);
    lengths.push_back(chunk.length);
  }
  StreamWants wants{.wanted = chunks_.Have(names, lengths)};
  for (size_t i = 0; i < names.size(); ++i) {
    if (wants.wanted[i] && known_.size() < kMostKnown) known_.emplace(names[i], lengths[i]);
    wants.wanted[i] = !wants.wanted[i];
  }
  return wants;
}

Status ChunkReceiver::Need(const ChunkName& name, uint32_t length) {
  if (IsKnown(name, length)) return Status::Ok();
  needed_.push_back(name);
  needed_lengths_.push_back(length);
  return needed_.size() < kMostNeeded ? Status::Ok() : RequireNeeded();
}

Status ChunkReceiver::RequireNeeded() {
  const auto names = std::exchange(needed_, {});
  const auto lengths = std::exchange(needed_lengths_, {});
  Status stored = chunks_.Require(names, lengths, SegmentKind::kData);
  if (!stored.Is(StatusCode::kNotFound)) return stored;
  return {StatusCode::kCorruption,
          "the stream lacks a chunk that a file needs: " + std::string(stored.cause())};
}

Status ChunkReceiver::VerifyInode(const std::optional<std::string>& before,
                                  const InodeRecord& after) {
  BeginBatch();
  Recipe old;
  if (before) {
    SILTFS_ASSIGN_OR_RETURN(InodeRecord record, InodeRecord::Decode(*before));
    old = std::move(record.recipe);
  }
  const NewReferences references = {
      .node = [this](const RecipeChild& node, uint8_t level) -> Result<bool> {
        // The sums of a reference to a verified node may be wrong.
        if (!verified_->Insert(SubtreeSet::KeyOf(node, level))) return false;
        if (IsKnown(node.name, node.node_bytes)) return true;
        const Status stored =
            chunks_.Require({&node.name, 1}, {&node.node_bytes, 1}, SegmentKind::kRecipeNodes);
        if (!stored.Is(StatusCode::kNotFound)) {
          SILTFS_RETURN_IF_ERROR(stored);
          return true;
        }
        return Status(
            StatusCode::kCorruption,
            "the stream lacks a recipe node that a file needs: " + std::string(stored.cause()));
      },
      .chunk =
          [this](const RecipeEntry& chunk) {
            return Need(chunk.name, static_cast<uint32_t>(chunk.length));
          }};
  return ForEachNewReference(chunks_, old, after.recipe, references);
}

Status ChunkReceiver::VerifyExtent(std::string_view value) {
  BeginBatch();
  SILTFS_ASSIGN_OR_RETURN(const OverlayExtent extent, OverlayExtent::Decode(value));
  for (const ChunkSlice& slice : extent.slices)
    SILTFS_RETURN_IF_ERROR(Need(slice.name, slice.chunk_length));
  return Status::Ok();
}

Status ChunkReceiver::Finish() { return needed_.empty() ? Status::Ok() : RequireNeeded(); }

}  // namespace siltfs
