#include "fs/replication/chunk_sender.h"

#include <algorithm>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "store/segment/segment_format.h"

namespace siltfs {
namespace {

constexpr size_t kMostChunks = 1u << 15;
constexpr uint64_t kMostBytes = 64u << 20;
// Chunks that are compressed again are sent in blocks of about this many uncompressed bytes.
constexpr size_t kPlainBytes = 512u << 10;
// A stored block is sent as it is if at least this share of it is wanted. It is not even read if
// fewer bytes of it are wanted.
constexpr uint64_t kLeastWantedPercent = 97;
constexpr uint64_t kLeastStoredBytes = 32u << 10;
constexpr int kLevel = 3;  // of zstd

bool SameBlock(const ChunkReader::Place& a, const ChunkReader::Place& b) {
  return a.segment == b.segment && a.file == b.file && a.block_offset == b.block_offset;
}

}  // namespace

Status ChunkSender::Add(const Reference& reference) {
  window_.push_back(reference);
  window_bytes_ += reference.length;
  return window_.size() < kMostChunks && window_bytes_ < kMostBytes ? Status::Ok() : Flush();
}

std::optional<ChunkReader::Place> ChunkSender::Find(const ChunkName& name) {
  const ChunkStore::Use use(chunks_);
  std::optional<ChunkReader::Place> place;
  chunks_.Locate({&name, 1}, last_, {&place, 1});
  return place;
}

Result<bool> ChunkSender::AddNode(const RecipeChild& node) {
  const auto place = Find(node.name);
  if (!sent_before_.Add(node.name, place ? &*place : nullptr)) return false;
  wanted_nodes_.push_back({{node.name, node.node_bytes, true}, place});
  window_bytes_ += node.node_bytes;
  if (wanted_nodes_.size() < kMostChunks && window_bytes_ < kMostBytes) return true;
  SILTFS_RETURN_IF_ERROR(Flush());
  return true;
}

void ChunkSender::Skip(const ChunkName& name) {
  const auto place = Find(name);
  sent_before_.Add(name, place ? &*place : nullptr);
}

Status ChunkSender::Flush() {
  std::vector<Wanted> wanted = std::exchange(wanted_nodes_, {});
  std::vector<ChunkName> names;
  for (const Reference& reference : window_) names.push_back(reference.name);
  std::vector<std::optional<ChunkReader::Place>> places(names.size());
  {
    const ChunkStore::Use use(chunks_);
    chunks_.Locate(names, last_, places);
  }
  for (size_t i = 0; i < window_.size(); ++i) {
    if (sent_before_.Add(window_[i].name, places[i] ? &*places[i] : nullptr))
      wanted.push_back({window_[i], places[i]});
  }
  window_.clear();
  window_bytes_ = 0;
  if (wanted.empty()) return Status::Ok();
  if (answers_ != nullptr) SILTFS_RETURN_IF_ERROR(AskReceiver(wanted));
  // In the order of the log. Chunks whose place is not known come last.
  std::ranges::sort(wanted, {}, [](const Wanted& w) {
    const ChunkReader::Place place = w.place.value_or(ChunkReader::Place{});
    return std::tuple(w.reference.node, !w.place, place.segment, place.block_offset, place.ordinal,
                      w.reference.name);
  });
  SILTFS_RETURN_IF_ERROR(SendAll(wanted));
  return SendCollected();
}

Status ChunkSender::AskReceiver(std::vector<Wanted>& wanted) {
  StreamOffer offer;
  for (const Wanted& w : wanted)
    offer.chunks.push_back({.name = w.reference.name, .length = w.reference.length});
  SILTFS_RETURN_IF_ERROR(out_.Write(offer));
  SILTFS_ASSIGN_OR_RETURN(const StreamMessage answer, answers_->Read());
  if (const auto* refusal = std::get_if<StreamRefusal>(&answer))
    return {StatusCode::kAborted, "the receiver refuses the snapshot: " + refusal->why};
  const auto* wants = std::get_if<StreamWants>(&answer);
  if (wants == nullptr || wants->wanted.size() != wanted.size())
    return {StatusCode::kCorruption, "the receiver's answer is malformed"};
  size_t i = 0;
  std::erase_if(wanted, [&](const Wanted&) { return !wants->wanted[i++]; });
  return Status::Ok();
}

Status ChunkSender::SendAll(const std::vector<Wanted>& wanted) {
  for (size_t first = 0; first < wanted.size();) {
    size_t end = first + 1;
    while (wanted[first].place && end < wanted.size() && wanted[end].place &&
           SameBlock(*wanted[first].place, *wanted[end].place) &&
           wanted[first].reference.node == wanted[end].reference.node)
      ++end;
    const auto of_block = std::span(wanted).subspan(first, end - first);
    SILTFS_ASSIGN_OR_RETURN(const bool sent, SendStored(of_block));
    if (!sent) {
      for (const Wanted& w : of_block) SILTFS_RETURN_IF_ERROR(SendDecoded(w));
    }
    first = end;
  }
  return Status::Ok();
}

Result<bool> ChunkSender::SendStored(std::span<const Wanted> wanted) {
  const auto& place = wanted.front().place;
  // Recipe nodes are stored uncompressed.
  if (!place || wanted.front().reference.node) return false;
  uint64_t bytes = 0;
  for (const Wanted& w : wanted) bytes += w.reference.length;
  if (bytes < kLeastStoredBytes) return false;
  auto stored = [&] {
    const ChunkStore::Use use(chunks_);
    return chunks_.ReadStored(*place);
  }();
  if (!stored.ok()) {
    stored.status().IgnoreError("the chunks are looked up again, and the failure is reported");
    return false;
  }
  EncodedBlock& block = *stored;
  if (block.codec == BlockCodecId::kZstdDelta ||
      bytes * 100 < uint64_t{block.plain_bytes} * kLeastWantedPercent)
    return false;
  // The places are hints, so the block decides. They are in its order.
  auto record = block.records.begin();
  for (const Wanted& w : wanted) {
    record = std::find_if(record, block.records.end(), [&w](const ChunkRecord& candidate) {
      return candidate.name == w.reference.name && candidate.length == w.reference.length;
    });
    if (record == block.records.end()) return false;
  }
  StreamBlock message;
  message.compressed = block.codec == BlockCodecId::kZstd;
  for (const ChunkRecord& stored_chunk : block.records)
    message.chunks.push_back({stored_chunk.name, stored_chunk.length, stored_chunk.salt});
  message.payload = std::move(block.payload);
  SILTFS_RETURN_IF_ERROR(Send(std::move(message)));
  return true;
}

Status ChunkSender::SendDecoded(const Wanted& wanted) {
  const Reference& reference = wanted.reference;
  Location location{kNoSegment, 0, 0};
  if (wanted.place)
    location = {wanted.place->segment, wanted.place->ordinal, wanted.place->block_offset};
  if (collected_.nodes != reference.node || !collecting_.Fits(reference.length) ||
      collecting_.plain_bytes() + reference.length > kPlainBytes)
    SILTFS_RETURN_IF_ERROR(SendCollected());
  // Not while something is written, because the receiver may be slow.
  const ChunkStore::Use use(chunks_);
  SILTFS_ASSIGN_OR_RETURN(const ChunkBytes found,
                          chunks_.GetAt(location, reference.name, reference.length, cursor_));
  collected_.nodes = reference.node;
  StreamChunk chunk{.name = reference.name, .length = reference.length};
  while (chunk.salt < UINT8_MAX &&
         reference.name != (chunk.salt == 0 ? namer_.NameOf(found.bytes)
                                            : namer_.SaltedNameOf(found.bytes, chunk.salt)))
    ++chunk.salt;
  collected_.chunks.push_back(chunk);
  return collecting_.Add({.name = reference.name, .length = reference.length}, found.bytes);
}

Status ChunkSender::SendCollected() {
  if (collecting_.empty()) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(
      EncodedBlock block,
      codec_.Encode(collecting_.Take(), {.codec = BlockCodecId::kZstd, .level = kLevel}));
  StreamBlock message = std::exchange(collected_, {});
  message.compressed = block.codec == BlockCodecId::kZstd;
  message.payload = std::move(block.payload);
  return Send(std::move(message));
}

Status ChunkSender::Send(StreamBlock block) {
  sent_ += block.chunks.size();
  for (const StreamChunk& chunk : block.chunks) plain_bytes_ += chunk.length;
  return out_.Write(std::move(block));
}

}  // namespace siltfs
