#include "fs/shipping/shipped_kv_store.h"

#include <utility>

#include "fs/records/former_segments.h"
#include "fs/records/position_record.h"
#include "fs/records/schema.h"
#include "store/base/thread_annotations.h"

namespace siltfs {
namespace {

class MutationList final : public MutationSink {
 public:
  void Put(std::string_view key, std::string_view value) override {
    mutations.push_back({std::string(key), std::string(value)});
  }
  void Remove(std::string_view key) override {
    mutations.push_back({std::string(key), std::nullopt});
  }
  std::vector<Mutation> mutations;
};

class ShippedKvStore final : public KvStore {
 public:
  ShippedKvStore(std::unique_ptr<KvStore> base, Shipper& shipper, ShippedData* data,
                 ShippingOptions options, uint64_t newest)
      : base_(std::move(base)),
        shipper_(shipper),
        data_(data),
        options_(std::move(options)),
        epoch_(shipper.epoch()),
        sequence_(newest) {}
  ~ShippedKvStore() override { shipper_.Stop(); }

  Status Begin(const std::vector<Mutation>& mutations) {
    shipper_.Start([this] { return CommittedSnapshot(); });
    // So that a later open knows the epoch.
    return Commit([&](MutationSink& sink) { PassTo(sink, mutations); }).status();
  }

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return base_->Get(key);
  }
  std::shared_ptr<const KvSnapshot> Snapshot() const override { return base_->Snapshot(); }
  Status WriteFrom(const std::function<void(MutationSink&)>& fill) override {
    return Commit(fill).status();
  }
  Status AwaitShipped() override {
    return options_.wait_for_bucket ? shipper_.WaitShipped(LastSequence(), std::nullopt)
                                    : Status::Ok();
  }
  Result<std::unique_ptr<KvLoad>> NewLoad() override;
  Status VerifyChecksums() const override { return base_->VerifyChecksums(); }
  uint64_t LoggedChanges() const override { return base_->LoggedChanges(); }
  uint64_t DiskBytes() const override { return base_->DiskBytes(); }
  Status CloseCleanly() override;

 private:
  class ShippedLoad final : public KvLoad {
   public:
    ShippedLoad(ShippedKvStore& store, std::unique_ptr<KvLoad> base)
        : store_(store), base_(std::move(base)) {}
    Status Add(const KvRun& run) override { return base_->Add(run); }
    Status Load() override { return store_.FinishLoad(*base_); }

   private:
    ShippedKvStore& store_;
    std::unique_ptr<KvLoad> base_;
  };

  Status FinishLoad(KvLoad& load);
  // Writes locally, and passes the commit to the shipper; returns the sequence.
  Result<uint64_t> Commit(const std::function<void(MutationSink&)>& fill)
      SILTFS_EXCLUDES(write_mutex_);
  // Writes locally; returns the sequence.
  Result<uint64_t> WriteLocally(const std::function<void(MutationSink&)>& fill)
      SILTFS_REQUIRES(write_mutex_);
  // See Shipper::CommittedSnapshot.
  std::shared_ptr<const KvSnapshot> CommittedSnapshot() {
    MutexLock lock(write_mutex_);
    return base_->Snapshot();
  }
  uint64_t LastSequence() {
    MutexLock lock(write_mutex_);
    return sequence_;
  }

  const std::unique_ptr<KvStore> base_;
  Shipper& shipper_;
  ShippedData* const data_;
  const ShippingOptions options_;
  const uint32_t epoch_;
  // Held from the local write of a commit until the shipper knows of the commit, and never while a
  // caller waits for the shipper.
  Mutex write_mutex_;
  uint64_t sequence_ SILTFS_GUARDED_BY(write_mutex_);
};

Result<uint64_t> ShippedKvStore::WriteLocally(const std::function<void(MutationSink&)>& fill) {
  SILTFS_RETURN_IF_ERROR(shipper_.CheckNotFenced());
  const uint64_t sequence = sequence_ + 1;
  const std::string position = PositionRecord{sequence, epoch_}.Encode();
  SILTFS_RETURN_IF_ERROR(base_->WriteFrom([&](MutationSink& sink) {
    fill(sink);
    sink.Put(kBucketPositionKey, position);
  }));
  sequence_ = sequence;
  return sequence;
}

Result<uint64_t> ShippedKvStore::Commit(const std::function<void(MutationSink&)>& fill) {
  MutationList list;
  fill(list);
  MutexLock lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(shipper_.CheckNotFenced());
  SILTFS_RETURN_IF_ERROR(NoteFormerSegments(*base_, list.mutations));
  SILTFS_ASSIGN_OR_RETURN(const uint64_t sequence, WriteLocally([&list](MutationSink& sink) {
                            PassTo(sink, list.mutations);
                          }));
  list.Put(kBucketPositionKey, PositionRecord{sequence, epoch_}.Encode());
  if (data_ != nullptr) data_->Committed(list.mutations);
  CommitEncoder commit(sequence);
  PassTo(commit, list.mutations);
  shipper_.Enqueue(sequence, commit.Take());
  return sequence;
}

Result<std::unique_ptr<KvLoad>> ShippedKvStore::NewLoad() {
  SILTFS_RETURN_IF_ERROR(shipper_.CheckNotFenced());
  SILTFS_ASSIGN_OR_RETURN(auto load, base_->NewLoad());
  return std::unique_ptr<KvLoad>(std::make_unique<ShippedLoad>(*this, std::move(load)));
}

// No commit may come between the load and the need of a checkpoint: it could refer to records of
// the load, and be shipped without them.
Status ShippedKvStore::FinishLoad(KvLoad& load) {
  MutexLock lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(load.Load());
  SILTFS_ASSIGN_OR_RETURN(const uint64_t sequence, WriteLocally([](MutationSink&) {}));
  shipper_.NeedCheckpoint(sequence);
  return Status::Ok();
}

Status ShippedKvStore::CloseCleanly() {
  const Status shipped = shipper_.WaitShipped(LastSequence(), options_.close_timeout);
  if (!shipped.ok() && options_.given_up) options_.given_up();
  if (shipped.ok() && options_.shipped_at_close) options_.shipped_at_close();
  shipper_.Stop();
  if (shipped.ok()) shipper_.EndLease().IgnoreError("the lease ends by itself");
  const Status closed = base_->CloseCleanly();
  // Commits that wait for a silent bucket are shipped after the next open. Commits of a fenced
  // store are lost.
  const bool may_stay_behind = !options_.wait_for_bucket && !shipped.Is(StatusCode::kReadOnly);
  if (!closed.ok() || may_stay_behind) {
    shipped.IgnoreError("lag() has the last error; the local store is complete");
    return closed;
  }
  return shipped;
}

}  // namespace

Result<std::unique_ptr<KvStore>> NewShippedKvStore(
    std::unique_ptr<KvStore> base, Shipper& shipper, ShippedData* data, ShippingOptions options,
    const std::function<Result<std::vector<Mutation>>(const KvStore&)>& begun) {
  SILTFS_ASSIGN_OR_RETURN(const PositionRecord position, ReadPosition(*base->Snapshot()));
  SILTFS_RETURN_IF_ERROR(shipper.Begin(position.sequence, position.epoch));
  std::vector<Mutation> first;
  if (begun) {
    SILTFS_ASSIGN_OR_RETURN(first, begun(*base));
  }
  auto store = std::make_unique<ShippedKvStore>(std::move(base), shipper, data, std::move(options),
                                                shipper.Position());
  SILTFS_RETURN_IF_ERROR(store->Begin(first));
  return std::unique_ptr<KvStore>(std::move(store));
}

}  // namespace siltfs
