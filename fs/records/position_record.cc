#include "fs/records/position_record.h"

#include "fs/records/schema.h"
#include "store/base/coding.h"

namespace siltfs {

std::string PositionRecord::Encode() const {
  Encoder out;
  out.U64(sequence).U32(epoch);
  return out.Take();
}

Result<PositionRecord> PositionRecord::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  PositionRecord record;
  record.sequence = in.U64();
  record.epoch = in.U32();
  if (!in.Done())
    return Status(StatusCode::kCorruption, "the record of the bucket's position is malformed");
  return record;
}

Result<PositionRecord> ReadPosition(const KvSnapshot& snapshot) {
  SILTFS_ASSIGN_OR_RETURN(const auto value, snapshot.Get(kBucketPositionKey));
  if (!value) return PositionRecord{};
  return PositionRecord::Decode(*value);
}

}  // namespace siltfs
