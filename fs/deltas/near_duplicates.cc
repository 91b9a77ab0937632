#include "fs/deltas/near_duplicates.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace siltfs {
namespace {

// Shorter chunks save too little for the lookups and reads that they cost.
constexpr uint32_t kLeastLength = 512;
// Candidates of a chunk that are read. More of them rarely give a smaller delta.
constexpr size_t kMostCandidates = 2;

}  // namespace

struct NearDuplicates::Chunk {
  size_t position = 0;
  bool stays_whole = false;
  bool offered = false;
  std::vector<uint64_t> features;
};

NearDuplicates::NearDuplicates(Dependencies dependencies, Options options)
    : index_(dependencies.index),
      segments_(dependencies.segments),
      bases_(dependencies.bases),
      options_(std::move(options)),
      resemblance_(std::move(dependencies.resemblance)),
      blocks_(dependencies.blocks),
      lsh_(std::move(dependencies.lsh)),
      verifier_(std::move(dependencies.verifier)) {
  MutexLock lock(mutex_);
  Publish();
}

NearDuplicates::~NearDuplicates() = default;

Status NearDuplicates::Choose(const DecodedBlock& block, const Offer& offer) {
  MutexLock lock(mutex_);
  if (ended_) return Status::Ok();
  Status refused;  // a failure of `offer`, which ends the rewrite
  const Status chosen = ChooseLocked(block, offer, refused);
  Publish();
  if (!refused.ok()) return refused;
  // A full disk may have room again later. Until then chunks are not found as bases.
  if (!chosen.ok() && !chosen.Is(StatusCode::kNoSpace)) GiveUp(chosen);
  chosen.IgnoreError("without bases, the segment is recompressed as in other stores");
  return Status::Ok();
}

Status NearDuplicates::ChooseLocked(const DecodedBlock& block, const Offer& offer,
                                    Status& failure) {
  SILTFS_RETURN_IF_ERROR(LoadKeptWhole());
  std::vector<Chunk> chunks = Examine(block);
  SILTFS_ASSIGN_OR_RETURN(const std::vector<Base> bases, FindBases(block, chunks));
  auto chunk = chunks.begin();
  for (const Base& base : bases) {
    while (chunk->position != base.position) ++chunk;
    // An earlier chunk of this block may just have got this chunk as its base.
    if (kept_whole_.MayHave(block.records()[base.position].name)) continue;
    if (kept_whole_.full())
      return {StatusCode::kOutOfMemory, "the store has too many bases to know them in memory"};
    // The block was mostly decoded a moment ago, and is cached. Holding the blocks of all bases
    // would take memory without a bound.
    const DecodedBlockPtr block_of_base = BlockOf(base.location);
    if (block_of_base == nullptr) continue;
    const size_t in_block = base.location.ordinal - block_of_base->head().first_ordinal;
    if (block_of_base->records()[in_block] != base.record) continue;
    const ByteView bytes = block_of_base->chunk(in_block);
    if (verifier_.Verify(base.record, bytes) != ChunkVerifier::Verdict::kRight) continue;
    kept_whole_.Add(base.record.name);
    chunk->offered = true;
    ++stats_.offered;
    failure = offer(base.position, {base.record.name, base.record.tag, base.record.length}, bytes);
    SILTFS_RETURN_IF_ERROR(failure);
  }
  const BlockHead& head = block.head();
  for (const Chunk& added : chunks) {
    if (added.offered) continue;
    const auto ordinal = head.first_ordinal + static_cast<uint32_t>(added.position);
    SILTFS_RETURN_IF_ERROR(
        lsh_->Add(added.features, {.segment = head.segment, .ordinal = ordinal}));
  }
  return Status::Ok();
}

Status NearDuplicates::LoadKeptWhole() {
  if (loaded_) return Status::Ok();
  BaseNames names;
  const auto add = [&names](const BaseRef& base) {
    names.Add(base.name);
    return Status::Ok();
  };
  for (const SegmentId id : bases_.All()) SILTFS_RETURN_IF_ERROR(ForEachBase(segments_, id, add));
  kept_whole_ = std::move(names);
  loaded_ = true;
  return Status::Ok();
}

// The chunks of the block that have super-features.
std::vector<NearDuplicates::Chunk> NearDuplicates::Examine(const DecodedBlock& block) {
  std::vector<Chunk> chunks;
  const bool secondary = options_.has_secondary && options_.has_secondary(block.head().segment);
  for (size_t i = 0; i < block.chunk_count(); ++i) {
    const ChunkRecord& record = block.records()[i];
    // Salted chunks are rare, and the name of a base must be the SHA-1 of its bytes.
    if (record.length < kLeastLength || record.salt != 0 || block.missing(i) != nullptr) continue;
    Chunk chunk{.position = i,
                .stays_whole = secondary || kept_whole_.MayHave(record.name),
                .features = std::vector<uint64_t>(lsh_->shape().tables)};
    if (!resemblance_.FeaturesOf(block.chunk(i), chunk.features)) continue;
    chunks.push_back(std::move(chunk));
  }
  stats_.examined += chunks.size();
  return chunks;
}

// Bases for the chunks, in the order of the chunks. Not verified by hash yet.
Result<std::vector<NearDuplicates::Base>> NearDuplicates::FindBases(
    const DecodedBlock& block, const std::vector<Chunk>& chunks) {
  std::vector<uint64_t> features;
  for (const Chunk& chunk : chunks)
    features.insert(features.end(), chunk.features.begin(), chunk.features.end());
  std::vector<std::vector<SliceLshCandidate>> candidates;
  SILTFS_RETURN_IF_ERROR(lsh_->Find(features, candidates));
  std::vector<Base> bases;
  for (size_t i = 0; i < chunks.size(); ++i) {
    stats_.candidates += candidates[i].size();
    if (chunks[i].stays_whole) continue;
    size_t read = 0;
    for (const SliceLshCandidate& candidate : candidates[i]) {
      if (read == kMostCandidates) break;
      auto base = ReadCandidate(candidate, block.head().segment);
      if (!base || base->record.name == block.records()[chunks[i].position].name) continue;
      base->position = chunks[i].position;
      bases.push_back(*std::move(base));
      ++read;
    }
  }
  std::vector<ChunkName> names;
  names.reserve(bases.size());
  for (const Base& base : bases) names.push_back(base.record.name);
  std::vector<std::optional<Location>> known(bases.size());
  SILTFS_RETURN_IF_ERROR(index_.Get(names, known));
  std::vector<Base> sure;
  for (size_t i = 0; i < bases.size(); ++i) {
    const bool leads_here = known[i] && known[i]->segment == bases[i].location.segment &&
                            known[i]->ordinal == bases[i].location.ordinal;
    if (leads_here) sure.push_back(std::move(bases[i]));
  }
  return sure;
}

// Nothing if the candidate is gone, damaged, salted, or stored as a delta, or if its segment is
// neither in its final form nor the one that is being rewritten.
std::optional<NearDuplicates::Base> NearDuplicates::ReadCandidate(
    const SliceLshCandidate& candidate, SegmentId rewritten) {
  const SliceLshPlace& place = candidate.place;
  if (options_.is_excluded && options_.is_excluded(place.segment)) return std::nullopt;
  if (place.segment != rewritten && segments_.FileOf(place.segment) != SegmentFile::kRecompressed)
    return std::nullopt;
  Base base;
  base.location = {place.segment, place.ordinal, 0};
  const DecodedBlockPtr block = BlockOf(base.location);
  if (block == nullptr) return std::nullopt;
  base.record = block->records()[place.ordinal - block->head().first_ordinal];
  return base.record.salt == 0 ? std::optional(base) : std::nullopt;
}

DecodedBlockPtr NearDuplicates::BlockOf(const Location& location) {
  Status hint_failure;
  auto at = blocks_.BlockAt(location, /*offset_known=*/false, hint_failure);
  hint_failure.IgnoreError("the segment has no such ordinal");
  if (!at.ok() || !at->block) {
    at.status().IgnoreError("the candidate is skipped");
    return nullptr;
  }
  const bool whole =
      at->block->missing(location.ordinal - at->block->head().first_ordinal) == nullptr;
  return whole ? std::move(at->block) : nullptr;
}

void NearDuplicates::GiveUp(const Status& why) {
  ended_ = true;
  if (!options_.report) return;
  options_.report(fmt::format("no more deltas are made until the next mount: {}", why.ToString()));
}

Status NearDuplicates::Close() {
  MutexLock lock(mutex_);
  ended_ = true;
  return lsh_->Close();
}

void NearDuplicates::Publish() {
  stats_.lsh = lsh_->stats();
  stats_.memory_bytes = kept_whole_.memory_bytes();
  MutexLock lock(published_mutex_);
  published_ = stats_;
}

NearDuplicateStats NearDuplicates::stats() const {
  MutexLock lock(published_mutex_);
  return published_;
}

}  // namespace siltfs
