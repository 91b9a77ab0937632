#include "store/bucket/bucket_segment_store.h"

#include <utility>

#include "store/bucket/bucket_core.h"
#include "store/bucket/bucket_reader.h"

namespace siltfs {

BucketSegmentStore::BucketSegmentStore(Env& env, ObjectStore& objects, BucketOptions options)
    : core_(std::make_shared<BucketCore>(env, objects, std::move(options))) {}

BucketSegmentStore::~BucketSegmentStore() { core_->Close(); }

const std::string& BucketSegmentStore::name() const { return core_->name(); }

std::string BucketSegmentStore::NameOf(SegmentId id) const { return core_->NameOf(id); }

std::optional<SegmentId> BucketSegmentStore::IdOf(std::string_view name) const {
  return ParseSegmentStem(name.substr(name.rfind('/') + 1));
}

Result<std::unique_ptr<const ReadableFile>> BucketSegmentStore::Open(SegmentId id) {
  SILTFS_ASSIGN_OR_RETURN(const SegmentContent content, core_->AddReader(id));
  return std::unique_ptr<const ReadableFile>(std::make_unique<BucketReader>(core_, content));
}

uint64_t BucketSegmentStore::UnansweredReads() const { return core_->fetcher().unanswered(); }

Status BucketSegmentStore::Put(SegmentId id, const SegmentSource& source) {
  return core_->Put(id, source, /*must_match=*/true);
}

Status BucketSegmentStore::Replace(SegmentId id, const SegmentSource& source) {
  return core_->Put(id, source, /*must_match=*/false);
}

Status BucketSegmentStore::Remove(SegmentId id) { return core_->Remove(id); }

Result<SegmentListing> BucketSegmentStore::List() { return core_->List(); }

Result<SegmentListing> BucketSegmentStore::Recover() {
  SILTFS_ASSIGN_OR_RETURN(SegmentListing listing, core_->List());
  SILTFS_RETURN_IF_ERROR(core_->Resume());
  return listing;
}

Status BucketSegmentStore::FinishPuts(const std::function<bool(SegmentId)>& /*is_sealed*/) {
  return core_->Resume();
}

Status BucketSegmentStore::WaitForUploads(std::chrono::nanoseconds timeout) {
  return core_->WaitForUploads(timeout);
}

bool BucketSegmentStore::IsUploaded(SegmentId id) const { return core_->IsUploaded(id); }

std::optional<uint32_t> BucketSegmentStore::EpochOf(SegmentId id) {
  const auto content = core_->Current(id);
  if (!content) return std::nullopt;
  return content->id.epoch();
}

std::optional<SegmentContent> BucketSegmentStore::Current(SegmentId id) const {
  return core_->Current(id);
}

Result<std::vector<SegmentContent>> BucketSegmentStore::ContentsOf(SegmentId id) {
  return core_->ContentsOf(id);
}

void BucketSegmentStore::Adopt(const SegmentContent& content) { core_->Adopt(content); }

void BucketSegmentStore::Release(SegmentId id) { core_->Release(id); }

std::unique_ptr<const ReadableFile> BucketSegmentStore::OpenContent(const SegmentContent& content) {
  core_->AddReaderOf(content.id);
  return std::make_unique<BucketReader>(core_, content);
}

void BucketSegmentStore::GateMoved() { core_->GateMoved(); }

void BucketSegmentStore::DeleteDue(std::chrono::nanoseconds timeout) { core_->DeleteDue(timeout); }

Status BucketSegmentStore::RunBackground() { return core_->RunBackground(); }

void BucketSegmentStore::Interrupt() { core_->Interrupt(); }

BucketStatus BucketSegmentStore::GetStatus() const { return core_->GetStatus(); }

}  // namespace siltfs
