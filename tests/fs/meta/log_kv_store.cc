#include "tests/fs/meta/log_kv_store.h"

#include <limits>
#include <utility>
#include <vector>

#include "fs/meta/open_kv_store.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/base/thread_annotations.h"
#include "store/env/files.h"
#include "tests/fs/meta/versioned_map.h"

namespace siltfs::testing {
namespace {

using Mode = KvStoreOptions::Mode;

constexpr uint64_t kMostLogBytes = uint64_t{1} << 30;
constexpr size_t kHeaderSize = 16;  // kind, length of the rest, checksum of the rest
constexpr uint32_t kWriteRecord = 0x574b4c53;
constexpr uint32_t kCloseRecord = 0x434b4c53;

std::string LogPath(const std::string& directory) { return JoinPath(directory, "log"); }

// The seed binds a record to its kind and its place.
uint64_t RecordChecksum(uint32_t kind, uint64_t offset, ByteView payload) {
  return Checksum(payload, offset ^ (uint64_t{kind} << 32));
}

std::string EncodeRecord(uint32_t kind, uint64_t offset, const std::vector<Mutation>& mutations) {
  Encoder payload;
  for (const Mutation& mutation : mutations) {
    const std::string_view value = mutation.value ? std::string_view(*mutation.value) : "";
    payload.U8(mutation.value ? 1 : 0)
        .U32(static_cast<uint32_t>(mutation.key.size()))
        .U32(static_cast<uint32_t>(value.size()))
        .Raw(mutation.key)
        .Raw(value);
  }
  Encoder record;
  record.U32(kind)
      .U32(static_cast<uint32_t>(payload.size()))
      .U64(RecordChecksum(kind, offset, payload.view()))
      .Raw(payload.view());
  return record.Take();
}

struct Record {
  uint32_t kind = 0;
  uint64_t size = 0;
  ByteView payload;
};

// Returns the record at `offset` if it is whole.
std::optional<Record> RecordAt(ByteView log, uint64_t offset) {
  Decoder in(log.subspan(offset));
  const uint32_t kind = in.U32();
  const uint32_t length = in.U32();
  const uint64_t checksum = in.U64();
  if ((kind != kWriteRecord && kind != kCloseRecord) || length > in.remaining())
    return std::nullopt;
  const ByteView payload = in.Raw(length);
  if (!in.ok() || checksum != RecordChecksum(kind, offset, payload)) return std::nullopt;
  return Record{kind, kHeaderSize + length, payload};
}

std::vector<Mutation> MutationsIn(ByteView payload) {
  std::vector<Mutation> mutations;
  for (Decoder in(payload); in.remaining() > 0 && in.ok();) {
    const bool put = in.U8() != 0;
    const uint32_t key_size = in.U32();
    const uint32_t value_size = in.U32();
    Mutation mutation{std::string(AsText(in.Raw(key_size))), std::nullopt};
    const std::string_view value = AsText(in.Raw(value_size));
    if (put) mutation.value = std::string(value);
    mutations.push_back(std::move(mutation));
  }
  return mutations;
}

struct Replayed {
  std::map<std::string, std::string> entries;
  uint64_t end = 0;            // of the last whole record
  uint64_t damaged_bytes = 0;  // before the last whole record
  uint64_t first_damage = 0;   // offset
  uint64_t changes = 0;        // since the last close
};

Replayed Replay(ByteView log) {
  Replayed result;
  for (uint64_t offset = 0; offset < log.size();) {
    const auto record = RecordAt(log, offset);
    if (!record) {
      ++offset;
      continue;
    }
    if (offset > result.end) {
      if (result.damaged_bytes == 0) result.first_damage = result.end;
      result.damaged_bytes += offset - result.end;
    }
    offset += record->size;
    result.end = offset;
    const auto mutations = MutationsIn(record->payload);
    result.changes = record->kind == kCloseRecord ? 0 : result.changes + mutations.size();
    for (const Mutation& mutation : mutations) {
      if (mutation.value) {
        result.entries[mutation.key] = *mutation.value;
      } else {
        result.entries.erase(mutation.key);
      }
    }
  }
  return result;
}

class LogKvStore final : public KvStore {
 public:
  LogKvStore(Env& env, const KvStoreOptions& options, std::unique_ptr<File> file, Replayed replayed)
      : env_(env), options_(options), file_(std::move(file)), changes_(replayed.changes) {
    end_ = replayed.end;
    for (auto& [key, value] : replayed.entries) map_->Add(0, {key, std::move(value)});
  }
  ~LogKvStore() override { failure_.IgnoreError("the call that failed returned it"); }

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    MutexLock lock(mutex_);
    return map_->Get(key, sequence_);
  }
  std::shared_ptr<const KvSnapshot> Snapshot() const override {
    MutexLock lock(mutex_);
    return SnapshotOf(map_, sequence_);
  }

  Status WriteFrom(const std::function<void(MutationSink&)>& fill) override {
    MutationCollector collector;
    fill(collector);
    MutexLock lock(mutex_);
    SILTFS_RETURN_IF_ERROR(Append(kWriteRecord, collector.mutations));
    for (const Mutation& mutation : collector.mutations) map_->Add(sequence_ + 1, mutation);
    ++sequence_;
    return Status::Ok();
  }

  Status VerifyChecksums() const override {
    MutexLock lock(mutex_);
    const std::string path = LogPath(options_.path);
    SILTFS_ASSIGN_OR_RETURN(const std::string log, ReadWholeFile(env_, path, kMostLogBytes));
    const Replayed replayed = Replay(AsBytes(log));
    if (replayed.end >= end_ && replayed.damaged_bytes == 0) return Status::Ok();
    return Status(StatusCode::kCorruption, "a record of the log is damaged").At(path);
  }

  uint64_t LoggedChanges() const override { return changes_; }
  uint64_t DiskBytes() const override {
    MutexLock lock(mutex_);
    return end_;
  }

  Status CloseCleanly() override {
    if (options_.mode == Mode::kReadOnly) return Status::Ok();
    MutexLock lock(mutex_);
    return Append(kCloseRecord, {});
  }

 private:
  // Appends a record and syncs it. After kNoSpace, the next call first truncates the log to the end
  // of the last whole record.
  Status Append(uint32_t kind, const std::vector<Mutation>& mutations) SILTFS_REQUIRES(mutex_) {
    if (options_.mode == Mode::kReadOnly)
      return Status(StatusCode::kReadOnly, "opened read-only").At(options_.path);
    if (!failure_.ok()) return failure_;
    const std::string record = EncodeRecord(kind, end_, mutations);
    Status written = broken_end_ ? file_->Truncate(end_) : Status::Ok();
    broken_end_ = true;
    if (written.ok()) written = file_->Write(end_, AsBytes(record));
    if (written.ok()) written = file_->Sync();
    if (written.ok()) {
      broken_end_ = false;
      end_ += record.size();
    } else if (!written.Is(StatusCode::kNoSpace)) {
      failure_ = written;
    }
    return written;
  }

  Env& env_;
  const KvStoreOptions options_;
  const std::unique_ptr<File> file_;
  const uint64_t changes_;
  mutable Mutex mutex_;
  uint64_t end_ SILTFS_GUARDED_BY(mutex_) = 0;
  bool broken_end_ SILTFS_GUARDED_BY(mutex_) = false;
  Status failure_ SILTFS_GUARDED_BY(mutex_);
  uint64_t sequence_ SILTFS_GUARDED_BY(mutex_) = 0;
  const std::shared_ptr<VersionedMap> map_ = std::make_shared<VersionedMap>();
};

Result<std::unique_ptr<File>> OpenLog(Env& env, const KvStoreOptions& options) {
  const std::string path = LogPath(options.path);
  if (options.mode == Mode::kReadOnly) return env.OpenFile(path, {.mode = OpenMode::kRead});
  if (options.mode == Mode::kOpen) return env.OpenFile(path, {.mode = OpenMode::kReadWrite});
  const Status made = env.CreateDirectory(options.path);
  if (!made.ok() && !made.Is(StatusCode::kAlreadyExists)) return made;
  SILTFS_ASSIGN_OR_RETURN(auto file, env.OpenFile(path, {.mode = OpenMode::kCreate}));
  SILTFS_RETURN_IF_ERROR(file->Sync());
  SILTFS_RETURN_IF_ERROR(env.SyncDirectory(options.path));
  return file;
}

Result<std::unique_ptr<KvStore>> Open(Env& env, const KvStoreOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(auto file, OpenLog(env, options));
  const std::string path = LogPath(options.path);
  SILTFS_ASSIGN_OR_RETURN(const std::string log, ReadWholeFile(env, path, kMostLogBytes));
  Replayed replayed = Replay(AsBytes(log));
  if (replayed.damaged_bytes > 0) {
    return Status(StatusCode::kCorruption, "a record of the log is damaged")
        .At(path, replayed.first_damage);
  }
  // Sync, because the bytes may not be durable: the process that wrote them may have been killed.
  if (options.mode == Mode::kOpen) {
    if (replayed.end < log.size()) SILTFS_RETURN_IF_ERROR(file->Truncate(replayed.end));
    SILTFS_RETURN_IF_ERROR(file->Sync());
  }
  return std::unique_ptr<KvStore>(
      std::make_unique<LogKvStore>(env, options, std::move(file), std::move(replayed)));
}

Status FindToleratedDamage(Env&, const KvStoreOptions&, const std::function<void(const Status&)>&) {
  return Status::Ok();
}

Result<bool> HasFiles(Env& env, const std::string& directory) {
  const auto info = env.GetFileInfo(LogPath(directory));
  if (info.ok()) return info->size > 0;
  if (info.status().Is(StatusCode::kNotFound) || info.status().Is(StatusCode::kNotADirectory))
    return false;
  return info.status();
}

Result<MetadataSalvage> Salvage(
    Env& env, const KvStoreOptions& options,
    const std::function<Status(std::string_view key, std::string_view value)>& visit) {
  MetadataSalvage salvage;
  const std::string path = LogPath(options.path);
  const auto log = ReadWholeFile(env, path, kMostLogBytes);
  if (!log.ok()) {
    log.status().IgnoreError("a loss");
    salvage.losses.push_back({.path = path, .missing = true});
    return salvage;
  }
  const Replayed replayed = Replay(AsBytes(*log));
  if (replayed.damaged_bytes > 0)
    salvage.losses.push_back({.path = path, .bytes = replayed.damaged_bytes});
  for (const auto& [key, value] : replayed.entries) {
    SILTFS_RETURN_IF_ERROR(visit(key, value));
    ++salvage.entries;
  }
  return salvage;
}

uint64_t MostWriteBytes(uint64_t /*disk_bytes*/) { return std::numeric_limits<uint32_t>::max(); }

}  // namespace

constinit const MetadataEngine kLogEngine = {.name = kLogEngineName,
                                             .open = Open,
                                             .find_tolerated_damage = FindToleratedDamage,
                                             .has_files = HasFiles,
                                             .salvage = Salvage,
                                             .most_write_bytes = MostWriteBytes};

void RegisterLogEngine() { static const MetadataEngineForTest engine(kLogEngine); }

}  // namespace siltfs::testing
