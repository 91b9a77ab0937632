#include "fs/shipping/bucket_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fs/shipping/object_keys.h"

namespace siltfs {
Result<LogEnd> ReadLogEnd(ObjectStore& objects) {
  uint64_t newest = 0;
  SILTFS_RETURN_IF_ERROR(
      ForEachObject(objects, std::string(kLogPrefix), [&](const ObjectInfo& info) {
        newest = std::max(newest, ParseLogKey(info.key));
        return Status::Ok();
      }));
  if (newest == 0) return LogEnd{};
  LogEnd end;
  end.next = newest + 1;
  for (uint64_t number = newest;; --number) {
    const auto bytes = objects.Get(LogKey(number), kMostLogObjectBytes, nullptr);
    const bool gone = bytes.status().Is(StatusCode::kNotFound) && end.damaged;
    if (!bytes.ok() && !gone && !bytes.status().Is(StatusCode::kCorruption)) return bytes.status();
    if (bytes.ok() && number == newest) end.checksum = ChecksumOfLogObject(*bytes);
    const auto object = bytes.ok() ? DecodeLogObject(*bytes) : Result<LogObject>(bytes.status());
    if (object.ok()) {
      end.read_epoch = object->epoch;
      end.last = object->last;
      end.time_ns = object->time_ns;
      end.lease_end_ns = object->lease_end_ns;
      end.writer = object->writer;
    } else if (!gone && !object.status().Is(StatusCode::kCorruption)) {
      return Status(object.status()).At(LogKey(number));
    }
    if (object.ok() || number == 1) {
      // Each object that cannot be read may have begun an epoch.
      end.epoch = end.read_epoch + static_cast<uint32_t>(newest - number);
      return end;
    }
    end.damaged = true;
  }
}

Status BucketLog::Begin(const std::function<Status(const LogEnd&)>& check, int64_t now_ns,
                        int64_t lease_end_ns) {
  for (;;) {
    auto end = ReadLogEnd(objects_);
    // The writer of a checkpoint has removed the object since it was listed.
    if (end.status().Is(StatusCode::kNotFound)) continue;
    SILTFS_RETURN_IF_ERROR(end.status());
    end_ = std::move(end).value();
    SILTFS_RETURN_IF_ERROR(check(end_));
    LogObject object;
    object.kind = LogKind::kEpoch;
    object.first = end_.last + 1;
    object.last = end_.last;
    object.time_ns = end_.last == 0 ? now_ns : end_.time_ns;
    object.lease_end_ns = lease_end_ns;
    ++end_.epoch;
    SILTFS_RETURN_IF_ERROR(Prepare(std::move(object)));
    const Status put = Confirm();
    if (!put.Is(StatusCode::kStale)) return put;
    fenced_ = false;  // another writer took the number: look at its object
    pending_.clear();
  }
}

Status BucketLog::Prepare(LogObject object) {
  object.epoch = end_.epoch;
  object.number = end_.next;
  object.previous = end_.checksum;
  object.writer = writer_;
  SILTFS_ASSIGN_OR_RETURN(pending_, EncodeLogObject(object));
  object.attachment.clear();
  object.commits.clear();
  prepared_ = std::move(object);
  return Status::Ok();
}

Status BucketLog::Fenced() {
  fenced_ = true;
  return Status(StatusCode::kStale,
                fmt::format("another writer has taken over the bucket; epoch {} has ended",
                            end_.epoch))
      .At(LogKey(end_.next));
}

Result<bool> BucketLog::IsOurs() {
  SILTFS_ASSIGN_OR_RETURN(const Bytes there,
                          objects_.Get(LogKey(end_.next), kMostLogObjectBytes, nullptr));
  return AsText(there) == pending_;
}

Status BucketLog::Confirm() {
  if (fenced_) return Fenced();
  const std::string key = LogKey(end_.next);
  const auto put = objects_.Put(key, AsBytes(pending_), PutCondition::IfAbsent());
  if (!put.ok()) {
    const auto ours = IsOurs();
    const bool exists = put.status().Is(StatusCode::kAlreadyExists);
    if (!ours.ok()) {
      // It existed and is gone: the log has gone on without this writer.
      if (exists && ours.status().Is(StatusCode::kNotFound)) return Fenced();
      return exists ? ours.status() : put.status();
    }
    if (!*ours) return Fenced();
  }
  if (end_.next > 1) {
    const auto before = objects_.Stat(LogKey(end_.next - 1));
    if (before.status().Is(StatusCode::kNotFound)) return Fenced();
    SILTFS_RETURN_IF_ERROR(before.status());
  }
  end_.checksum = ChecksumOfLogObject(AsBytes(pending_));
  ++end_.next;
  end_.last = prepared_.last;
  end_.time_ns = prepared_.time_ns;
  end_.lease_end_ns = prepared_.lease_end_ns;
  end_.writer = writer_;
  pending_.clear();
  return Status::Ok();
}

}  // namespace siltfs
