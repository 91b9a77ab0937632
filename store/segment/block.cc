#include "store/segment/block.h"

#include <fmt/format.h>

#include <cassert>
#include <utility>

namespace siltfs {

bool BlockBuilder::Fits(size_t length) const {
  return chunk_count() < kMaxBlockChunks && length <= kMaxBlockPlainBytes - plain_bytes();
}

Status BlockBuilder::Add(const ChunkRecord& record, ByteView bytes) {
  if (bytes.empty() || bytes.size() != record.length) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("chunk {} has {} bytes, its record says {}", record.name.ToHex(),
                              bytes.size(), record.length));
  }
  if (!Fits(bytes.size())) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("a chunk of {} bytes doesn't fit a block that has {} chunks and {} bytes",
                    bytes.size(), chunk_count(), plain_bytes()));
  }
  block_.plain.insert(block_.plain.end(), bytes.begin(), bytes.end());
  block_.records.push_back(record);
  return Status::Ok();
}

void BlockBuilder::Clear() {
  block_.records.clear();
  block_.plain.clear();
}

PlainBlock BlockBuilder::Take() { return std::exchange(block_, {}); }

DecodedBlock::DecodedBlock(BlockHead head, Buffer plain)
    : head_(std::move(head)), plain_(std::move(plain)) {
  offsets_.reserve(head_.records.size());
  uint32_t offset = 0;
  for (const ChunkRecord& record : head_.records) {
    offsets_.push_back(offset);
    offset += record.length;
  }
  assert(offset == plain_.size());
}

size_t DecodedBlock::memory_bytes() const {
  return sizeof *this + head_.records.capacity() * sizeof(ChunkRecord) +
         offsets_.capacity() * sizeof(uint32_t) + plain_.capacity();
}

}  // namespace siltfs
