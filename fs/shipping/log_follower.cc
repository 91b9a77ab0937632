#include "fs/shipping/log_follower.h"

#include <fmt/format.h>

#include <utility>

namespace siltfs {

LogFollower::LogFollower(ObjectStore& objects, const RestoredState& restored)
    : objects_(objects),
      position_{.next = restored.end.next,
                .checksum = restored.end.checksum,
                .sequence = restored.sequence,
                .time_ns = restored.time_ns != 0 ? restored.time_ns : restored.end.time_ns,
                .data_epoch = restored.data_epoch,
                .attachment = restored.attachment} {}

Status LogFollower::Gone() const {
  return Status(
             StatusCode::kStale,
             fmt::format("the commits after number {} are no longer in the log, a checkpoint has "
                         "replaced them",
                         position_.sequence))
      .At(objects_.name());
}

Result<bool> LogFollower::Read(Next& next) {
  const std::string key = LogKey(position_.next);
  const auto bytes = objects_.Get(key, kMostLogObjectBytes, nullptr);
  const bool there = !bytes.status().Is(StatusCode::kNotFound);
  if (there && !bytes.ok()) return bytes.status();
  // The look at the predecessor comes after the read of the object.
  const auto before = objects_.Stat(LogKey(position_.next - 1));
  if (before.status().Is(StatusCode::kNotFound)) return Gone();
  SILTFS_RETURN_IF_ERROR(before.status());
  if (!there) return false;
  auto object = DecodeLogObject(*bytes);
  if (!object.ok()) return std::move(object).status().At(key);
  next.object = std::move(object).value();
  next.checksum = ChecksumOfLogObject(*bytes);
  if (next.object.number == position_.next && next.object.previous == position_.checksum)
    return true;
  return Status(StatusCode::kCorruption, "the log object does not follow the one before it")
      .At(key);
}

Status LogFollower::Take(const Next& next, const Apply& apply) {
  const LogObject& object = next.object;
  if (object.first > position_.sequence + 1) return Gone();
  if (object.last < position_.sequence) {
    return Status(StatusCode::kCorruption, "the log object has older commits than the one before")
        .At(LogKey(object.number));
  }
  std::vector<Mutation> all;
  uint64_t sequence = object.first - 1;
  SILTFS_RETURN_IF_ERROR(ForEachCommit(
      AsBytes(object.commits), [&](uint64_t its, std::vector<Mutation>& mutations) -> Status {
        if (its != ++sequence) {
          return Status(StatusCode::kCorruption, "the commits of the log object have gaps")
              .At(LogKey(object.number));
        }
        if (its <= position_.sequence) return Status::Ok();
        for (Mutation& mutation : mutations) all.push_back(std::move(mutation));
        return Status::Ok();
      }));
  if (sequence != object.last) {
    // A checkpoint has the commits up to its own, and the log does not.
    if (object.kind == LogKind::kCheckpoint && object.last > position_.sequence) return Gone();
    if (object.kind != LogKind::kCheckpoint) {
      return Status(StatusCode::kCorruption, "commits of the log object are missing")
          .At(LogKey(object.number));
    }
  }
  if (!all.empty()) SILTFS_RETURN_IF_ERROR(apply(all));
  position_.next = object.number + 1;
  position_.checksum = next.checksum;
  position_.sequence = object.last;
  position_.time_ns = object.time_ns;
  if (object.kind != LogKind::kEpoch) {
    position_.data_epoch = object.epoch;
    position_.attachment = object.attachment;
  }
  return Status::Ok();
}

Result<size_t> LogFollower::Poll(size_t most, const Apply& apply) {
  for (size_t taken = 0; taken < most; ++taken) {
    Next next;
    SILTFS_ASSIGN_OR_RETURN(const bool there, Read(next));
    if (!there) return taken;
    SILTFS_RETURN_IF_ERROR(Take(next, apply));
  }
  return most;
}

}  // namespace siltfs
