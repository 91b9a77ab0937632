// The file system of a mount that follows a writer on another machine: each call goes to the state
// that is shown when the call begins (followed_store.h).
//
// A file that is open while another state is shown goes on under its inode number. It then has the
// content of the new state; if it is gone there, calls fail with kStale. A listing that has begun
// goes on in the new state, and visits the entries behind the last one that it has visited.
//
// All changes fail with kReadOnly. If a read fails because the writer has given this mount up, the
// call waits a few seconds for the newest state, and is repeated.
//
// Thread-safety, errors and ownership: as FileSystem. The interfaces that it returns live as long
// as this object.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/follow/followed_store.h"
#include "fs/interface/content_source.h"
#include "fs/interface/entry_store.h"
#include "fs/interface/file_system.h"
#include "fs/interface/snapshot_transfers.h"
#include "fs/interface/snapshots.h"
#include "fs/interface/space_usage.h"
#include "fs/interface/store_maintenance.h"

namespace siltfs {

class FollowingFileSystem final : public FileSystem {
 public:
  // The store has been started, and must outlive the file system.
  explicit FollowingFileSystem(FollowedStore& store);
  ~FollowingFileSystem() override;

  Result<Attributes> Lookup(InodeNumber parent, std::string_view name) override;
  void Forget(InodeNumber inode, uint64_t lookups) override;
  Result<Attributes> MakeNode(InodeNumber, std::string_view, uint32_t, uint64_t, Caller) override {
    return ReadOnly();
  }
  Result<Attributes> MakeDirectory(InodeNumber, std::string_view, uint32_t, Caller) override {
    return ReadOnly();
  }
  Result<Attributes> MakeSymlink(InodeNumber, std::string_view, std::string_view, Caller) override {
    return ReadOnly();
  }
  Result<Attributes> Link(InodeNumber, InodeNumber, std::string_view) override {
    return ReadOnly();
  }
  Status Unlink(InodeNumber, std::string_view) override { return ReadOnly(); }
  Status RemoveDirectory(InodeNumber, std::string_view) override { return ReadOnly(); }
  Status Rename(InodeNumber, std::string_view, InodeNumber, std::string_view, RenameMode) override {
    return ReadOnly();
  }
  Result<std::string> ReadLink(InodeNumber inode) override;

  Result<Attributes> GetAttributes(InodeNumber inode) override;
  Result<Attributes> SetAttributes(InodeNumber, const AttributeChange&) override {
    return ReadOnly();
  }
  Result<std::string> GetXattr(InodeNumber inode, std::string_view name) override;
  Status SetXattr(InodeNumber, std::string_view, std::string_view, XattrMode) override {
    return ReadOnly();
  }
  Result<std::vector<std::string>> ListXattrs(InodeNumber inode) override;
  Status RemoveXattr(InodeNumber, std::string_view) override { return ReadOnly(); }

  Status ReadDirectory(InodeNumber directory, uint64_t cookie,
                       const std::function<bool(const DirectoryRecord&)>& visit) override;

  Result<Attributes> CreateFile(InodeNumber, std::string_view, uint32_t, Caller) override {
    return ReadOnly();
  }
  Result<Attributes> MakeTemporaryFile(InodeNumber, uint32_t, Caller) override {
    return ReadOnly();
  }
  Status OpenFile(InodeNumber inode, bool truncate) override;
  Status CheckOpenForWriting(InodeNumber) const override { return ReadOnly(); }
  void ReleaseFile(InodeNumber inode) override;
  Result<size_t> Read(InodeNumber inode, uint64_t offset, MutableByteView out) override;
  Status Write(InodeNumber, uint64_t, ByteView, Privileges, WriteTimes) override {
    return ReadOnly();
  }
  Status Allocate(InodeNumber, AllocateMode, uint64_t, uint64_t, bool, Privileges) override {
    return ReadOnly();
  }
  Result<std::optional<uint64_t>> Seek(InodeNumber inode, uint64_t offset,
                                       SeekTarget target) override;
  Result<uint64_t> CopyRange(InodeNumber, uint64_t, InodeNumber, uint64_t, uint64_t,
                             Privileges) override {
    return ReadOnly();
  }
  Status Fsync(InodeNumber) override { return Status::Ok(); }

  Status SyncAll() override { return Status::Ok(); }
  Result<SpaceInfo> GetSpace() override { return store_.state()->file_system->GetSpace(); }
  bool NearlyFull() const override { return false; }
  Result<SpaceInfo> GetSpaceOf(InodeNumber inode) override;
  EntryStore& entries() override;
  ContentSource& contents() override;
  Snapshots& snapshots() override;
  DirectoryQuotas* quotas() override { return nullptr; }
  SnapshotTransfers& transfers() override;
  StoreMaintenance& maintenance() override;
  UsageMeasures& usage() override;
  // Stops following.
  Status Close() override;

 private:
  class Parts;

  Status ReadOnly() const;
  // Calls `call` with the shown state, and again with the next one if it fails because bytes are
  // gone.
  template <typename Call>
  auto Try(const Call& call);

  FollowedStore& store_;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace siltfs
