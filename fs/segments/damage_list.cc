#include "fs/segments/damage_list.h"

#include <algorithm>

#include "fs/records/schema.h"

namespace siltfs {

DamageList::DamageList(std::span<const DamagedBlock> known) {
  MutexLock lock(mutex_);
  for (const DamagedBlock& block : known) AddLocked(block);
  changes_.clear();  // metadata has them
}

DamageList::Blocks::const_iterator DamageList::At(SegmentId segment, uint32_t ordinal) const {
  auto block = blocks_.upper_bound({segment, ordinal});
  if (block == blocks_.begin()) return blocks_.end();
  --block;
  const auto& [place, chunks] = *block;
  const bool holds = place.first == segment && ordinal - place.second < chunks.size();
  return holds ? block : blocks_.end();
}

bool DamageList::Contains(SegmentId segment, uint32_t ordinal) const {
  if (empty()) return false;
  MutexLock lock(mutex_);
  return At(segment, ordinal) != blocks_.end();
}

bool DamageList::HasAnyOf(SegmentId segment) const {
  if (empty()) return false;
  MutexLock lock(mutex_);
  const auto block = blocks_.lower_bound({segment, 0});
  return block != blocks_.end() && block->first.first == segment;
}

DamageList::Match DamageList::Find(uint64_t name_prefix, ChunkTag tag) const {
  if (empty()) return Match::kNone;
  MutexLock lock(mutex_);
  const auto known = tags_.lower_bound({name_prefix, 0});
  if (known == tags_.end() || known->first != name_prefix) return Match::kNone;
  return tags_.contains({name_prefix, tag}) ? Match::kSame : Match::kOther;
}

std::vector<SegmentId> DamageList::SegmentsWith(uint64_t name_prefix, ChunkTag tag) const {
  std::vector<SegmentId> segments;
  if (Find(name_prefix, tag) != Match::kSame) return segments;
  MutexLock lock(mutex_);
  for (const auto& [place, chunks] : blocks_) {
    if (!segments.empty() && segments.back() == place.first) continue;
    const bool there = std::any_of(chunks.begin(), chunks.end(), [&](const DamagedChunk& chunk) {
      return chunk.name_prefix == name_prefix && chunk.tag == tag;
    });
    if (there) segments.push_back(place.first);
  }
  return segments;
}

std::optional<DamagedChunk> DamageList::ChunkAt(SegmentId segment, uint32_t ordinal) const {
  if (empty()) return std::nullopt;
  MutexLock lock(mutex_);
  const auto block = At(segment, ordinal);
  if (block == blocks_.end()) return std::nullopt;
  return block->second[ordinal - block->first.second];
}

std::vector<DamagedChunk> DamageList::ChunksAround(SegmentId segment, uint32_t ordinal) const {
  if (empty()) return {};
  MutexLock lock(mutex_);
  const auto block = At(segment, ordinal);
  return block == blocks_.end() ? std::vector<DamagedChunk>() : block->second;
}

bool DamageList::Add(const DamagedBlock& block) {
  MutexLock lock(mutex_);
  const bool news = AddLocked(block);
  if (news) ++found_blocks_;
  return news;
}

bool DamageList::AddLocked(const DamagedBlock& block) {
  const size_t before = blocks_.size();
  DamagedBlock stretch{block.segment, block.first_ordinal, {}};
  for (uint32_t ordinal = block.first_ordinal; ordinal < block.end_ordinal(); ++ordinal) {
    const bool listed = At(block.segment, ordinal) != blocks_.end();
    if (!listed && stretch.chunks.size() < DamagedBlock::kMostChunks) {
      stretch.chunks.push_back(block.chunks[ordinal - block.first_ordinal]);
      continue;
    }
    Enter(stretch);
    stretch = {block.segment, ordinal, {}};
    if (!listed) stretch.chunks.push_back(block.chunks[ordinal - block.first_ordinal]);
    if (listed) ++stretch.first_ordinal;
  }
  Enter(stretch);
  return blocks_.size() > before;
}

void DamageList::Enter(const DamagedBlock& block) {
  if (block.chunks.empty()) return;
  if (blocks_.size() >= kMostBlocks || chunks_ + block.chunks.size() > kMostChunks) return;
  for (const DamagedChunk& chunk : block.chunks) {
    if (chunk.known()) tags_.emplace(chunk.name_prefix, chunk.tag);
  }
  chunks_ += block.chunks.size();
  Note({DamageKey(block.segment, block.first_ordinal), block.EncodeChunks()});
  blocks_[{block.segment, block.first_ordinal}] = block.chunks;
}

void DamageList::Erase(Blocks::iterator block) {
  for (const DamagedChunk& chunk : block->second) {
    const auto tag = tags_.find({chunk.name_prefix, chunk.tag});
    if (chunk.known() && tag != tags_.end()) tags_.erase(tag);
  }
  chunks_ -= block->second.size();
  Note({DamageKey(block->first.first, block->first.second), std::nullopt});
  blocks_.erase(block);
}

bool DamageList::Replace(SegmentId segment, std::span<const DamagedBlock> blocks, uint32_t end) {
  MutexLock lock(mutex_);
  const auto is_found = [&](const Blocks::value_type& listed) {
    const auto found = std::lower_bound(blocks.begin(), blocks.end(), listed.first.second,
                                        [](const DamagedBlock& candidate, uint32_t ordinal) {
                                          return candidate.first_ordinal < ordinal;
                                        });
    return found != blocks.end() && found->first_ordinal == listed.first.second &&
           found->chunks == listed.second;
  };
  std::set<uint32_t> known;  // ordinals that were listed before
  for (auto at = blocks_.lower_bound({segment, 0});
       at != blocks_.end() && at->first.first == segment && at->first.second < end;) {
    const auto listed = at++;
    if (!blocks.empty()) {
      for (size_t i = 0; i < listed->second.size(); ++i)
        known.insert(listed->first.second + static_cast<uint32_t>(i));
    }
    if (!is_found(*listed)) Erase(listed);
  }
  bool news = false;
  for (const DamagedBlock& block : blocks) {
    if (!AddLocked(block)) continue;
    news = true;
    if (HasNewChunk(block, known)) ++found_blocks_;
  }
  return news;
}

// A block may be listed again with other boundaries. That is no new damage.
bool DamageList::HasNewChunk(const DamagedBlock& block,
                             const std::set<uint32_t>& known_ordinals) const {
  for (uint32_t ordinal = block.first_ordinal; ordinal < block.end_ordinal(); ++ordinal) {
    if (!known_ordinals.contains(ordinal)) return true;
  }
  return false;
}

void DamageList::Forget(SegmentId segment) {
  if (empty()) return;
  Replace(segment, {}, UINT32_MAX);
}

DamageList::Totals DamageList::totals() const {
  MutexLock lock(mutex_);
  return {blocks_.size(), chunks_, found_blocks_};
}

std::vector<DamagedBlock> DamageList::All() const {
  MutexLock lock(mutex_);
  std::vector<DamagedBlock> all;
  for (const auto& [place, chunks] : blocks_) all.push_back({place.first, place.second, chunks});
  return all;
}

std::vector<Mutation> DamageList::Changes() const {
  MutexLock lock(mutex_);
  return changes_;
}

void DamageList::TellChanges(std::vector<Mutation>& mutations) {
  MutexLock lock(mutex_);
  mutations.insert(mutations.end(), changes_.begin(), changes_.end());
  reported_ = changes_.size();
}

void DamageList::CommitDone() {
  MutexLock lock(mutex_);
  changes_.erase(changes_.begin(), changes_.begin() + static_cast<ptrdiff_t>(reported_));
  reported_ = 0;
}

Status WriteDamage(DamageList& list, KvStore& metadata) {
  std::vector<Mutation> changes;
  list.TellChanges(changes);
  if (changes.empty()) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(metadata.Write(changes));
  list.CommitDone();
  return Status::Ok();
}

}  // namespace siltfs
