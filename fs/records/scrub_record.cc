#include "fs/records/scrub_record.h"

#include "store/base/coding.h"

namespace siltfs {

std::string ScrubRecord::Encode() const {
  return Encoder()
      .U32(reached)
      .U64(segments)
      .U64(blocks)
      .U64(chunks)
      .U64(bytes)
      .U64(damaged_blocks)
      .U64(damaged_chunks)
      .U64(damaged_footers)
      .Take();
}

Result<ScrubRecord> ScrubRecord::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  ScrubRecord record;
  record.reached = in.U32();
  record.segments = in.U64();
  record.blocks = in.U64();
  record.chunks = in.U64();
  record.bytes = in.U64();
  record.damaged_blocks = in.U64();
  record.damaged_chunks = in.U64();
  record.damaged_footers = in.U64();
  if (!in.Done()) return Status(StatusCode::kCorruption, "metadata holds a malformed scrub record");
  return record;
}

}  // namespace siltfs
