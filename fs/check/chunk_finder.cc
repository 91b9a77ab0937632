#include "fs/check/chunk_finder.h"

#include <utility>

namespace siltfs {
namespace {

constexpr size_t kOpenFiles = 64;
constexpr size_t kHeadBytes = 8u << 20;

}  // namespace

ChunkFinder::ChunkFinder(CheckContext& context)
    : context_(context), readers_(kOpenFiles), heads_(kHeadBytes) {}

Result<std::shared_ptr<SegmentReader>> ChunkFinder::Open(SegmentId segment) {
  if (auto reader = readers_.Get(segment)) return reader;
  SILTFS_ASSIGN_OR_RETURN(auto opened, SegmentReader::Open(context_.env, context_.store(),
                                                           context_.Identity(segment), codec_));
  std::shared_ptr<SegmentReader> reader = std::move(opened);
  readers_.Put(segment, reader, 1);
  return reader;
}

Result<ChunkFinder::HeadPtr> ChunkFinder::ReadHead(SegmentId segment, uint32_t offset) {
  const uint64_t key = uint64_t{segment} << 32 | offset;
  if (auto head = heads_.Get(key)) return head;
  SILTFS_ASSIGN_OR_RETURN(auto reader, Open(segment));
  SILTFS_ASSIGN_OR_RETURN(BlockHead read, reader->ReadBlockHead(offset));
  const size_t cost = sizeof(Head) + read.records.size() * sizeof(ChunkRecord);
  auto head = std::make_shared<const Head>(Head{offset, std::move(read)});
  heads_.Put(key, head, cost);
  return head;
}

Result<ChunkFinder::HeadPtr> ChunkFinder::HeadOf(const Location& location) {
  auto hinted = ReadHead(location.segment, location.block_offset);
  if (hinted.ok() && (*hinted)->head.Covers(location.ordinal)) return hinted;
  if (!hinted.ok() && hinted.status().Is(StatusCode::kNotFound)) return HeadPtr();  // nor a segment
  // The footer says it for sure.
  SILTFS_ASSIGN_OR_RETURN(auto reader, Open(location.segment));
  auto place = reader->FindBlock(location.ordinal);
  if (!place.ok() || !*place) {
    if (place.ok() || place.status().Is(StatusCode::kInvalidArgument)) {
      if (hinted.ok()) return HeadPtr();
      return std::move(hinted).status();
    }
    return std::move(place).status();
  }
  SILTFS_ASSIGN_OR_RETURN(HeadPtr head, ReadHead(location.segment, (*place)->block_offset));
  if (head->head.Covers(location.ordinal)) return head;
  if (hinted.ok()) return HeadPtr();
  return std::move(hinted).status();
}

Result<std::optional<ChunkRecord>> ChunkFinder::RecordAt(const Location& location) {
  SILTFS_ASSIGN_OR_RETURN(const HeadPtr head, HeadOf(location));
  if (!head) return std::optional<ChunkRecord>();
  return std::optional(head->head.records[location.ordinal - head->head.first_ordinal]);
}

Result<std::shared_ptr<const Bytes>> ChunkFinder::ReadAt(const Location& location) {
  SILTFS_ASSIGN_OR_RETURN(const HeadPtr head, HeadOf(location));
  if (!head) {
    return Status(StatusCode::kNotFound, "there is no such chunk in the segment")
        .At(context_.store());
  }
  SILTFS_ASSIGN_OR_RETURN(auto reader, Open(location.segment));
  SILTFS_ASSIGN_OR_RETURN(const DecodedBlockPtr block, reader->ReadBlock(head->offset));
  const ByteView bytes = block->chunk(location.ordinal - head->head.first_ordinal);
  return std::make_shared<const Bytes>(bytes.begin(), bytes.end());
}

}  // namespace siltfs
