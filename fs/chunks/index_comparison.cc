#include "fs/chunks/index_comparison.h"

#include <string>

#include "fs/chunks/entry_check.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

// A mount compares at most this many chunks with the index before it is ready; this takes some
// seconds.
constexpr uint64_t kMostComparedAtOpen = 1u << 20;

// Makes entries for chunks of these segments for which the index leads nowhere. Returns the damaged
// segments, and the segments with chunks to which the index does not lead. The entries are durable
// on return.
Result<std::vector<SegmentId>> CompareWithIndex(ChunkParts& parts,
                                                const std::vector<SegmentId>& ids) {
  EntryCheck check(
      parts.index, *parts.segments, *parts.reader, *parts.pipeline,
      [&parts](SegmentId id) { return parts.gone->Contains(id); },
      [](uint64_t) { return Status::Ok(); },
      // Victims keep their notes, and the key of notes is not written, until the entries are
      // durable.
      [](SegmentId) { return Status::Ok(); });
  std::vector<SegmentId> others;
  for (const SegmentId id : ids) {
    SILTFS_ASSIGN_OR_RETURN(const bool leads_here, check.Check(id));
    if (!leads_here || parts.damage.HasAnyOf(id)) others.push_back(id);
  }
  // The new entries must be durable before the notes are written. From then on the index must lead
  // to all chunks of segments without a note.
  if (check.made() > 0) {
    SILTFS_RETURN_IF_ERROR(parts.pipeline->EndSequence().status());
    SILTFS_RETURN_IF_ERROR(parts.index.Flush());
  }
  return others;
}

}  // namespace

Status BeginNotes(ChunkParts& parts, const SegmentRecords& records) {
  std::vector<SegmentId> ids;
  uint64_t chunks = 0;
  for (const auto& [id, record] : records) {
    if (record.chunks == 0) continue;
    ids.push_back(id);
    chunks += record.chunks;
  }
  if (chunks <= kMostComparedAtOpen) {
    SILTFS_ASSIGN_OR_RETURN(ids, CompareWithIndex(parts, ids));
  }
  SILTFS_RETURN_IF_ERROR(parts.secondary.Note(ids));
  return parts.options.metadata->WriteThrough({{std::string(kNotesKey), std::string()}});
}

Status CompareVictims(ChunkParts& parts, const std::vector<SegmentId>& victims, bool crashed) {
  if (crashed) SILTFS_RETURN_IF_ERROR(CompareWithIndex(parts, victims).status());
  return parts.secondary.Compared(victims);
}

}  // namespace siltfs
