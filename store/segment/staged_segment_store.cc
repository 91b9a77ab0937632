#include "store/segment/staged_segment_store.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace siltfs {
namespace {

void Append(std::vector<std::string>& to, std::vector<std::string> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

SegmentListing Merge(SegmentListing local, SegmentListing sealed) {
  SegmentListing merged;
  std::set_union(local.ids.begin(), local.ids.end(), sealed.ids.begin(), sealed.ids.end(),
                 std::back_inserter(merged.ids));
  for (const auto part : {&SegmentListing::directories, &SegmentListing::temporaries,
                          &SegmentListing::strays, &SegmentListing::links}) {
    Append(merged.*part, std::move(local.*part));
    Append(merged.*part, std::move(sealed.*part));
  }
  return merged;
}

}  // namespace

StagedSegmentStore::StagedSegmentStore(Env& env, const std::string& store, SegmentStore& sealed)
    : env_(env), store_(store), local_(env, store), sealed_(sealed) {}

std::optional<SegmentId> StagedSegmentStore::IdOf(std::string_view name) const {
  if (const auto id = sealed_.IdOf(name)) return id;
  return local_.IdOf(name);
}

Result<std::unique_ptr<const ReadableFile>> StagedSegmentStore::Open(SegmentId id) {
  auto local = local_.Open(id);
  if (!local.status().Is(StatusCode::kNotFound)) return local;
  return sealed_.Open(id);
}

Status StagedSegmentStore::Put(SegmentId id, const SegmentSource& source) {
  return sealed_.Put(id, source);
}

Status StagedSegmentStore::PutLocal(SegmentId id) {
  SILTFS_ASSIGN_OR_RETURN(const bool is_local, local_.Contains(id));
  if (!is_local) return Status::Ok();
  const Status put = sealed_.Put(id, BuiltSegment(env_, store_, id));
  if (!put.Is(StatusCode::kAlreadyExists)) return put;
  put.IgnoreError("the file is the store's own, and is found first");
  return Status::Ok();
}

// Moves the old content to the other store first. So the segment does not change when Recover
// removes the file. If the other store has a content that is not this store's, the file stays until
// the replacement has taken the place of that content.
Status StagedSegmentStore::Replace(SegmentId id, const SegmentSource& source) {
  SILTFS_RETURN_IF_ERROR(PutLocal(id));
  SILTFS_RETURN_IF_ERROR(sealed_.Replace(id, source));
  SILTFS_ASSIGN_OR_RETURN(const bool is_local, local_.Contains(id));
  return is_local ? local_.Remove(id) : Status::Ok();
}

Status StagedSegmentStore::Remove(SegmentId id) {
  SILTFS_RETURN_IF_ERROR(local_.Remove(id));
  return sealed_.Remove(id);
}

// A segment in a file is this store's own, whatever the other store has.
std::optional<uint32_t> StagedSegmentStore::EpochOf(SegmentId id) {
  const auto is_local = local_.Contains(id);
  if (!is_local.ok() || *is_local) return std::nullopt;
  return sealed_.EpochOf(id);
}

// The files are listed first. A segment that is being put is then in at least one of the lists.
Result<SegmentListing> StagedSegmentStore::List() {
  SILTFS_ASSIGN_OR_RETURN(SegmentListing local, local_.List());
  SILTFS_ASSIGN_OR_RETURN(SegmentListing sealed, sealed_.List());
  return Merge(std::move(local), std::move(sealed));
}

Result<SegmentListing> StagedSegmentStore::Recover() {
  SILTFS_ASSIGN_OR_RETURN(SegmentListing local, local_.Recover());
  SILTFS_ASSIGN_OR_RETURN(SegmentListing sealed, sealed_.Recover());
  for (const SegmentId id : local.ids) {
    if (std::binary_search(sealed.ids.begin(), sealed.ids.end(), id))
      SILTFS_RETURN_IF_ERROR(PutLocal(id));
  }
  return Merge(std::move(local), std::move(sealed));
}

Status StagedSegmentStore::FinishPuts(const std::function<bool(SegmentId)>& is_sealed) {
  SILTFS_ASSIGN_OR_RETURN(const SegmentListing local, local_.List());
  for (const SegmentId id : local.ids) {
    if (!is_sealed(id)) continue;
    SILTFS_RETURN_IF_ERROR(PutLocal(id));
  }
  return sealed_.FinishPuts(is_sealed);
}

Status CheckAnswered(const SegmentStore& segments, uint64_t before) {
  if (segments.UnansweredReads() == before) return Status::Ok();
  return Status(StatusCode::kIoError, "did not answer; try again later").At(segments.name());
}

std::unique_ptr<SegmentStore> OpenSegmentStore(Env& env, const std::string& store,
                                               SegmentStore* sealed) {
  if (sealed == nullptr) return std::make_unique<DirectorySegmentStore>(env, store);
  return std::make_unique<StagedSegmentStore>(env, store, *sealed);
}

}  // namespace siltfs
