#include "store/segment/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace siltfs {
namespace {

const Status& NotInflated() {
  static const Status status = [] {
    Status made(StatusCode::kNotFound, "the chunk is a delta, and no base was read");
    made.IgnoreError("callers of missing() look at it, if they need the chunk");
    return made;
  }();
  return status;
}

}  // namespace

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

DecodedBlock::DecodedBlock(BlockHead head, Buffer plain) : head_(std::move(head)) {
  chunks_.bytes = std::move(plain);
  chunks_.offsets.reserve(head_.records.size());
  uint32_t offset = 0;
  for (const ChunkRecord& record : head_.records) {
    chunks_.offsets.push_back(offset);
    offset += record.length;
  }
  assert(offset == chunks_.bytes.size());
}

DecodedBlock::DecodedBlock(BlockHead head, Chunks chunks)
    : head_(std::move(head)), chunks_(std::move(chunks)) {
  assert(chunks_.offsets.size() == head_.records.size());
  assert(chunks_.failures.size() == chunks_.bases.size() ||
         chunks_.frame_ends.size() == chunks_.bases.size());
  for (const Status& failure : chunks_.failures)
    failure.IgnoreError("callers of missing() look at it, if they need the chunk");
  for (const uint32_t offset : chunks_.offsets) any_missing_ |= offset == Chunks::kMissing;
}

ByteView DecodedBlock::chunk(size_t i) const {
  const uint32_t offset = chunks_.offsets[i];
  if (offset == Chunks::kMissing) return {};
  return ByteView(chunks_.bytes).subspan(offset, head_.records[i].length);
}

const Status* DecodedBlock::missing(size_t i) const {
  if (chunks_.offsets[i] != Chunks::kMissing) return nullptr;
  if (chunks_.failures.empty()) return &NotInflated();
  return &chunks_.failures[EntryOf(i)];
}

std::optional<DecodedBlock::Delta> DecodedBlock::delta(size_t i) const {
  if (chunks_.frame_ends.empty()) return std::nullopt;
  const size_t entry = EntryOf(i);
  if (entry == chunks_.bases.size()) return std::nullopt;
  const uint32_t begin = entry == 0 ? 0 : chunks_.frame_ends[entry - 1];
  return Delta{&chunks_.bases[entry].base,
               ByteView(chunks_.frames).subspan(begin, chunks_.frame_ends[entry] - begin)};
}

size_t DecodedBlock::EntryOf(size_t i) const {
  const auto entry =
      std::lower_bound(chunks_.bases.begin(), chunks_.bases.end(), i,
                       [](const DeltaBase& delta, size_t at) { return delta.position < at; });
  const bool found = entry != chunks_.bases.end() && entry->position == i;
  return found ? static_cast<size_t>(entry - chunks_.bases.begin()) : chunks_.bases.size();
}

size_t DecodedBlock::memory_bytes() const {
  return sizeof *this + head_.records.capacity() * sizeof(ChunkRecord) +
         chunks_.offsets.capacity() * sizeof(uint32_t) +
         chunks_.bases.capacity() * sizeof(DeltaBase) +
         chunks_.failures.capacity() * sizeof(Status) + chunks_.frames.capacity() +
         chunks_.frame_ends.capacity() * sizeof(uint32_t) + chunks_.bytes.capacity();
}

}  // namespace siltfs
