#include "fs/open/stored_names.h"

#include <utility>

#include "fs/open/segment_check.h"
#include "fs/segments/segment_cache.h"
#include "store/base/lru_cache.h"
#include "store/segment/block_codec.h"
#include "store/segment/segment_store.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

constexpr size_t kOpenFiles = 64;
constexpr size_t kHeadBytes = 8u << 20;

using HeadPtr = std::shared_ptr<const BlockHead>;

// Returns OK if a failure means that there is no such chunk, and not that the device failed.
Status UnlessNotThere(Status status) {
  if (status.Is(StatusCode::kIoError)) return status;
  status.IgnoreError("the chunk is missing or damaged");
  return Status::Ok();
}

}  // namespace

struct StoredNames::Parts {
  Parts(std::unique_ptr<SegmentStore> store, const StoreUuid& uuid)
      : segments(std::move(store)), cache(*segments, uuid, codec, nullptr, kOpenFiles) {}

  Result<HeadPtr> HeadAt(const OpenSegment& segment, uint32_t offset) {
    const uint64_t key = uint64_t{segment.id} << 32 | offset;
    if (auto head = heads.Get(key)) return head;
    SILTFS_ASSIGN_OR_RETURN(BlockHead read, segment.reader->ReadBlockHead(offset));
    const size_t cost = sizeof(BlockHead) + read.records.size() * sizeof(ChunkRecord);
    auto head = std::make_shared<const BlockHead>(std::move(read));
    heads.Put(key, head, cost);
    return HeadPtr(std::move(head));
  }

  // The head of the block that holds the ordinal, read at the hint or at the place in the table.
  Result<HeadPtr> HeadOf(const Location& location) {
    SILTFS_ASSIGN_OR_RETURN(const OpenSegmentPtr segment, cache.Open(location.segment));
    auto hinted = HeadAt(*segment, location.block_offset);
    if (hinted.ok() && (*hinted)->Covers(location.ordinal)) return hinted;
    SILTFS_RETURN_IF_ERROR(UnlessNotThere(std::move(hinted).status()));
    auto found = cache.FindBlock(*segment, location.ordinal);
    if (!found.ok()) {
      SILTFS_RETURN_IF_ERROR(UnlessNotThere(std::move(found).status()));
      found = cache.FindBlockByScan(*segment, location.ordinal);  // the segment is not sealed
    }
    if (!found.ok()) return std::move(found).status();
    if (!*found) return HeadPtr();
    SILTFS_ASSIGN_OR_RETURN(HeadPtr head, HeadAt(*segment, (*found)->place.block_offset));
    return head->Covers(location.ordinal) ? head : HeadPtr();
  }

  const std::unique_ptr<SegmentStore> segments;
  const BlockCodec codec;
  SegmentCache cache;
  LruCache<uint64_t, const BlockHead> heads{kHeadBytes};
};

StoredNames::StoredNames(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
StoredNames::~StoredNames() = default;

Result<std::unique_ptr<StoredNames>> StoredNames::Open(Env& env, const std::string& store,
                                                       SegmentStore* segments) {
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state,
                          ReadSuperblock(env, store, StoreAccess::kReadOnly));
  SILTFS_RETURN_IF_ERROR(CheckPlaceIsKnown(state.superblock, segments, store));
  auto parts =
      std::make_unique<Parts>(OpenSegmentStore(env, store, segments), state.superblock.uuid);
  return std::unique_ptr<StoredNames>(new StoredNames(std::move(parts)));
}

Result<std::optional<ChunkName>> StoredNames::NameAt(const Location& location) {
  auto head = parts_->HeadOf(location);
  if (!head.ok()) {
    SILTFS_RETURN_IF_ERROR(UnlessNotThere(std::move(head).status()));
    return std::optional<ChunkName>();
  }
  if (*head == nullptr) return std::optional<ChunkName>();
  return std::optional((*head)->records[location.ordinal - (*head)->first_ordinal].name);
}

}  // namespace siltfs
