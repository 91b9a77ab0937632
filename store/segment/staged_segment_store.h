// A SegmentStore whose open segments are files in the store's directory and whose sealed segments
// are in another SegmentStore. With it, every caller sees one SegmentStore with all segments.
//
// A segment moves once: Put hands its file to the other store, which takes the content and then
// removes the file. Between these two steps, and after a crash between them, the directory and the
// other store both have the segment, with the same content. So Open looks for the file first. If
// there is no file, the segment has already been put, or does not exist. Recover removes the file
// of a segment that the other store has, too.
//
// Replacements are built in the directory, too, and handed over in the same way. If the old content
// is still a local file, it is put first.
//
// In a bucket, the other store may have a content that a fenced writer has put. Recover, FinishPuts
// and Replace therefore compare it with the file, and leave a file that differs.
//
// Thread-safety, durability and errors: segment_store.h. `env` and `sealed` must outlive the store,
// and its readers may outlive all of them.
#pragma once

#include <memory>
#include <string>

#include "store/segment/directory_segment_store.h"
#include "store/segment/segment_store.h"

namespace siltfs {

class StagedSegmentStore final : public SegmentStore {
 public:
  // `store` is the path of the store; STORE/segments must exist for all calls but List.
  StagedSegmentStore(Env& env, const std::string& store, SegmentStore& sealed);

  const std::string& name() const override { return sealed_.name(); }
  std::string NameOf(SegmentId id) const override { return sealed_.NameOf(id); }
  std::optional<SegmentId> IdOf(std::string_view name) const override;
  Result<std::unique_ptr<const ReadableFile>> Open(SegmentId id) override;
  uint64_t UnansweredReads() const override { return sealed_.UnansweredReads(); }
  Status Put(SegmentId id, const SegmentSource& source) override;
  Status PrepareReplace(SegmentId id) override { return sealed_.PrepareReplace(id); }
  Status Replace(SegmentId id, const SegmentSource& source) override;
  Status Remove(SegmentId id) override;
  std::optional<uint32_t> EpochOf(SegmentId id) override;
  Result<SegmentListing> List() override;
  Result<SegmentListing> Recover() override;
  Status FinishPuts(const std::function<bool(SegmentId)>& is_sealed) override;

 private:
  // Puts the segment, if it is in a local file.
  Status PutLocal(SegmentId id);

  Env& env_;
  const std::string store_;
  DirectorySegmentStore local_;
  SegmentStore& sealed_;
};

}  // namespace siltfs
