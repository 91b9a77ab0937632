#include "fs/records/last_scrub_record.h"

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint8_t kVersion = 1;

}  // namespace

std::string LastScrubRecord::Encode() const {
  return Encoder()
      .U8(kVersion)
      .I64(ended_ns)
      .U64(damaged_blocks)
      .U64(damaged_chunks)
      .U64(damaged_footers)
      .Take();
}

Result<LastScrubRecord> LastScrubRecord::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  if (const uint8_t version = in.U8(); in.ok() && version != kVersion) {
    return Status(StatusCode::kNeedsNewer,
                  "metadata holds a record of the last scrub in another version");
  }
  LastScrubRecord record;
  record.ended_ns = in.I64();
  record.damaged_blocks = in.U64();
  record.damaged_chunks = in.U64();
  record.damaged_footers = in.U64();
  if (!in.Done()) {
    return Status(StatusCode::kCorruption, "metadata holds a malformed record of the last scrub");
  }
  return record;
}

}  // namespace siltfs
