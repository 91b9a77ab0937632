#include "fs/follow/followed_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "fs/guide/guide_updater.h"
#include "fs/interface/snapshots.h"
#include "fs/meta/open_kv_store.h"
#include "fs/open/open_state.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_metadata.h"
#include "fs/records/schema.h"
#include "fs/records/segment_record.h"
#include "fs/segments/segment_tables.h"
#include "store/env/files.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

// A poll reads at most this many objects before it shows a state.
constexpr size_t kMostObjects = 256;
// If the bytes of a commit are gone, the start tries a later one.
constexpr int kStartAttempts = 10;
constexpr std::chrono::seconds kLongestPause(60);
// How long a call that has failed waits for another state.
constexpr std::chrono::seconds kRecoverPatience(3);
constexpr std::string_view kMetadataName = "state.";

BucketOptions ReadOnlyBucket(const FollowOptions& options) {
  BucketOptions bucket = options.bucket;
  bucket.directory = BucketCachePath(options.directory);
  bucket.read_only = true;
  bucket.upload_threads = 0;
  bucket.gate = nullptr;
  return bucket;
}

Result<Superblock> SuperblockOf(const std::string& attachment) {
  SILTFS_ASSIGN_OR_RETURN(const Superblock superblock, DecodeSuperblock(AsBytes(attachment)));
  SILTFS_RETURN_IF_ERROR(CheckFeatures(superblock, StoreAccess::kReadOnly));
  return superblock;
}

std::vector<std::string> NamesOf(const Snapshots& snapshots) {
  std::vector<std::string> names;
  for (const SnapshotInfo& snapshot : snapshots.List()) names.push_back(snapshot.name);
  std::ranges::sort(names);
  return names;
}

// A clock that goes on while the machine is suspended, unless the time of day was set back. A time
// of day that was set forward makes claims lapse too early, which does no harm.
std::function<int64_t()> ClockOf(Env& env) {
  struct Clock {
    int64_t monotonic;
    int64_t wall;
    std::atomic<int64_t> last{0};
  };
  auto clock = std::make_shared<Clock>();
  clock->monotonic = env.MonotonicNanoseconds();
  clock->wall = env.NowNanoseconds();
  return [&env, clock] {
    const int64_t now =
        std::max(env.MonotonicNanoseconds() - clock->monotonic, env.NowNanoseconds() - clock->wall);
    int64_t last = clock->last;
    while (last < now && !clock->last.compare_exchange_weak(last, now)) {
    }
    return std::max(last, now);
  };
}

bool IsLate(const Status& status) {
  return status.Is(StatusCode::kNotFound) || status.Is(StatusCode::kCorruption) ||
         status.Is(StatusCode::kStale);
}

}  // namespace

FollowedStore::FollowedStore(Env& env, ObjectStore& objects, FollowOptions options)
    : env_(env),
      objects_(objects),
      options_(std::move(options)),
      bucket_(env, objects, ReadOnlyBucket(options_)),
      segments_(env, objects, options_.directory, bucket_),
      claim_(objects, options_.reader, options_.clock ? options_.clock : ClockOf(env)) {}

FollowedStore::~FollowedStore() { Stop(); }

std::string FollowedStore::MetadataDirectory(uint64_t number) const {
  return JoinPath(options_.directory, fmt::format("{}{}", kMetadataName, number));
}

// --- The life.

Status FollowedStore::Start() {
  MutexLock poll(poll_mutex_);
  SILTFS_RETURN_IF_ERROR(
      CreateDirectoryDurably(env_, ParentOf(options_.directory), options_.directory));
  SILTFS_ASSIGN_OR_RETURN(lock_, env_.LockFile(LockPath(options_.directory)));
  SILTFS_RETURN_IF_ERROR(RemoveOldMetadata());
  changes_.emplace(lookups_);
  SILTFS_RETURN_IF_ERROR(claim_.Begin());
  SILTFS_RETURN_IF_ERROR(segments_.Begin());
  Status shown;
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    if (options_.state.interrupted && options_.state.interrupted())
      return Status(StatusCode::kInterrupted, "opening the store was interrupted")
          .At(options_.directory);
    shown.IgnoreError("the next attempt tells");
    const bool restores = !log_;
    shown = restores ? Restore() : PollNow();
    if (!shown.ok() && restores) break;
    if (restores) shown = Show();
    if (shown.ok() || !IsLate(shown)) break;
  }
  if (!shown.ok()) {
    claim_.End().IgnoreError("the writer waits for the age of the claim");
    return shown;
  }
  SILTFS_RETURN_IF_ERROR(Release());
  if (options_.background) thread_ = std::thread([this] { ThreadMain(); });
  return Status::Ok();
}

void FollowedStore::Stop() {
  bool fails = false;
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    fails = !status_.last_error.empty();
    changed_state_.NotifyAll();
  }
  // A bucket that does not answer must not hold up the unmount.
  if (fails && options_.background) Interrupt();
  if (thread_.joinable()) thread_.join();
  MutexLock poll(poll_mutex_);
  if (lock_) claim_.End().IgnoreError("the writer waits for the age of the claim");
}

void FollowedStore::Interrupt() {
  bucket_.Interrupt();
  objects_.Interrupt();
}

void FollowedStore::ThreadMain() {
  std::chrono::nanoseconds pause = options_.interval;
  for (;;) {
    {
      MutexLock lock(mutex_);
      const auto end = std::chrono::steady_clock::now() + pause;
      for (;;) {
        const auto left = end - std::chrono::steady_clock::now();
        if (stopping_ || suspicious_ || left.count() <= 0) break;
        changed_state_.WaitFor(mutex_, left);
      }
      if (stopping_) return;
    }
    const Status polled = Poll();
    const bool quick = polled.ok() || IsLate(polled);
    pause = quick ? options_.interval
                  : std::min<std::chrono::nanoseconds>(
                        pause * 2, std::max<std::chrono::nanoseconds>(kLongestPause, pause));
  }
}

// --- Polls.

FollowedStore::StatePtr FollowedStore::state() const {
  MutexLock lock(mutex_);
  return state_;
}

Status FollowedStore::Poll() {
  MutexLock poll(poll_mutex_);
  TellKernel(/*again=*/true);
  bool suspicious = false;
  {
    MutexLock lock(mutex_);
    suspicious = std::exchange(suspicious_, false);
  }
  // The writer may have given this reader up, which the Keep finds out.
  if (suspicious && !claim_.lapsed()) claim_.Keep(claim_.reached()).IgnoreError("lapsed() tells");
  Status polled = PollNow();
  Status released = Release();
  if (polled.ok() && released.Is(StatusCode::kStale)) {  // the writer has given this reader up
    polled = PollNow();
    released = Release();
  }
  MutexLock lock(mutex_);
  status_.last_error = !polled.ok() ? polled.ToString() : released.ok() ? "" : released.ToString();
  if (log_) status_.newest = std::max(status_.newest, log_->position().sequence);
  if (polled.ok() && state_ && state_->sequence == status_.newest)
    current_at_ns_ = env_.MonotonicNanoseconds();
  ++polls_;
  changed_state_.NotifyAll();
  released.IgnoreError("it is part of the status");
  return polled;
}

Status FollowedStore::PollNow() {
  if (claim_.lapsed()) {
    // Everything that was shown may be gone. The state that the log has from here on is not.
    SILTFS_RETURN_IF_ERROR(claim_.Begin());
    must_show_ = true;
  }
  for (;;) {
    const auto taken =
        log_->Poll(kMostObjects, [this](const std::vector<Mutation>& mutations)
                                     SILTFS_NO_THREAD_SAFETY_ANALYSIS { return Apply(mutations); });
    if (taken.status().Is(StatusCode::kStale)) {
      SILTFS_RETURN_IF_ERROR(Restore());
      MutexLock lock(mutex_);
      ++status_.restarts;
    } else {
      SILTFS_RETURN_IF_ERROR(taken.status());
    }
    const StatePtr shown = state();
    if (must_show_ || !shown || shown->sequence != log_->position().sequence)
      SILTFS_RETURN_IF_ERROR(Show());
    if (taken.ok() && *taken < kMostObjects) return Status::Ok();
  }
}

Status FollowedStore::Apply(const std::vector<Mutation>& mutations) {
  for (const Mutation& mutation : mutations) {
    if (const auto id = ParseSegmentKey(mutation.key)) changed_.insert(*id);
    changes_->Add(mutation.key);
  }
  must_show_ = true;
  return kv_->Write(mutations);
}

Status FollowedStore::Restore() {
  SILTFS_RETURN_IF_ERROR(RemoveOldMetadata());
  const uint64_t number = metadata_number_ + 1;
  const std::string directory = MetadataDirectory(number);
  const auto make_empty = [&](const Manifest& manifest) -> Result<std::unique_ptr<KvStore>> {
    SILTFS_ASSIGN_OR_RETURN(const Superblock superblock, SuperblockOf(manifest.attachment));
    SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(env_, options_.directory, directory));
    SILTFS_RETURN_IF_ERROR(MakeEmptyDirectory(env_, MetadataPath(directory)));
    const Status removed = env_.RemoveFile(LedgerPath(directory));
    if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
    return OpenStoreMetadata(env_, superblock, directory, KvStoreOptions::Mode::kCreate);
  };
  RestoreOptions restore;
  restore.interrupted = options_.state.interrupted;
  SILTFS_ASSIGN_OR_RETURN(RestoredKvStore restored, RestoreKvStore(objects_, make_empty, restore));
  const StatePtr shown = state();
  if (shown && restored.state.sequence < shown->sequence) {
    return Status(StatusCode::kStale,
                  "the bucket is older than what this mount shows: mount it again")
        .At(objects_.name());
  }
  std::shared_ptr<KvStore> kv = std::move(restored.kv);
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, ReadSegmentRecords(*kv->Snapshot()));
  for (const auto& [id, record] : records) changed_.insert(id);
  if (shown) {
    SILTFS_ASSIGN_OR_RETURN(const SegmentRecords before, ReadSegmentRecords(*shown->metadata));
    for (const auto& [id, record] : before) changed_.insert(id);
    SILTFS_RETURN_IF_ERROR(changes_->AddAll(*shown->metadata));
  }
  metadata_number_ = number;
  metadata_[number] = kv;
  kv_ = std::move(kv);
  log_.emplace(objects_, restored.state);
  must_show_ = true;
  return Status::Ok();
}

// Removes the metadata of earlier mounts, and of states that are gone.
Status FollowedStore::RemoveOldMetadata() {
  std::erase_if(metadata_, [](const auto& one) { return one.second.expired(); });
  SILTFS_ASSIGN_OR_RETURN(const auto entries, env_.ListDirectory(options_.directory));
  for (const DirectoryEntry& entry : entries) {
    if (!entry.name.starts_with(kMetadataName)) continue;
    const std::string directory = JoinPath(options_.directory, entry.name);
    const bool in_use = std::ranges::any_of(
        metadata_, [&](const auto& one) { return MetadataDirectory(one.first) == directory; });
    if (in_use) continue;
    SILTFS_RETURN_IF_ERROR(MakeEmptyDirectory(env_, MetadataPath(directory)));
    SILTFS_RETURN_IF_ERROR(env_.RemoveDirectory(MetadataPath(directory)));
    const Status ledger = env_.RemoveFile(LedgerPath(directory));
    if (!ledger.ok() && !ledger.Is(StatusCode::kNotFound)) return ledger;
    SILTFS_RETURN_IF_ERROR(env_.RemoveDirectory(directory));
  }
  return Status::Ok();
}

// --- States.

Status FollowedStore::BringSegments(const KvSnapshot& metadata, std::vector<SegmentId>& gone) {
  const uint32_t epoch = log_->position().data_epoch;
  for (const SegmentId id : changed_) {
    SILTFS_ASSIGN_OR_RETURN(const auto value, metadata.Get(SegmentKey(id)));
    if (!value) {
      gone.push_back(id);
      uncovered_.erase(id);
      continue;
    }
    SILTFS_ASSIGN_OR_RETURN(const SegmentRecord record, SegmentRecord::Decode(*value));
    SILTFS_RETURN_IF_ERROR(segments_.Bring(id, record, epoch));
    if (record.sealed && record.chunks > 0) uncovered_.insert(id);
  }
  return segments_.Commit();
}

// The guide is a cache: without it, searches read more footers.
Status FollowedStore::CoverSealed(SegmentView& view, const Superblock& superblock) {
  if (!guide_) {
    // Only sealed segments: a search scans the blocks of segments that are not covered.
    SegmentRecords sealed;
    for (const SegmentId id : uncovered_)
      sealed.push_back({id, SegmentRecord{.sealed = true, .chunks = 1}});
    SegmentGuide::Options guide;
    guide.directory = GuidePath(options_.directory);
    guide.report = [this](const std::string& sentence) {
      if (options_.state.report) options_.state.report(sentence);
    };
    guide.filters.shape = options_.state.guide_shape;
    guide_ = SegmentGuide::Open(env_, std::move(guide), sealed);
  }
  for (const SegmentId id : uncovered_) {
    if (!guide_->Covers(id)) guide_->NoteSealed(id);
  }
  const Status covered = CoverWaiting(*guide_, view, superblock.uuid, [this](uint64_t) -> Status {
    const auto& interrupted = options_.state.interrupted;
    if (!interrupted || !interrupted()) return Status::Ok();
    return Status(StatusCode::kInterrupted, "opening the store was interrupted")
        .At(options_.directory);
  });
  if (covered.Is(StatusCode::kInterrupted)) return covered;
  covered.IgnoreError("the guide has reported it, and searches read more footers");
  std::erase_if(uncovered_, [this](SegmentId id) { return guide_->Covers(id); });
  return Status::Ok();
}

Status FollowedStore::Show() {
  const LogPosition& position = log_->position();
  auto next = std::make_shared<State>();
  next->kv = kv_;
  next->metadata = kv_->Snapshot();
  next->sequence = position.sequence;
  next->time_ns = position.time_ns;
  next->epoch = position.data_epoch;
  SILTFS_ASSIGN_OR_RETURN(const Superblock superblock, SuperblockOf(position.attachment));
  std::vector<SegmentId> gone;
  SILTFS_RETURN_IF_ERROR(BringSegments(*next->metadata, gone));
  next->segments = segments_.NewView();
  SILTFS_RETURN_IF_ERROR(CoverSealed(*next->segments, superblock));
  FileSystemOptions options = options_.state;
  options.store = options_.directory;
  options.segments = &bucket_;
  SILTFS_ASSIGN_OR_RETURN(next->file_system,
                          OpenState(env_, std::move(options),
                                    {.superblock = superblock,
                                     .metadata = next->metadata,
                                     .segments = next->segments,
                                     .guide = guide_->usable() ? guide_.get() : nullptr}));
  StatePtr before = state();
  NoteSnapshots(before, *next);
  {
    MutexLock lock(mutex_);
    state_ = next;
    status_.commit = next->sequence;
    status_.newest = std::max(status_.newest, next->sequence);
    status_.commit_ns = next->time_ns;
    status_.epoch = next->epoch;
    ++status_.states;
    current_at_ns_ = env_.MonotonicNanoseconds();
    changed_state_.NotifyAll();
  }
  if (before) older_.push_back(before);
  gone_.insert(gone.begin(), gone.end());
  changed_.clear();
  must_show_ = false;
  TellKernel(/*again=*/false);
  return Status::Ok();
}

void FollowedStore::NoteSnapshots(const StatePtr& before, const State& after) {
  if (!before) return;
  const auto old_names = NamesOf(before->file_system->snapshots());
  const auto new_names = NamesOf(after.file_system->snapshots());
  std::vector<std::string> changed;
  std::ranges::set_symmetric_difference(old_names, new_names, std::back_inserter(changed));
  if (!changed.empty()) changes_->AddSnapshots(changed);
}

void FollowedStore::TellKernel(bool again) {
  MutexLock lock(cache_mutex_);
  if (cache_ == nullptr) {
    changes_->Clear();
  } else if (again) {
    changes_->Again(*cache_);
  } else {
    changes_->Tell(*cache_);
  }
}

void FollowedStore::SetKernelCache(KernelCache* cache) {
  MutexLock lock(cache_mutex_);
  cache_ = cache;
}

Status FollowedStore::Release() {
  const StatePtr shown = state();
  if (!shown) return Status::Ok();
  uint64_t reached = shown->sequence;
  std::erase_if(older_, [](const auto& state) { return state.expired(); });
  for (const auto& weak : older_) {
    if (const auto state = weak.lock()) reached = std::min(reached, state->sequence);
  }
  if (older_.empty() && !gone_.empty()) {
    if (guide_) {
      guide_
          ->DropGone([this](SegmentId id)
                         SILTFS_NO_THREAD_SAFETY_ANALYSIS { return gone_.contains(id); })
          .IgnoreError("the guide has reported it");
    }
    for (const SegmentId id : gone_) SILTFS_RETURN_IF_ERROR(segments_.Forget(id));
    gone_.clear();
  }
  if (claim_.lapsed()) return Status::Ok();
  return reached > claim_.reached() || claim_.IsDue() ? claim_.Keep(reached) : Status::Ok();
}

// The thread may be telling the kernel to forget the file whose read has failed, and the kernel
// then waits for this read. So this waits for no lock of the thread, and not for long.
bool FollowedStore::Recover(const StatePtr& state) {
  if (!options_.background) {
    {
      MutexLock lock(mutex_);
      suspicious_ = true;
    }
    Poll().IgnoreError("the caller reports its own failure");
    return this->state() != state;
  }
  const auto end = std::chrono::steady_clock::now() + kRecoverPatience;
  MutexLock lock(mutex_);
  if (state_ != state) return true;
  suspicious_ = true;
  changed_state_.NotifyAll();
  // A poll that runs already may have begun before the failure.
  for (const uint64_t polls = polls_ + 2; state_ == state && polls_ < polls && !stopping_;) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left.count() <= 0 || (!suspicious_ && polls_ + 1 == polls)) break;
    changed_state_.WaitFor(mutex_, left);
  }
  return state_ != state;
}

FollowStatus FollowedStore::status() const {
  MutexLock lock(mutex_);
  FollowStatus status = status_;
  status.lapsed = claim_.lapsed();
  status.behind_seconds = static_cast<double>(env_.MonotonicNanoseconds() - current_at_ns_) / 1e9;
  return status;
}

}  // namespace siltfs
