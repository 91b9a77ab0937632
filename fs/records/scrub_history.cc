#include "fs/records/scrub_history.h"

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint8_t kVersion = 1;

Status Malformed() {
  return {StatusCode::kCorruption, "metadata holds a malformed history of scrubs"};
}

}  // namespace

void ScrubHistory::Add(const PastScrub& scrub) {
  scrubs_.push_back(scrub);
  if (scrubs_.size() > kMostScrubs)
    scrubs_.erase(scrubs_.begin(), scrubs_.end() - static_cast<ptrdiff_t>(kMostScrubs));
}

std::string ScrubHistory::Encode() const {
  Encoder out;
  out.U8(kVersion).U16(static_cast<uint16_t>(scrubs_.size()));
  for (const PastScrub& scrub : scrubs_) {
    out.I64(scrub.found.ended_ns)
        .U64(scrub.found.damaged_blocks)
        .U64(scrub.found.damaged_chunks)
        .U64(scrub.found.damaged_footers)
        .U64(scrub.chunks)
        .U64(scrub.bytes);
  }
  return out.Take();
}

Result<ScrubHistory> ScrubHistory::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  if (const uint8_t version = in.U8(); in.ok() && version != kVersion)
    return Status(StatusCode::kNeedsNewer, "metadata holds a history of scrubs in another version");
  const uint16_t count = in.U16();
  if (count > kMostScrubs) return Malformed();
  ScrubHistory history;
  for (uint16_t i = 0; i < count && in.ok(); ++i) {
    PastScrub scrub;
    scrub.found.ended_ns = in.I64();
    scrub.found.damaged_blocks = in.U64();
    scrub.found.damaged_chunks = in.U64();
    scrub.found.damaged_footers = in.U64();
    scrub.chunks = in.U64();
    scrub.bytes = in.U64();
    history.scrubs_.push_back(scrub);
  }
  if (!in.Done()) return Malformed();
  return history;
}

}  // namespace siltfs
