#include "fs/records/damage_record.h"

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr size_t kChunkBytes = 16;

}  // namespace

std::string DamagedBlock::EncodeChunks() const {
  Encoder out;
  for (const DamagedChunk& chunk : chunks) out.U64(chunk.name_prefix).U64(chunk.tag);
  return out.Take();
}

Result<std::vector<DamagedChunk>> DamagedBlock::DecodeChunks(std::string_view value) {
  const size_t count = value.size() / kChunkBytes;
  if (value.size() % kChunkBytes != 0 || count == 0 || count > kMostChunks)
    return Status(StatusCode::kCorruption, "metadata holds a malformed damage record");
  Decoder in(AsBytes(value));
  std::vector<DamagedChunk> chunks(count);
  for (DamagedChunk& chunk : chunks) {
    chunk.name_prefix = in.U64();
    chunk.tag = in.U64();
  }
  return chunks;
}

}  // namespace siltfs
