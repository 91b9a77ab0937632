// A SegmentStore in the store's directory, with the files of segment_files.h. Open segments are in
// the same place: a segment that is sealed stays where it is.
//
// Cost: Open is one open(2), and reads go to the Env's file without another layer. Put does nothing
// for a segment that was built in its place. Put of any other source, and Replace, rename the
// source, which must be in the same file system, and sync the directory. Remove unlinks the file
// and syncs the directory.
//
// Thread-safety, durability and errors: segment_store.h. `env` must outlive the store.
#pragma once

#include <memory>
#include <string>

#include "store/segment/segment_store.h"

namespace siltfs {

class DirectorySegmentStore final : public SegmentStore {
 public:
  // `store` is the path of the store. STORE/segments must exist for all calls but List.
  DirectorySegmentStore(Env& env, std::string store);

  const std::string& name() const override { return name_; }
  std::string NameOf(SegmentId id) const override;
  std::optional<SegmentId> IdOf(std::string_view name) const override;
  Result<std::unique_ptr<const ReadableFile>> Open(SegmentId id) override;
  uint64_t UnansweredReads() const override { return 0; }
  Status Put(SegmentId id, const SegmentSource& source) override;
  Status Replace(SegmentId id, const SegmentSource& source) override;
  Status Remove(SegmentId id) override;
  Result<SegmentListing> List() override;
  Result<SegmentListing> Recover() override;

  // Whether the segment's file exists.
  Result<bool> Contains(SegmentId id);

 private:
  Result<bool> HoldsSame(SegmentId id, const SegmentSource& source);

  Env& env_;
  const std::string store_;
  const std::string name_;
};

}  // namespace siltfs
