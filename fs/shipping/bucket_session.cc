#include "fs/shipping/bucket_session.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fs/records/schema.h"
#include "fs/segments/fenced_writer.h"
#include "fs/segments/segment_tables.h"
#include "fs/shipping/shipped_kv_store.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_source.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

// A round of the shipper fails after this time, and is repeated.
constexpr std::chrono::minutes kUploadTimeout(1);
// A close waits this long for objects to be deleted. The next open deletes the others.
constexpr std::chrono::seconds kDeletionTimeout(5);

ShippingOptions WithSuperblock(Env& env, const BucketSessionOptions& options) {
  ShippingOptions shipping = options.shipping;
  shipping.attachment = [&env, store = options.store]() -> Result<std::string> {
    SILTFS_ASSIGN_OR_RETURN(const SuperblockState state, ReadSuperblock(env, store));
    return EncodeSuperblock(state.superblock);
  };
  return shipping;
}

}  // namespace

// Segments that are opened after the file system was given its place of segments.
class BucketSession::LateSegments final : public SegmentStore {
 public:
  explicit LateSegments(std::string name) : name_(std::move(name)) {}

  void Set(SegmentStore& base) { base_ = &base; }

  const std::string& name() const override { return base_ == nullptr ? name_ : base_->name(); }
  std::string NameOf(SegmentId id) const override { return base_->NameOf(id); }
  std::optional<SegmentId> IdOf(std::string_view name) const override { return base_->IdOf(name); }
  Result<std::unique_ptr<const ReadableFile>> Open(SegmentId id) override {
    return base_->Open(id);
  }
  uint64_t UnansweredReads() const override {
    return base_ == nullptr ? 0 : base_->UnansweredReads();
  }
  Status Put(SegmentId id, const SegmentSource& source) override { return base_->Put(id, source); }
  Status PrepareReplace(SegmentId id) override { return base_->PrepareReplace(id); }
  Status Replace(SegmentId id, const SegmentSource& source) override {
    return base_->Replace(id, source);
  }
  Status Remove(SegmentId id) override { return base_->Remove(id); }
  std::optional<uint32_t> EpochOf(SegmentId id) override { return base_->EpochOf(id); }
  Result<SegmentListing> List() override { return base_->List(); }
  Result<SegmentListing> Recover() override { return base_->Recover(); }
  Status FinishPuts(const std::function<bool(SegmentId)>& is_sealed) override {
    return base_->FinishPuts(is_sealed);
  }

 private:
  const std::string name_;
  SegmentStore* base_ = nullptr;
};

BucketSession::BucketSession(Env& env, ObjectStore& objects, BucketSessionOptions options)
    : env_(env),
      objects_(objects),
      options_(std::move(options)),
      shipper_(env, objects, WithSuperblock(env, options_), &tails_),
      tails_(env, options_.store, objects,
             {[this] { return WaitForUploads(); },
              [this](SegmentId id) { return bucket_->IsUploaded(id); }}),
      late_(std::make_unique<LateSegments>(objects.name())) {}

BucketSession::~BucketSession() { shipper_.Stop(); }

SegmentStore& BucketSession::segments() { return *late_; }

Result<std::unique_ptr<KvStore>> BucketSession::Layer(std::unique_ptr<KvStore> kv) {
  SILTFS_RETURN_IF_ERROR(tails_.Load(*kv));
  ShippingOptions shipping = options_.shipping;
  shipping.shipped_at_close = [this] { DeleteUseless(); };
  return NewShippedKvStore(
      std::move(kv), shipper_, &tails_, std::move(shipping),
      [this](const KvStore& store) -> Result<std::vector<Mutation>> {
        BucketOptions bucket = options_.bucket;
        bucket.epoch = shipper_.epoch();
        bucket.gate = &shipper_;
        if (!options_.shipping.background) bucket.upload_threads = 0;
        bucket_ = std::make_unique<BucketSegmentStore>(env_, objects_, std::move(bucket));
        shipped_ =
            std::make_unique<ShippedSegmentStore>(*bucket_, shipper_, options_.change_timeout);
        late_->Set(*shipped_);
        const auto metadata = store.Snapshot();
        SILTFS_ASSIGN_OR_RETURN(EpochFloors floors, ReadEpochFloors(*metadata));
        SILTFS_RETURN_IF_ERROR(RemoveForeign(store, floors));
        SILTFS_RETURN_IF_ERROR(PinAnnounced(store));
        SILTFS_ASSIGN_OR_RETURN(const UnusedSegments unused, ReadUnusedSegments(*metadata));
        floors.Begin(shipper_.epoch(), unused);
        return std::vector<Mutation>{{std::string(kEpochFloorsKey), floors.Encode()}};
      });
}

Status BucketSession::RemoveForeign(const KvStore& kv, const EpochFloors& floors) {
  SILTFS_ASSIGN_OR_RETURN(const SegmentListing listing, bucket_->List());
  for (const SegmentId id : listing.ids) {
    SILTFS_ASSIGN_OR_RETURN(const bool foreign, IsForeign(kv, floors, id));
    if (foreign) SILTFS_RETURN_IF_ERROR(bucket_->Remove(id));
  }
  return Status::Ok();
}

// Without a whole local file, the object of a segment may be all that there is, so it stays. Beside
// a file, the store's own object is there only if the segment is sealed, and then it has the size
// of the segment: a conversion of the store was interrupted, and FinishPuts compares the two.
Result<bool> BucketSession::IsForeign(const KvStore& kv, const EpochFloors& floors, SegmentId id) {
  SILTFS_ASSIGN_OR_RETURN(const auto value, kv.Get(SegmentKey(id)));
  if (!value) {
    SILTFS_ASSIGN_OR_RETURN(const auto removed, kv.Get(RemovedSegmentKey(id)));
    return !removed;
  }
  const auto content = bucket_->Current(id);
  if (!content || !bucket_->IsUploaded(id)) return false;
  const auto file = env_.GetFileInfo(SegmentPath(options_.store, id));
  if (file.status().Is(StatusCode::kNotFound)) return false;
  SILTFS_RETURN_IF_ERROR(file.status());
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecord record, SegmentRecord::Decode(*value));
  if (!record.sealed) return true;
  if (file->size != record.length) return false;
  if (IsOfFencedWriter(*bucket_, id, floors)) return true;
  SILTFS_ASSIGN_OR_RETURN(const auto announced, kv.Get(ReplacementKey(id)));
  return content->size != record.length && !announced;
}

void BucketSession::DeleteUseless() {
  if (bucket_->GetStatus().deletions_waiting == 0) return;
  const Status looked = shipper_.LookAtReaders();
  if (!looked.ok()) return looked.IgnoreError("the next open deletes the objects");
  bucket_->DeleteDue(kDeletionTimeout);
}

Status BucketSession::PinAnnounced(const KvStore& kv) {
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords announced, ReadReplacements(*kv.Snapshot()));
  for (const auto& [id, record] : announced) {
    if (!bucket_->IsUploaded(id)) continue;  // it is put with the new content of this machine
    // The file is found first, so the object is not this store's.
    SILTFS_ASSIGN_OR_RETURN(const bool is_local, IsThere(env_, SegmentPath(options_.store, id)));
    if (is_local) continue;
    const auto content = bucket_->Open(id);
    if (content.status().Is(StatusCode::kNotFound)) continue;
    SILTFS_RETURN_IF_ERROR(content.status());
    SILTFS_RETURN_IF_ERROR(PutAgain(id, **content));
  }
  return Status::Ok();
}

Status BucketSession::PutAgain(SegmentId id, const ReadableFile& content) {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  const SegmentSource copy = BuiltReplacement(env_, options_.store, id);
  SILTFS_RETURN_IF_ERROR(CreateSegmentDirectory(env_, options_.store, id));
  const Status removed = env_.RemoveFile(copy.path);
  if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
  SILTFS_ASSIGN_OR_RETURN(const auto file, env_.OpenFile(copy.path, {.mode = OpenMode::kCreate}));
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, content.Size());
  Bytes piece(std::min(size, kPiece));
  for (uint64_t at = 0; at < size; at += kPiece) {
    piece.resize(std::min(size - at, kPiece));
    SILTFS_RETURN_IF_ERROR(ReadExactly(content, at, piece));
    SILTFS_RETURN_IF_ERROR(file->Write(at, piece));
  }
  SILTFS_RETURN_IF_ERROR(file->Sync());
  SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(ParentOf(copy.path)));
  return bucket_->Replace(id, copy);
}

Status BucketSession::WaitForUploads() {
  // Without threads, one attempt for each segment is made here. The store may seal another segment
  // meanwhile, which needs another round.
  if (!options_.shipping.background) {
    constexpr int kMostRounds = 100;
    Status waited;
    for (int round = 0; round < kMostRounds; ++round) {
      waited.IgnoreError("the next round tells");
      SILTFS_RETURN_IF_ERROR(bucket_->RunBackground());
      waited = bucket_->WaitForUploads(std::chrono::nanoseconds(0));
      if (waited.ok() || !bucket_->GetStatus().uploads.last_error.empty()) break;
    }
    return waited;
  }
  bucket_->GateMoved();
  return bucket_->WaitForUploads(kUploadTimeout);
}

Status BucketSession::AwaitAll(std::chrono::nanoseconds timeout) {
  SILTFS_RETURN_IF_ERROR(shipper_.WaitShipped(shipper_.Position(), timeout));
  return bucket_->WaitForUploads(timeout);
}

void BucketSession::Interrupt() {
  shipper_.Stop();
  if (bucket_) bucket_->Interrupt();
  objects_.Interrupt();
}

}  // namespace siltfs
