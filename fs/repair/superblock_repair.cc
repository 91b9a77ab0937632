#include "fs/repair/superblock_repair.h"

#include <algorithm>
#include <array>

#include "store/env/files.h"
#include "store/segment/segment_format.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

// Counts the segments that belong to each of the two stores.
Result<std::array<uint64_t, 2>> CountSegments(SegmentStore& segments,
                                              const std::array<StoreUuid, 2>& uuids) {
  std::array<uint64_t, 2> counts{};
  SILTFS_ASSIGN_OR_RETURN(const SegmentListing listing, segments.List());
  for (const SegmentId id : listing.ids) {
    const auto file = segments.Open(id);
    if (!file.ok()) continue;
    Bytes bytes(kSegmentHeaderSize);
    if (!ReadExactly(**file, 0, bytes).ok()) continue;
    const auto header = DecodeSegmentHeader(bytes);
    if (!header.ok()) continue;
    for (size_t i = 0; i < uuids.size(); ++i) {
      if (header->identity.store == uuids[i]) ++counts[i];
    }
  }
  return counts;
}

}  // namespace

Status RepairSuperblockCopies(Env& env, const std::string& store) {
  SILTFS_ASSIGN_OR_RETURN(SuperblockState state, ReadSuperblock(env, store));
  state.superblock.last_commit = std::max(state.superblock.last_commit, state.highest_commit);
  return WriteSuperblock(env, store, state.superblock);
}

Result<bool> ResolveSuperblockMismatch(Env& env, const std::string& store, SegmentStore& segments) {
  SILTFS_ASSIGN_OR_RETURN(const Superblock first, ReadSuperblockCopy(env, store, 0));
  SILTFS_ASSIGN_OR_RETURN(const Superblock second, ReadSuperblockCopy(env, store, 1));
  if (first.uuid == second.uuid) return false;
  SILTFS_ASSIGN_OR_RETURN(const auto counts, CountSegments(segments, {first.uuid, second.uuid}));
  if ((counts[0] == 0) == (counts[1] == 0)) return false;
  Superblock right = counts[0] > 0 ? first : second;
  right.generation = std::max(first.generation, second.generation);
  SILTFS_RETURN_IF_ERROR(WriteSuperblock(env, store, right));
  return true;
}

}  // namespace siltfs
