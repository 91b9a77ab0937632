#include "fs/records/garbage_record.h"

#include "store/base/coding.h"

namespace siltfs {

std::string GarbageRecord::Encode() const {
  return Encoder()
      .U64(released_bytes)
      .U64(dead_bytes)
      .U64(dead_chunks)
      .U64(dead_plain_bytes)
      .Take();
}

Result<GarbageRecord> GarbageRecord::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  GarbageRecord record;
  record.released_bytes = in.U64();
  record.dead_bytes = in.U64();
  record.dead_chunks = in.U64();
  record.dead_plain_bytes = in.U64();
  if (!in.Done())
    return Status(StatusCode::kCorruption, "metadata holds a malformed garbage record");
  return record;
}

}  // namespace siltfs
