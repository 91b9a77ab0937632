#include "fs/shipping/reader_claim.h"

#include <utility>

namespace siltfs {
namespace {

// The share of the age after which a sign of life is due, and after which it is too late. The rest
// is for requests that take long, and for clocks of different speeds.
constexpr int64_t kSigns = 4;
constexpr int64_t kLateNumerator = 3;

}  // namespace

Status ReaderClaim::Put(uint64_t reached, const PutCondition& condition) {
  const int64_t began = clock_();
  ReaderObject next = reader_;
  ++next.beat;
  next.reached = reached;
  const std::string bytes = EncodeReader(next);
  reader_.beat = next.beat;  // also if the answer is lost
  auto put = objects_.Put(ReaderKey(reader_.id), AsBytes(bytes), condition);
  SILTFS_RETURN_IF_ERROR(put.status());
  version_ = std::move(put).value();
  reader_.reached = reached;
  last_ns_ = began;
  return Status::Ok();
}

Status ReaderClaim::Begin() {
  SILTFS_RETURN_IF_ERROR(Put(0, PutCondition::Always()));
  given_up_ = false;
  return Status::Ok();
}

Status ReaderClaim::Keep(uint64_t reached) {
  if (!lapsed()) {
    Status kept = Put(reached, PutCondition::IfVersion(version_));
    if (!kept.Is(StatusCode::kStale) && !kept.Is(StatusCode::kNotFound)) return kept;
    kept.IgnoreError("the writer has removed the object");
  }
  given_up_ = true;
  return Status(StatusCode::kStale,
                "the writer has not heard of this mount for too long, and may have deleted what it "
                "shows")
      .At(objects_.name());
}

bool ReaderClaim::IsDue() const { return clock_() - last_ns_ >= reader_.age.count() / kSigns; }

bool ReaderClaim::lapsed() const {
  return given_up_ || clock_() - last_ns_ > reader_.age.count() / kSigns * kLateNumerator;
}

Status ReaderClaim::End() {
  given_up_ = true;
  return objects_.Remove(ReaderKey(reader_.id));
}

}  // namespace siltfs
