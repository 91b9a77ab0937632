#include "fs/bucket/verify_bucket.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "fs/bucket/bucket_owner.h"
#include "fs/bucket/interruption_poll.h"
#include "fs/bucket/object_blocks.h"
#include "fs/bucket/parallel_steps.h"
#include "fs/bucket/segment_records_kv.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_metadata.h"
#include "fs/records/epoch_floors.h"
#include "fs/records/position_record.h"
#include "fs/segments/segment_tables.h"
#include "fs/shipping/bucket_log.h"
#include "fs/shipping/checkpoint.h"
#include "fs/shipping/object_keys.h"
#include "fs/shipping/restore_kv_store.h"
#include "fs/shipping/segment_tails.h"
#include "store/base/thread_annotations.h"
#include "store/bucket/bucket_names.h"
#include "store/bucket/segment_object.h"
#include "store/segment/segment_files.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

constexpr size_t kMostListed = 10'000;
constexpr int kMostAttempts = 3;
constexpr uint64_t kMostTailObject = uint64_t{64} << 20;
constexpr uint64_t kProgressStep = 1000;  // listed objects

// The segments that some metadata knows, with the lengths that their objects may have.
struct KnownSegment {
  bool sealed = false;
  uint64_t length = 0;
  std::optional<uint64_t> intended;  // length of a replacement
};
using KnownSegments = std::map<SegmentId, KnownSegment>;

Result<KnownSegments> ReadKnownSegments(const KvSnapshot& metadata) {
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, ReadSegmentRecords(metadata));
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords intents, ReadReplacements(metadata));
  KnownSegments known;
  for (const auto& [id, record] : records)
    known[id] = {.sealed = record.sealed, .length = record.length, .intended = std::nullopt};
  for (const auto& [id, record] : intents) {
    const auto found = known.find(id);
    if (found != known.end()) found->second.intended = record.length;
  }
  return known;
}

// What the store's directory has.
struct LocalStore {
  StoreUuid uuid;
  KnownSegments segments;
  PositionRecord position;
  EpochFloors floors;
  std::map<SegmentId, uint64_t> waiting;  // generations of files that wait for their upload
  std::map<SegmentId, uint64_t> removed;  // generations up to which objects will be deleted
  std::set<SegmentId> files;              // in STORE/segments
};

Result<std::vector<DirectoryEntry>> Entries(Env& env, const std::string& directory) {
  auto entries = env.ListDirectory(directory);
  if (entries.status().Is(StatusCode::kNotFound)) return std::vector<DirectoryEntry>();
  return entries;
}

Result<LocalStore> ReadLocalStore(Env& env, const std::string& store,
                                  const Superblock& superblock) {
  LocalStore local;
  local.uuid = superblock.uuid;
  {
    SILTFS_ASSIGN_OR_RETURN(const auto kv, OpenExistingMetadata(env, superblock, store,
                                                                KvStoreOptions::Mode::kReadOnly));
    const auto snapshot = kv->Snapshot();
    SILTFS_ASSIGN_OR_RETURN(local.segments, ReadKnownSegments(*snapshot));
    SILTFS_ASSIGN_OR_RETURN(local.position, ReadPosition(*snapshot));
    SILTFS_ASSIGN_OR_RETURN(local.floors, ReadEpochFloors(*snapshot));
  }
  SILTFS_ASSIGN_OR_RETURN(const auto files, Entries(env, FilesDirectory(BucketCachePath(store))));
  for (const DirectoryEntry& entry : files) {
    const auto name = ParseLocalFileName(entry.name);
    if (!name || name->kind != LocalFileKind::kWaiting) continue;
    uint64_t& generation = local.waiting[name->content.id.segment];
    generation = std::max(generation, name->content.id.generation);
  }
  SILTFS_ASSIGN_OR_RETURN(const auto removed,
                          Entries(env, RemovedDirectory(BucketCachePath(store))));
  for (const DirectoryEntry& entry : removed) {
    const auto tombstone = ParseTombstoneName(entry.name);
    if (!tombstone) continue;
    uint64_t& generation = local.removed[tombstone->id.segment];
    generation = std::max(generation, tombstone->id.generation);
  }
  SILTFS_ASSIGN_OR_RETURN(const SegmentListing listing, ListSegments(env, store));
  local.files.insert(listing.ids.begin(), listing.ids.end());
  return local;
}

class Verification {
 public:
  Verification(ObjectStore& objects, const BucketVerifyOptions& options, const LocalStore* local)
      : objects_(objects), options_(options), local_(local) {}

  Result<BucketVerifyReport> Run() {
    SILTFS_RETURN_IF_ERROR(ListAll());
    SILTFS_RETURN_IF_ERROR(CheckManifests());
    SILTFS_RETURN_IF_ERROR(ReadCommits());
    SILTFS_RETURN_IF_ERROR(CheckOwner());
    if (local_ != nullptr) floors_ = local_->floors;
    if (restored_) SILTFS_RETURN_IF_ERROR(CompareRestored());
    if (local_ != nullptr) CompareLocal();
    ListLeftovers();
    SILTFS_RETURN_IF_ERROR(CheckObjects());
    const auto by_key = [](const BucketFinding& a, const BucketFinding& b) {
      return a.key < b.key;
    };
    MutexLock lock(mutex_);
    std::ranges::stable_sort(report_.findings, by_key);
    std::ranges::stable_sort(report_.leftovers, by_key);
    return std::move(report_);
  }

 private:
  struct Object {
    uint64_t generation = 0;
    uint64_t bytes = 0;
  };

  void Add(std::string_view code, std::string key, std::string message) {
    MutexLock lock(mutex_);
    const bool leftover = code == kLeftoverObject;
    ++(leftover ? report_.leftover_objects : report_.errors);
    std::vector<BucketFinding>& list = leftover ? report_.leftovers : report_.findings;
    if (list.size() < kMostListed) list.push_back({code, std::move(key), std::move(message)});
  }
  void Leftover(std::string key, std::string message) {
    Add(kLeftoverObject, std::move(key), std::move(message));
  }
  // Notes a failure that is damage; returns others.
  Status Note(const Status& status, const std::string& key) {
    if (status.Is(StatusCode::kNotFound)) {
      Add("missing-object", key, "the object is missing");
    } else if (status.Is(StatusCode::kCorruption) || status.Is(StatusCode::kFileTooLarge)) {
      Add("damaged-object", key, std::string(status.cause()));
    } else {
      return status;
    }
    return Status::Ok();
  }
  Status GoOn() const {
    if (!options_.interrupted || !options_.interrupted()) return Status::Ok();
    return Status(StatusCode::kInterrupted, "was interrupted");
  }
  void Progress(std::string_view step, uint64_t done, uint64_t total) const {
    if (options_.on_progress) options_.on_progress(step, done, total);
  }

  // --- The list.

  Status ListAll() {
    return ForEachObject(objects_, "", [this](const ObjectInfo& object) {
      Classify(object);
      if (++report_.objects % kProgressStep == 0) Progress("objects", report_.objects, 0);
      report_.bytes += object.size;
      return GoOn();
    });
  }

  void Classify(const ObjectInfo& object) {
    const std::string& key = object.key;
    if (const auto content = ParseSegmentObjectKey(key)) {
      segments_[content->segment].push_back({content->generation, object.size});
    } else if (const uint64_t number = ParseLogKey(key); number > 0) {
      log_.insert(number);
      ++report_.log_objects;
    } else if (const uint64_t manifest = ParseManifestKey(key); manifest > 0) {
      manifests_.insert(manifest);
    } else if (key.starts_with(kPartPrefix)) {
      parts_.insert(key);
    } else if (const auto tail = ParseTailKey(key)) {
      tails_[{tail->epoch, tail->segment}].push_back(tail->offset);
      ++report_.tails;
    } else if (key.starts_with(kBucketProbePrefix)) {
      Leftover(key, "a claim of the prefix was interrupted");
    } else if (key != kBucketOwnerKey) {
      Add("foreign-object", key, "siltfs makes no such object");
    }
  }

  // --- Commits.

  // A writer that was stopped leaves a manifest without the log object that makes it valid.
  Result<bool> IsUnfinished(uint64_t number) {
    const auto bytes = objects_.Get(LogKey(number), kMostLogObjectBytes, nullptr);
    if (bytes.status().Is(StatusCode::kNotFound)) return true;
    if (!bytes.ok()) {
      if (!bytes.status().Is(StatusCode::kCorruption)) return bytes.status();
      bytes.status().IgnoreError("the log object is damaged, so the manifest is as good as lost");
      return false;
    }
    const auto object = DecodeLogObject(*bytes);
    if (object.ok()) return object->kind != LogKind::kCheckpoint;
    object.status().IgnoreError("the log object is damaged, so the manifest is as good as lost");
    return false;
  }

  Status CheckManifests() {
    std::set<std::string> needed;
    for (auto number = manifests_.rbegin(); number != manifests_.rend(); ++number) {
      SILTFS_RETURN_IF_ERROR(GoOn());
      const auto manifest = ReadValidManifest(objects_, *number);
      if (manifest.ok()) {
        ++report_.checkpoints;
        valid_.push_back(*number);
        for (const CheckpointPart& part : manifest->parts) {
          const std::string key = PartKey(part);
          if (!parts_.contains(key) && !needed.contains(key))
            Add("missing-object", key, "the part of a checkpoint is missing");
          needed.insert(key);
        }
        continue;
      }
      const std::string key = ManifestKey(*number);
      invalid_.push_back(key);
      SILTFS_ASSIGN_OR_RETURN(const bool unfinished, IsUnfinished(*number));
      if (unfinished) {
        manifest.status().IgnoreError("the checkpoint was never valid");
        Leftover(key, "a checkpoint was interrupted");
        continue;
      }
      SILTFS_RETURN_IF_ERROR(Note(manifest.status(), key));
    }
    for (const std::string& key : parts_) {
      if (!needed.contains(key)) Leftover(key, "no checkpoint has this part");
    }
    // Objects behind the newest checkpoint are read by the restore.
    if (valid_.size() < 2) return Status::Ok();
    for (uint64_t number = valid_.back(); number < valid_.front(); ++number) {
      if (!log_.contains(number))
        Add("missing-object", LogKey(number), "the object of the log is missing");
    }
    return Status::Ok();
  }

  Status ReadCommits() {
    if (manifests_.empty() && log_.empty() && local_ != nullptr) {
      if (local_->position.sequence > 0)
        Add("damaged-log", std::string(kLogPrefix), "the bucket has lost all commits");
      return Status::Ok();
    }
    RestoreOptions restore;
    restore.stop_at_damage = true;
    restore.interrupted = options_.interrupted;
    restore.on_progress = [this](uint64_t done, uint64_t total) {
      Progress("commits", done, total);
    };
    restore.report = [this](const std::string& sentence) {
      const bool known = std::ranges::any_of(invalid_, [&](const std::string& key) {
        return sentence.find(key) != std::string::npos;
      });
      if (!known) Add("damaged-log", std::string(kLogPrefix), sentence);
    };
    auto restored = RestoreKvStore(
        objects_,
        [](const Manifest&) -> Result<std::unique_ptr<KvStore>> {
          return std::unique_ptr<KvStore>(std::make_unique<SegmentRecordsKv>());
        },
        restore);
    if (restored.ok()) {
      restored_ = std::move(restored).value();
      report_.commit = restored_->state.sequence;
      if (local_ != nullptr && local_->position.sequence > 0) {
        report_.commits_behind =
            local_->position.sequence - std::min(report_.commit, local_->position.sequence);
      }
      return Status::Ok();
    }
    const Status& failed = restored.status();
    const bool in_use = local_ != nullptr || !valid_.empty();
    if (failed.Is(StatusCode::kCorruption) || (failed.Is(StatusCode::kNotFound) && in_use)) {
      Add("damaged-log", std::string(kLogPrefix), std::string(failed.cause()));
      failed.IgnoreError("it is a finding");
      return Status::Ok();
    }
    return failed;
  }

  Status CheckOwner() {
    std::optional<StoreUuid> uuid;
    if (local_ != nullptr) uuid = local_->uuid;
    if (restored_ && !uuid) {
      const auto superblock = DecodeSuperblock(AsBytes(restored_->state.attachment));
      if (superblock.ok()) {
        uuid = superblock->uuid;
      } else {
        Add("damaged-log", std::string(kLogPrefix),
            fmt::format("the superblock in the log: {}", superblock.status().cause()));
        superblock.status().IgnoreError("it is a finding");
      }
    }
    const auto owner = ReadBucketOwner(objects_);
    if (!owner.ok()) return Note(owner.status(), kBucketOwnerKey);
    if (uuid && *uuid != *owner) {
      Add("foreign-owner", kBucketOwnerKey,
          fmt::format("the prefix belongs to the store {}, and its objects to {}", owner->ToText(),
                      uuid->ToText()));
    }
    return Status::Ok();
  }

  // --- Segments.

  bool IsHidden(SegmentId id, const Object& object) const {
    if (local_ == nullptr) return false;
    const auto removed = local_->removed.find(id);
    return removed != local_->removed.end() && object.generation <= removed->second;
  }

  // The object with the highest generation; null if there is none.
  const Object* Current(SegmentId id, bool with_hidden) const {
    const auto found = segments_.find(id);
    if (found == segments_.end()) return nullptr;
    const Object* current = nullptr;
    for (const Object& object : found->second) {
      if (!with_hidden && IsHidden(id, object)) continue;
      if (IsForeign(id, object)) continue;
      if (current == nullptr || object.generation > current->generation) current = &object;
    }
    return current;
  }

  // Whether the tails have all bytes of the segment.
  Result<bool> HasTails(SegmentId id, uint64_t length) {
    const uint32_t epoch = restored_->state.data_epoch;
    const auto found = tails_.find({epoch, id});
    if (found == tails_.end()) return length == 0;
    std::ranges::sort(found->second);
    uint64_t size = 0;
    for (const uint64_t offset : found->second) {
      if (size >= length || offset > size) break;
      const TailName name{epoch, id, offset};
      const auto object = objects_.Get(TailKey(name), kMostTailObject, nullptr);
      const auto bytes =
          object.ok() ? DecodeTail(name, *object) : Result<std::string>(object.status());
      if (!bytes.ok()) {
        SILTFS_RETURN_IF_ERROR(Note(bytes.status(), TailKey(name)));
        return true;  // it is a finding already
      }
      size = std::max(size, offset + bytes->size());
    }
    return size >= length;
  }

  // The state of the last commit in the bucket must have all its bytes there.
  Status CompareRestored() {
    SILTFS_ASSIGN_OR_RETURN(floors_, ReadEpochFloors(*restored_->kv->Snapshot()));
    SILTFS_ASSIGN_OR_RETURN(const KnownSegments known,
                            ReadKnownSegments(*restored_->kv->Snapshot()));
    for (const auto& [id, segment] : known) {
      SILTFS_RETURN_IF_ERROR(GoOn());
      needed_.insert(id);
      const Object* const object = Current(id, /*with_hidden=*/true);
      // A fenced writer may have put an object before the last writer has put its own.
      if (segment.sealed && object != nullptr && HasSizeOf(segment, *object)) {
        Require(id, segment, *object);
        continue;
      }
      SILTFS_ASSIGN_OR_RETURN(const bool has_tails, HasTails(id, segment.length));
      if (has_tails) continue;
      if (segment.sealed && object != nullptr) {
        Require(id, segment, *object);
        continue;
      }
      const auto size = object == nullptr ? std::optional<uint32_t>() : SegmentBytes(object->bytes);
      if (size && *size >= segment.length) {
        wanted_.insert({{id, object->generation}, *size});
        continue;
      }
      if (const Object* const other = Fitting(id, segment); segment.sealed && other != nullptr) {
        Require(id, segment, *other);
        continue;
      }
      Missing(id);
    }
    return Status::Ok();
  }

  bool IsForeign(SegmentId id, const Object& object) const {
    return floors_.IsForeign(id, ContentId{id, object.generation}.epoch());
  }

  // A restore takes such an object, too, rather than none (restore_segments.h).
  const Object* Fitting(SegmentId id, const KnownSegment& segment) const {
    const auto found = segments_.find(id);
    if (found == segments_.end()) return nullptr;
    const auto fits = std::ranges::find_if(
        found->second, [&](const Object& object) { return HasSizeOf(segment, object); });
    return fits == found->second.end() ? nullptr : &*fits;
  }

  // The store needs the objects of all sealed segments that are not local files.
  void CompareLocal() {
    for (const auto& [id, segment] : local_->segments) {
      if (!segment.sealed) continue;
      const Object* const object = Current(id, /*with_hidden=*/false);
      const auto waiting = local_->waiting.find(id);
      const bool waits = waiting != local_->waiting.end() &&
                         (object == nullptr || object->generation < waiting->second);
      if (waits || local_->files.contains(id)) {
        needed_.insert(id);
        ++report_.waiting_segments;
      } else if (object == nullptr) {
        Missing(id);
      } else {
        needed_.insert(id);
        Require(id, segment, *object);
      }
    }
  }

  void Missing(SegmentId id) {
    if (missing_.insert(id).second)
      Add("missing-object", SegmentObjectStem(id), "the object of the segment is missing");
  }

  static bool HasSizeOf(const KnownSegment& segment, const Object& object) {
    const auto size = SegmentBytes(object.bytes);
    return size && (*size == segment.length || segment.intended == *size);
  }

  void Require(SegmentId id, const KnownSegment& segment, const Object& object) {
    const ContentId content{id, object.generation};
    if (HasSizeOf(segment, object)) {
      wanted_.insert({content, *SegmentBytes(object.bytes)});
    } else if (wrong_.insert(content).second) {
      Add("wrong-size", SegmentObjectKey(content),
          fmt::format("the object has {} bytes instead of {}", object.bytes,
                      ObjectBytes(static_cast<uint32_t>(segment.length))));
    }
  }

  void ListLeftovers() {
    for (const auto& [id, all] : segments_) {
      const Object* const current = Current(id, /*with_hidden=*/false);
      for (const Object& object : all) {
        const ContentId content{id, object.generation};
        if (wanted_.contains(content) || wrong_.contains(content)) continue;
        const std::string key = SegmentObjectKey(content);
        if (!needed_.contains(id)) {
          Leftover(key, "metadata does not know the segment");
        } else if (IsHidden(id, object)) {
          Leftover(key, "it will be deleted");
        } else if (IsForeign(id, object)) {
          Leftover(key, "a writer that was fenced has put it");
        } else if (&object != current) {
          Leftover(key, "the segment has a newer object");
        }
      }
    }
  }

  Status CheckObjects() {
    const std::vector<std::pair<ContentId, uint32_t>> wanted(wanted_.begin(), wanted_.end());
    std::atomic<uint64_t> done{0};
    return RunSteps(wanted.size(), options_.threads, [&](size_t number) -> Status {
      SILTFS_RETURN_IF_ERROR(GoOn());
      const SegmentContent content{wanted[number].first, wanted[number].second};
      SILTFS_RETURN_IF_ERROR(CheckObject(content));
      Progress("segments", ++done, wanted.size());
      return Status::Ok();
    });
  }

  Status CheckObject(const SegmentContent& content) {
    uint64_t read = 0;
    Status verified = options_.data ? ReadObjectBlocks(objects_, content, nullptr,
                                                       [&](uint64_t, ByteView bytes) {
                                                         read += bytes.size();
                                                         return GoOn();
                                                       })
                                    : ReadTrailer(objects_, content).status();
    if (!verified.ok()) SILTFS_RETURN_IF_ERROR(Note(verified, SegmentObjectKey(content.id)));
    MutexLock lock(mutex_);
    report_.data_bytes += read;
    ++report_.segments;
    report_.segment_bytes += content.size;
    return Status::Ok();
  }

  ObjectStore& objects_;
  const BucketVerifyOptions& options_;
  const LocalStore* const local_;

  EpochFloors floors_;
  std::map<SegmentId, std::vector<Object>> segments_;
  std::map<std::pair<uint32_t, SegmentId>, std::vector<uint64_t>> tails_;  // offsets
  std::set<uint64_t> log_;
  std::set<uint64_t> manifests_;
  std::set<std::string> parts_;
  std::vector<uint64_t> valid_;       // checkpoints, the newest first
  std::vector<std::string> invalid_;  // keys of manifests
  std::optional<RestoredKvStore> restored_;
  std::map<ContentId, uint32_t> wanted_;  // objects whose bytes are verified, and their sizes
  std::set<ContentId> wrong_;             // those with a wrong size
  std::set<SegmentId> needed_;
  std::set<SegmentId> missing_;
  Mutex mutex_;  // for the threads of CheckObjects
  BucketVerifyReport report_;
};

Result<uint64_t> NextOfLog(ObjectStore& objects) {
  for (int attempt = 1;; ++attempt) {
    const auto end = ReadLogEnd(objects);
    if (end.ok()) return end->next;
    // A checkpoint has removed the object since it was listed.
    if (!end.status().Is(StatusCode::kNotFound) || attempt == kMostAttempts) return end.status();
  }
}

Result<BucketVerifyReport> VerifyUntilStable(ObjectStore& objects,
                                             const BucketVerifyOptions& options,
                                             const LocalStore* local) {
  for (int attempt = 1;; ++attempt) {
    SILTFS_ASSIGN_OR_RETURN(const uint64_t before, NextOfLog(objects));
    SILTFS_ASSIGN_OR_RETURN(BucketVerifyReport report, Verification(objects, options, local).Run());
    SILTFS_ASSIGN_OR_RETURN(const uint64_t after, NextOfLog(objects));
    if (report.errors == 0 || before == after || attempt == kMostAttempts) return report;
  }
}

// An interruption also ends requests that wait for a silent bucket.
template <typename Run>
Result<BucketVerifyReport> Interruptibly(ObjectStore& objects, const BucketVerifyOptions& options,
                                         const Run& run) {
  std::atomic<bool> interrupted{false};
  std::optional<InterruptionPoll> poll;
  if (options.interrupted) {
    poll.emplace(options.interrupted, [&] {
      interrupted = true;
      objects.Interrupt();
    });
  }
  Result<BucketVerifyReport> report = run();
  poll.reset();
  if (report.ok() || !interrupted) return report;
  report.status().IgnoreError("the interruption is its cause");
  return Status(StatusCode::kInterrupted, "was interrupted").At(objects.name());
}

}  // namespace

Result<BucketVerifyReport> VerifyBucket(ObjectStore& objects, const BucketVerifyOptions& options) {
  return Interruptibly(objects, options,
                       [&] { return VerifyUntilStable(objects, options, nullptr); });
}

Result<BucketVerifyReport> VerifyBucketOfStore(Env& env, ObjectStore& objects,
                                               const std::string& store,
                                               const BucketVerifyOptions& options) {
  SILTFS_RETURN_IF_ERROR(ReadSuperblock(env, store, StoreAccess::kReadOnly).status());
  SILTFS_ASSIGN_OR_RETURN(const auto lock, env.LockFile(LockPath(store)));
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state,
                          ReadSuperblock(env, store, StoreAccess::kReadOnly));
  if (!state.superblock.in_bucket()) {
    return Status(StatusCode::kInvalidArgument,
                  "the segments of the store are in its directory: check it with siltfs fsck, or "
                  "name the bucket, as s3://NAME/PREFIX")
        .At(store);
  }
  SILTFS_ASSIGN_OR_RETURN(const LocalStore local, ReadLocalStore(env, store, state.superblock));
  return Interruptibly(objects, options,
                       [&] { return VerifyUntilStable(objects, options, &local); });
}

}  // namespace siltfs
