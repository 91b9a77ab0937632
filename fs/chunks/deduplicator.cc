#include "fs/chunks/deduplicator.h"

#include <utility>

namespace siltfs {
namespace {

constexpr int kMaxSalt = 255;

}  // namespace

Deduplicator::Deduplicator(const Dependencies& dependencies, Options options)
    : deps_(dependencies),
      options_(std::move(options)),
      tag_key_(options_.tag_secret),
      collisions_(options_.sha1_collisions) {}

Result<ChunkNamer> Deduplicator::TakeNamer() {
  {
    MutexLock lock(mutex_);
    if (!free_namers_.empty()) {
      ChunkNamer namer = std::move(free_namers_.back());
      free_namers_.pop_back();
      return namer;
    }
  }
  return ChunkNamer::Create(options_.uuid.bytes);
}

void Deduplicator::ReturnNamer(ChunkNamer namer) {
  MutexLock lock(mutex_);
  free_namers_.push_back(std::move(namer));
}

Status Deduplicator::Put(SegmentKind kind, std::span<const ByteView> chunks,
                         std::span<ChunkName> names) {
  SILTFS_ASSIGN_OR_RETURN(ChunkNamer namer, TakeNamer());
  Status status = PutAll(kind, chunks, names, namer);
  ReturnNamer(std::move(namer));
  return status;
}

Status Deduplicator::PutAll(SegmentKind kind, std::span<const ByteView> chunks,
                            std::span<ChunkName> names, ChunkNamer& namer) {
  std::vector<ChunkName> plain_names(chunks.size());
  namer.NamesOf(chunks, plain_names);
  std::vector<Candidate> candidates(chunks.size());
  for (size_t i = 0; i < chunks.size(); ++i) {
    candidates[i].bytes = chunks[i];
    candidates[i].record = {plain_names[i], tag_key_.TagOf(chunks[i]),
                            static_cast<uint32_t>(chunks[i].size()), 0};
  }
  uint64_t in_memory = 0;
  SILTFS_RETURN_IF_ERROR(LookAll(candidates, in_memory));
  if (kind == SegmentKind::kData) CountPut(chunks, in_memory);
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (candidates[i].known != Known::kDuplicate) {
      SILTFS_RETURN_IF_ERROR(PutNew(kind, candidates[i], namer));
    }
    names[i] = candidates[i].record.name;
  }
  return Status::Ok();
}

void Deduplicator::CountPut(std::span<const ByteView> chunks, uint64_t in_memory) {
  uint64_t bytes = 0;
  for (const ByteView chunk : chunks) bytes += chunk.size();
  deps_.traffic.put_chunks.Add(chunks.size());
  deps_.traffic.put_bytes.Add(bytes);
  deps_.traffic.put_chunks_found_in_memory.Add(in_memory);
}

Status Deduplicator::PutNew(SegmentKind kind, Candidate& candidate, ChunkNamer& namer) {
  bool collided = false;
  for (int salt = 0; salt <= kMaxSalt; ++salt) {
    if (salt > 0) {
      candidate.record.salt = static_cast<uint8_t>(salt);
      candidate.record.name = namer.SaltedNameOf(candidate.bytes, candidate.record.salt);
      SILTFS_RETURN_IF_ERROR(Look(candidate));
    }
    SILTFS_ASSIGN_OR_RETURN(const bool added, Add(kind, candidate));
    if (added && collided) ++collisions_;
    if (added || candidate.known == Known::kDuplicate) return Status::Ok();
    if (candidate.known == Known::kCollision) collided = true;
  }
  return Status(StatusCode::kIoError, "a chunk collides under every salt").At(options_.store);
}

Result<bool> Deduplicator::Add(SegmentKind kind, Candidate& candidate) {
  while (candidate.known == Known::kNew) {
    SILTFS_ASSIGN_OR_RETURN(
        const BlockPipeline::Outcome outcome,
        deps_.pipeline.Add(kind, candidate.record, candidate.bytes, candidate.looked_at));
    switch (outcome) {
      case BlockPipeline::Outcome::kAdded:
        if (kind == SegmentKind::kData) added_bytes_ += candidate.bytes.size();
        return true;
      case BlockPipeline::Outcome::kDuplicate:
        candidate.known = Known::kDuplicate;
        break;
      case BlockPipeline::Outcome::kCollision:
        candidate.known = Known::kCollision;
        break;
      case BlockPipeline::Outcome::kLookAgain:
        SILTFS_RETURN_IF_ERROR(Look(candidate));
        break;
    }
  }
  return false;
}

Status Deduplicator::Look(Candidate& candidate) {
  candidate.looked_at = deps_.pipeline.Now();
  candidate.known = LookInMemory(candidate.record);
  if (candidate.known != Known::kNew) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const std::optional<Location> location,
                          deps_.index.Get(candidate.record.name));
  SILTFS_ASSIGN_OR_RETURN(candidate.known, Confirm(location, candidate.record));
  return Status::Ok();
}

// Looks up the first unknown chunk alone. If this chunk is a duplicate, its look-up has loaded
// footer entries, which may include the next chunks. So LookAll first looks up the other chunks in
// the footer cache, and then repeats the step with the first chunk that is still unknown. When such
// a chunk is not a duplicate, all remaining chunks are looked up in the index together.
Status Deduplicator::LookAll(std::span<Candidate> candidates, uint64_t& in_memory) {
  std::vector<Candidate*> unknown;
  for (Candidate& candidate : candidates) unknown.push_back(&candidate);
  auto keep_unknown = [&] {
    const uint64_t now = deps_.pipeline.Now();
    std::erase_if(unknown, [&](Candidate* candidate) {
      candidate->looked_at = now;
      candidate->known = LookInMemory(candidate->record);
      in_memory += candidate->known == Known::kDuplicate ? 1 : 0;
      return candidate->known != Known::kNew;
    });
  };
  keep_unknown();
  while (unknown.size() > 1) {
    Candidate& first = *unknown.front();
    SILTFS_RETURN_IF_ERROR(Look(first));
    unknown.erase(unknown.begin());
    if (first.known != Known::kDuplicate) break;
    keep_unknown();
  }
  std::vector<ChunkName> names;
  for (const Candidate* candidate : unknown) names.push_back(candidate->record.name);
  std::vector<std::optional<Location>> locations(unknown.size());
  SILTFS_RETURN_IF_ERROR(deps_.index.Get(names, locations));
  for (size_t i = 0; i < unknown.size(); ++i) {
    SILTFS_ASSIGN_OR_RETURN(unknown[i]->known, Confirm(locations[i], unknown[i]->record));
  }
  return Status::Ok();
}

Deduplicator::Known Deduplicator::LookInMemory(const ChunkRecord& record) {
  if (const auto pending = deps_.pipeline.FindPending(record.name))
    return *pending == record.tag ? Known::kDuplicate : Known::kCollision;
  const auto hit = deps_.windows.Find(record.name, record.tag);
  // In segments with secondary copies, the index may lead to another copy than the footer cache, or
  // to none. A segment with damage does not decide either: it may hold a chunk twice, and the index
  // may lead to the damaged copy.
  const bool decides = hit && !deps_.secondary.Contains(hit->segment) &&
                       !deps_.victims.Contains(hit->segment) &&
                       !deps_.gone.Contains(hit->segment) && !deps_.damage.HasAnyOf(hit->segment) &&
                       !MayHaveLostBase(hit->segment);
  return decides ? Known::kDuplicate : Known::kNew;
}

Result<Deduplicator::Known> Deduplicator::Confirm(const std::optional<Location>& location,
                                                  const ChunkRecord& record) {
  if (location && !deps_.gone.Contains(location->segment)) {
    SILTFS_ASSIGN_OR_RETURN(const Known known, ConfirmAt(*location, record));
    if (known != Known::kNew) return known;
  }
  // The index may have lost the entry of a damaged chunk, so search the damage list, too. Bytes
  // with another tag must not get the name of the damaged chunk: they count as a collision. Bytes
  // with the same tag are stored again, so note the segments with the damaged chunk.
  switch (deps_.damage.Find(record.name.Prefix64(), record.tag)) {
    case DamageList::Match::kNone:
      return Known::kNew;
    case DamageList::Match::kOther:
      return Known::kCollision;
    case DamageList::Match::kSame:
      break;
  }
  SILTFS_RETURN_IF_ERROR(
      deps_.secondary.Note(deps_.damage.SegmentsWith(record.name.Prefix64(), record.tag)));
  return Known::kNew;
}

// A footer entry (or an open segment's entry) with this name prefix and tag is sufficient proof. An
// entry with another prefix or tag may be damaged. Then the chunk table in the block decides.
Result<Deduplicator::Known> Deduplicator::ConfirmAt(const Location& location,
                                                    const ChunkRecord& record) {
  const auto [segment, ordinal] = std::pair(location.segment, location.ordinal);
  if (deps_.damage.Contains(segment, ordinal)) return ConfirmDamaged(location);
  // If this chunk lies in a victim, it is stored again. Another chunk of this name in a victim may
  // stay live, so it keeps the name.
  const Known same = deps_.victims.Contains(segment) ? Known::kNew : Known::kDuplicate;
  auto chunk = deps_.windows.At(segment, ordinal);
  if (!chunk) {
    deps_.reader.LoadWindow(segment, ordinal);
    chunk = deps_.windows.At(segment, ordinal);
  }
  const bool may_have_lost_base = MayHaveLostBase(segment);
  if (!may_have_lost_base && chunk && chunk->name_prefix == record.name.Prefix64() &&
      chunk->tag == record.tag) {
    return same;
  }
  auto there =
      may_have_lost_base ? deps_.reader.ReadableAt(location) : deps_.reader.RecordAt(location);
  if (!there.ok()) {  // if the chunk is damaged, the reader has put it on the damage list
    there.status().IgnoreError("an unreadable chunk keeps its name");
    if (!deps_.damage.Contains(segment, ordinal)) return Known::kTaken;
    return ConfirmDamaged(location);
  }
  if (!*there || (*there)->name != record.name) return Known::kNew;
  return (*there)->tag == record.tag ? same : Known::kCollision;
}

bool Deduplicator::MayHaveLostBase(SegmentId segment) const {
  return !deps_.damage.empty() && deps_.bases.Contains(segment);
}

// If the name and tag of the damaged chunk are known, the result is kNew. Then Confirm ensures that
// only the bytes of the damaged chunk get its name. If name and tag are unknown, the result is
// kTaken, so that no bytes get the name.
Result<Deduplicator::Known> Deduplicator::ConfirmDamaged(const Location& location) const {
  const auto chunk = deps_.damage.ChunkAt(location.segment, location.ordinal);
  if (chunk && !chunk->known()) return Known::kTaken;
  SILTFS_RETURN_IF_ERROR(deps_.secondary.Note(location.segment));
  return Known::kNew;
}

}  // namespace siltfs
