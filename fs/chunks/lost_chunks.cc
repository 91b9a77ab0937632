#include "fs/chunks/lost_chunks.h"

#include <algorithm>

namespace siltfs {
namespace {

// Only in crafted stores do more names than this have the same prefix. Comparing all of them would
// take too long, so LiesElsewhere returns false for them.
constexpr size_t kMostNamesAlike = 64;

}  // namespace

LostChunks::LostChunks(const DamageList& damage, std::span<const SegmentId> segments)
    : damage_(damage) {
  if (damage.empty()) return;
  for (const DamagedBlock& block : damage.All()) {
    if (std::find(segments.begin(), segments.end(), block.segment) == segments.end()) continue;
    for (const DamagedChunk& chunk : block.chunks) {
      if (chunk.known()) names_.try_emplace(chunk.name_prefix);
    }
  }
}

void LostChunks::Visit(const ChunkName& name) {
  if (names_.empty()) return;
  const auto lost = names_.find(name.Prefix64());
  if (lost == names_.end()) return;
  std::vector<ChunkName>& names = lost->second;
  if (names.size() > kMostNamesAlike) return;
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

bool LostChunks::LieElsewhere(const Chunks& chunks, ChunkIndex& index, ChunkReader& reader,
                              const std::function<bool(const Location&)>& is_bad) const {
  for (uint32_t ordinal = chunks.first; ordinal < chunks.end; ++ordinal) {
    if (!chunks.is_live(ordinal)) continue;
    const auto chunk = damage_.ChunkAt(chunks.segment, ordinal);
    if (!chunk || !chunk->known() ||
        !LiesElsewhere(*chunk, chunks.is_base(ordinal), index, reader, is_bad))
      return false;
  }
  return true;
}

// Two different names practically never have the same prefix. If some do, the damage list does not
// tell which of them is damaged, so the chunks of all these names must lie elsewhere.
bool LostChunks::LiesElsewhere(const DamagedChunk& chunk, bool is_base, ChunkIndex& index,
                               ChunkReader& reader,
                               const std::function<bool(const Location&)>& is_bad) const {
  const auto lost = names_.find(chunk.name_prefix);
  if (lost == names_.end() || lost->second.empty()) return false;
  if (lost->second.size() > kMostNamesAlike) return false;  // names_ has only some of them
  return std::all_of(lost->second.begin(), lost->second.end(), [&](const ChunkName& name) {
    const auto place = index.Get(name);
    if (!place.ok()) {
      place.status().IgnoreError("no place of the chunk is known");
      return false;
    }
    if (!*place || is_bad(**place)) return false;
    const auto record = reader.ReadableAt(**place);
    if (!record.ok()) {
      record.status().IgnoreError("an unreadable copy does not count");
      return false;
    }
    const bool is_it = *record && (*record)->name == name &&
                       (!is_base || reader.bases().StaysWholeAt(**place, **record));
    return is_it && (lost->second.size() > 1 || (*record)->tag == chunk.tag);
  });
}

}  // namespace siltfs
