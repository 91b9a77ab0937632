#include "fs/shipping/restore_kv_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "fs/records/position_record.h"
#include "fs/records/schema.h"
#include "fs/shipping/log_object.h"
#include "fs/shipping/object_keys.h"
#include "fs/shipping/objects_ahead.h"

namespace siltfs {
namespace {

constexpr size_t kWriteBytes = 1u << 20;
// If a writer removes objects while they are read, the restore begins again.
constexpr int kMostAttempts = 5;

// Collects mutations to larger writes.
class BatchedWrites {
 public:
  explicit BatchedWrites(KvStore& kv) : kv_(kv) {}
  Status Add(Mutation mutation) {
    bytes_ += mutation.key.size() + (mutation.value ? mutation.value->size() : 0);
    mutations_.push_back(std::move(mutation));
    return bytes_ >= kWriteBytes ? Flush() : Status::Ok();
  }
  Status Flush() {
    if (mutations_.empty()) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(kv_.Write(mutations_));
    mutations_.clear();
    bytes_ = 0;
    return Status::Ok();
  }

 private:
  KvStore& kv_;
  std::vector<Mutation> mutations_;
  size_t bytes_ = 0;
};

Result<std::vector<uint64_t>> Numbers(ObjectStore& objects, std::string_view prefix,
                                      uint64_t (*parse)(std::string_view)) {
  std::vector<uint64_t> numbers;
  SILTFS_RETURN_IF_ERROR(ForEachObject(objects, std::string(prefix), [&](const ObjectInfo& info) {
    if (const uint64_t number = parse(info.key); number > 0) numbers.push_back(number);
    return Status::Ok();
  }));
  return numbers;
}

class Restore {
 public:
  Restore(ObjectStore& objects, const MakeEmptyKvStore& make_empty, const RestoreOptions& options)
      : objects_(objects), make_empty_(make_empty), options_(options) {}

  Result<RestoredKvStore> Run() {
    SILTFS_ASSIGN_OR_RETURN(state_.end, End());
    SILTFS_ASSIGN_OR_RETURN(const auto manifests,
                            Numbers(objects_, kManifestPrefix, &ParseManifestKey));
    if (manifests.empty()) {
      return Status(StatusCode::kNotFound,
                    state_.end.next > 1 ? "the first checkpoint of this store was never finished"
                                        : "there is no store in this bucket")
          .At(objects_.name());
    }
    Status first_failure;
    for (auto number = manifests.rbegin(); number != manifests.rend(); ++number) {
      Status loaded = LoadCheckpoint(*number);
      if (loaded.ok()) {
        first_failure.IgnoreError("it was reported");
        SILTFS_RETURN_IF_ERROR(ReplayLog(*number));
        return Finish();
      }
      if (!loaded.Is(StatusCode::kCorruption) && !loaded.Is(StatusCode::kNotFound)) return loaded;
      Report(loaded.ToString() + "; an older checkpoint is used");
      if (first_failure.ok()) first_failure = std::move(loaded);
    }
    first_failure.IgnoreError("returned below, unless the checkpoints have changed");
    SILTFS_ASSIGN_OR_RETURN(const LogEnd end, End());
    return end.next == state_.end.next ? first_failure : Moved();
  }

 private:
  static Status Moved() { return Status(StatusCode::kAborted, "the log has grown"); }
  Result<LogEnd> End() {
    auto end = ReadLogEnd(objects_);
    return end.status().Is(StatusCode::kNotFound) ? Result<LogEnd>(Moved()) : std::move(end);
  }
  void Report(const std::string& sentence) {
    if (options_.report) options_.report(sentence);
  }
  Status GoOn() const {
    if (!options_.interrupted || !options_.interrupted()) return Status::Ok();
    return Status(StatusCode::kInterrupted, "the restore was interrupted").At(objects_.name());
  }
  void Progress(uint64_t done, uint64_t total) const {
    if (options_.on_progress) options_.on_progress(done, total);
  }

  Status LoadCheckpoint(uint64_t number) {
    kv_ = nullptr;
    SILTFS_ASSIGN_OR_RETURN(const Manifest manifest, ReadValidManifest(objects_, number));
    SILTFS_ASSIGN_OR_RETURN(kv_, make_empty_(manifest));
    BatchedWrites writes(*kv_);
    uint64_t records = 0;
    uint64_t done = 0;
    for (const CheckpointPart& part : manifest.parts) {
      SILTFS_RETURN_IF_ERROR(GoOn());
      SILTFS_RETURN_IF_ERROR(
          ReadCheckpointPart(objects_, part, [&](std::string_view key, std::string_view value) {
            ++records;
            return writes.Add({std::string(key), std::string(value)});
          }));
      Progress(++done, manifest.parts.size());
    }
    SILTFS_RETURN_IF_ERROR(writes.Flush());
    if (records != manifest.records) {
      return Status(StatusCode::kCorruption, "the checkpoint does not have all its records")
          .At(ManifestKey(number));
    }
    state_.sequence = manifest.sequence;
    state_.data_epoch = manifest.epoch;
    state_.attachment = manifest.attachment;
    return Status::Ok();
  }

  // The log's objects from this number on, in the order of their numbers.
  Result<std::vector<ObjectInfo>> ListLog(uint64_t first) {
    std::vector<ObjectInfo> list;
    SILTFS_RETURN_IF_ERROR(
        ForEachObject(objects_, std::string(kLogPrefix), [&](const ObjectInfo& info) {
          if (ParseLogKey(info.key) >= first) list.push_back(info);
          return Status::Ok();
        }));
    return list;
  }

  // The objects behind the one of the checkpoint.
  Status ReplayLog(uint64_t checkpoint) {
    SILTFS_ASSIGN_OR_RETURN(const Bytes first,
                            objects_.Get(LogKey(checkpoint), kMostLogObjectBytes, nullptr));
    uint64_t previous = ChecksumOfLogObject(first);
    SILTFS_ASSIGN_OR_RETURN(auto list, ListLog(checkpoint + 1));
    ObjectsAhead log(objects_, std::move(list), kMostLogObjectBytes,
                     options_.reads_ahead ? ObjectsAhead::kMostRequests : 0);
    BatchedWrites writes(*kv_);
    uint64_t end = state_.end.next;
    for (uint64_t number = checkpoint + 1;; ++number) {
      SILTFS_RETURN_IF_ERROR(GoOn());
      const auto bytes = log.Get(LogKey(number));
      if (bytes.status().Is(StatusCode::kNotFound) && number >= end) break;
      const bool unreadable =
          bytes.status().Is(StatusCode::kNotFound) || bytes.status().Is(StatusCode::kCorruption);
      if (!bytes.ok() && !unreadable) return bytes.status();
      Status applied = bytes.ok() ? Apply(number, previous, *bytes, writes) : bytes.status();
      if (!applied.ok()) {
        const bool damage =
            applied.Is(StatusCode::kCorruption) || applied.Is(StatusCode::kNotFound);
        if (!damage) return applied;
        SILTFS_RETURN_IF_ERROR(Stop(number, applied));
        break;
      }
      previous = ChecksumOfLogObject(*bytes);
      end = std::max(end, number + 1);
      Progress(number - checkpoint, end - 1 - checkpoint);
    }
    return writes.Flush();
  }

  Status Apply(uint64_t number, uint64_t previous, ByteView bytes, BatchedWrites& writes) {
    SILTFS_ASSIGN_OR_RETURN(const LogObject object, DecodeLogObject(bytes));
    if (object.number != number || object.previous != previous)
      return Status(StatusCode::kCorruption, "the log object does not follow the one before it");
    if (object.first > state_.sequence + 1 || object.last < state_.sequence)
      return Status(StatusCode::kCorruption, "commits before the log object are missing");
    // All or nothing of an object: it is one state for the data that it refers to.
    uint64_t sequence = object.first - 1;
    SILTFS_RETURN_IF_ERROR(
        ForEachCommit(AsBytes(object.commits), [&](uint64_t its, std::vector<Mutation>&) {
          if (its == ++sequence) return Status::Ok();
          return Status(StatusCode::kCorruption, "the commits of the log object have gaps");
        }));
    if (sequence != object.last)
      return Status(StatusCode::kCorruption, "commits of the log object are missing");
    const auto apply = [&](uint64_t its, std::vector<Mutation>& mutations) -> Status {
      if (its <= state_.sequence) return Status::Ok();
      for (Mutation& mutation : mutations) SILTFS_RETURN_IF_ERROR(writes.Add(std::move(mutation)));
      return Status::Ok();
    };
    const Status applied = ForEachCommit(AsBytes(object.commits), apply);
    if (!applied.ok()) return applied;
    state_.sequence = object.last;
    state_.time_ns = object.time_ns;
    if (object.kind != LogKind::kEpoch) {
      state_.attachment = object.attachment;
      state_.data_epoch = object.epoch;
    }
    return Status::Ok();
  }

  Status Stop(uint64_t number, const Status& damage) {
    const std::string sentence = fmt::format(
        "object {} of the log cannot be used ({}): the commits after number {} are lost, up to {}",
        number, damage.cause(), state_.sequence,
        state_.end.last > state_.sequence ? fmt::format("number {}", state_.end.last)
                                          : std::string("the end"));
    if (!options_.stop_at_damage)
      return Status(StatusCode::kCorruption, sentence).At(objects_.name());
    state_.damaged = true;
    Report(sentence);
    return Status::Ok();
  }

  // The writer that continues this state has not been part of its epochs (Shipper::Begin). If
  // commits were lost, their sequences are not used again.
  Result<RestoredKvStore> Finish() {
    SILTFS_ASSIGN_OR_RETURN(const LogEnd end, End());
    if (end.next != state_.end.next && !state_.damaged && end.last != state_.sequence)
      return Moved();
    state_.end = end;
    if (state_.damaged || end.damaged)
      state_.sequence = std::max(state_.sequence, state_.end.last) + 1;
    SILTFS_RETURN_IF_ERROR(
        kv_->Write({{std::string(kBucketPositionKey),
                     PositionRecord{state_.sequence, state_.end.epoch}.Encode()}}));
    return RestoredKvStore{std::move(kv_), std::move(state_)};
  }

  ObjectStore& objects_;
  const MakeEmptyKvStore& make_empty_;
  const RestoreOptions& options_;
  std::unique_ptr<KvStore> kv_;
  RestoredState state_;
};

}  // namespace

Result<RestoredKvStore> RestoreKvStore(ObjectStore& objects, const MakeEmptyKvStore& make_empty,
                                       const RestoreOptions& options) {
  for (int attempt = 1;; ++attempt) {
    auto restored = Restore(objects, make_empty, options).Run();
    if (!restored.status().Is(StatusCode::kAborted) || attempt == kMostAttempts) return restored;
  }
}

}  // namespace siltfs
