#include "fs/snapshots/routed_file_system.h"

#include <algorithm>
#include <utility>

#include "fs/records/directory_entry.h"

namespace siltfs {
namespace {

constexpr uint32_t kDirectoryType = 0040000;
constexpr uint32_t kRegularType = 0100000;
constexpr uint32_t kDirectoryMode = kDirectoryType | 0555;
// The directory of snapshots comes last in a listing of the root directory.
constexpr uint64_t kDirectoryCookie = uint64_t{1} << 62;

// Whether the change may come from the kernel's cache of a file that is not open.
bool IsWriteBack(const AttributeChange& change) {
  return change.mtime && change.ctime && !change.atime && !change.size && !change.mode &&
         !change.uid && !change.gid;
}

Status ReadOnly() { return {StatusCode::kReadOnly, "a snapshot cannot be changed"}; }

}  // namespace

RoutedFileSystem::RoutedFileSystem(std::unique_ptr<FileSystem> live, OperationGate& gate,
                                   RolledBackInodes& rolled_back, SnapshotTrees& trees,
                                   SnapshotDirectoryMode mode, uint64_t root,
                                   SnapshotTrees::View view)
    : owned_(std::move(live)),
      live_(owned_.get()),
      gate_(gate),
      rolled_back_(rolled_back),
      trees_(trees),
      mode_(mode),
      root_(root),
      view_(view) {}

RoutedFileSystem::RoutedFileSystem(FileSystem& live, OperationGate& gate,
                                   RolledBackInodes& rolled_back, SnapshotTrees& trees,
                                   uint64_t snapshot, SnapshotTrees::View view)
    : live_(&live),
      gate_(gate),
      rolled_back_(rolled_back),
      trees_(trees),
      mode_(SnapshotDirectoryMode::kOff),
      root_(snapshot),
      view_(view) {}

RoutedFileSystem::~RoutedFileSystem() {
  if (!owned_) trees_.RemoveView(view_);
}

SnapshotInode RoutedFileSystem::Split(InodeNumber shown) const {
  return root_ != 0 ? SnapshotInode{root_, shown} : SplitSnapshotInode(shown);
}

Status RoutedFileSystem::CheckLive(InodeNumber shown) const {
  return IsLive(shown) ? Status::Ok() : ReadOnly();
}

Status RoutedFileSystem::CheckLiveName(InodeNumber parent, std::string_view name) const {
  SILTFS_RETURN_IF_ERROR(CheckLive(parent));
  return IsDirectoryName(parent, name) ? ReadOnly() : Status::Ok();
}

Status RoutedFileSystem::CheckNewName(InodeNumber parent, std::string_view name) const {
  SILTFS_RETURN_IF_ERROR(CheckLive(parent));
  if (!IsDirectoryName(parent, name)) return Status::Ok();
  return {StatusCode::kAlreadyExists, "the name is that of the directory of snapshots"};
}

// --- The directory of snapshots

Attributes RoutedFileSystem::DirectoryAttributes() const {
  Attributes attributes;
  attributes.inode = kSnapshotDirectory;
  attributes.mode = kDirectoryMode;
  attributes.links = 2;
  for (const SnapshotInfo& snapshot : live_->snapshots().List()) {
    ++attributes.links;
    attributes.mtime = std::max(attributes.mtime, snapshot.created);
  }
  attributes.atime = attributes.ctime = attributes.btime = attributes.mtime;
  return attributes;
}

Result<Attributes> RoutedFileSystem::LookupInDirectory(std::string_view name) {
  if (name == ".") return DirectoryAttributes();
  if (name == "..") {
    SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
    return live_->Lookup(kRootInode, ".");
  }
  SILTFS_ASSIGN_OR_RETURN(const SnapshotInfo found, live_->snapshots().Find(name));
  return LookupInSnapshot({found.number, kRootInode}, ".");
}

Status RoutedFileSystem::ListDirectory(uint64_t cookie,
                                       const std::function<bool(const DirectoryRecord&)>& visit) {
  // The cookie of a snapshot is its number plus kDotDotCookie.
  const auto show = [&](std::string_view name, InodeNumber inode, uint64_t its_cookie) {
    return its_cookie <= cookie || visit({name, inode, kDirectoryType, its_cookie});
  };
  if (!show(".", kSnapshotDirectory, kDotCookie) || !show("..", kRootInode, kDotDotCookie))
    return Status::Ok();
  for (const SnapshotInfo& snapshot : live_->snapshots().List()) {
    if (!show(snapshot.name, Join(snapshot.number, kRootInode), snapshot.number + kDotDotCookie))
      break;
  }
  return Status::Ok();
}

// --- Names

Result<Attributes> RoutedFileSystem::Lookup(InodeNumber parent, std::string_view name) {
  if (IsDirectoryName(parent, name)) return DirectoryAttributes();
  if (parent == kSnapshotDirectory) return LookupInDirectory(name);
  const SnapshotInode split = Split(parent);
  if (split.snapshot != 0) return LookupInSnapshot(split, name);
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return WithGeneration(live_->Lookup(parent, name));
}

Result<Attributes> RoutedFileSystem::LookupInSnapshot(const SnapshotInode& parent,
                                                      std::string_view name) {
  if (parent.inode == kRootInode && name == ".." && root_ == 0) return DirectoryAttributes();
  SILTFS_ASSIGN_OR_RETURN(const auto tree, Enter(parent.snapshot));
  SILTFS_ASSIGN_OR_RETURN(Attributes found, tree->names().Lookup(parent.inode, name));
  found.inode = Join(parent.snapshot, found.inode);
  return found;
}

void RoutedFileSystem::Forget(InodeNumber inode, uint64_t lookups) {
  if (inode == kSnapshotDirectory) return;
  const SnapshotInode split = Split(inode);
  if (split.snapshot == 0) {
    const auto pass = gate_.Enter();
    if (pass.ok()) live_->Forget(inode, lookups);
    if (!live_->entries().MayBeCached(inode)) rolled_back_.Remove(inode);
    return;
  }
  const auto tree = trees_.EnterKnown(split.snapshot, view_);
  if (tree.ok()) (*tree)->names().Forget(split.inode, lookups);
}

Result<std::string> RoutedFileSystem::ReadLink(InodeNumber inode) {
  if (IsLive(inode)) {
    SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
    return live_->ReadLink(inode);
  }
  const SnapshotInode split = Split(inode);
  SILTFS_ASSIGN_OR_RETURN(const auto tree, Enter(split.snapshot));
  return tree->names().ReadLink(split.inode);
}

Status RoutedFileSystem::ReadDirectory(InodeNumber directory, uint64_t cookie,
                                       const std::function<bool(const DirectoryRecord&)>& visit) {
  if (directory == kSnapshotDirectory) return ListDirectory(cookie, visit);
  const SnapshotInode split = Split(directory);
  if (split.snapshot != 0) return ListSnapshot(split, cookie, visit);
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  if (directory != kRootInode || !HasDirectory())
    return live_->ReadDirectory(directory, cookie, visit);
  if (cookie >= kDirectoryCookie) return Status::Ok();
  bool more = true;
  SILTFS_RETURN_IF_ERROR(
      live_->ReadDirectory(directory, cookie, [&](const DirectoryRecord& record) {
        more = record.name == kSnapshotDirectoryName || visit(record);
        return more;
      }));
  if (more && mode_ == SnapshotDirectoryMode::kVisible)
    visit({kSnapshotDirectoryName, kSnapshotDirectory, kDirectoryType, kDirectoryCookie});
  return Status::Ok();
}

Status RoutedFileSystem::ListSnapshot(const SnapshotInode& directory, uint64_t cookie,
                                      const std::function<bool(const DirectoryRecord&)>& visit) {
  SILTFS_ASSIGN_OR_RETURN(const auto tree, Enter(directory.snapshot));
  return tree->names().ReadDirectory(directory.inode, cookie, [&](const DirectoryRecord& record) {
    DirectoryRecord shown = record;
    shown.inode = Join(directory.snapshot, record.inode);
    if (directory.inode == kRootInode && record.name == ".." && root_ == 0)
      shown.inode = kSnapshotDirectory;
    return visit(shown);
  });
}

Result<SpaceInfo> RoutedFileSystem::GetSpaceOf(InodeNumber inode) {
  if (!IsLive(inode)) return live_->GetSpace();
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->GetSpaceOf(inode);
}

bool RoutedFileSystem::NearlyFullFor(InodeNumber inode) {
  if (!IsLive(inode)) return live_->NearlyFull();
  const auto pass = gate_.Enter();
  return pass.ok() && live_->NearlyFullFor(inode);
}

// --- Attributes

Result<Attributes> RoutedFileSystem::GetAttributes(InodeNumber inode) {
  if (inode == kSnapshotDirectory && HasDirectory()) return DirectoryAttributes();
  const SnapshotInode split = Split(inode);
  if (split.snapshot == 0) {
    SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
    return live_->GetAttributes(inode);
  }
  SILTFS_ASSIGN_OR_RETURN(const auto tree, Enter(split.snapshot));
  SILTFS_ASSIGN_OR_RETURN(Attributes attributes, tree->inodes().GetAttributes(split.inode));
  attributes.inode = inode;
  return attributes;
}

Result<std::string> RoutedFileSystem::GetXattr(InodeNumber inode, std::string_view name) {
  if (inode == kSnapshotDirectory)
    return Status(StatusCode::kNoAttribute, "the directory of snapshots has no attributes");
  const SnapshotInode split = Split(inode);
  if (split.snapshot == 0) {
    SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
    return live_->GetXattr(inode, name);
  }
  SILTFS_ASSIGN_OR_RETURN(const auto tree, Enter(split.snapshot));
  return tree->xattrs().GetXattr(split.inode, name);
}

Result<std::vector<std::string>> RoutedFileSystem::ListXattrs(InodeNumber inode) {
  if (inode == kSnapshotDirectory) return std::vector<std::string>();
  const SnapshotInode split = Split(inode);
  if (split.snapshot == 0) {
    SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
    return live_->ListXattrs(inode);
  }
  SILTFS_ASSIGN_OR_RETURN(const auto tree, Enter(split.snapshot));
  return tree->xattrs().ListXattrs(split.inode);
}

// --- Files

Status RoutedFileSystem::OpenFile(InodeNumber inode, bool truncate) {
  if (IsLive(inode)) return OpenLive(inode, truncate);
  if (inode == kSnapshotDirectory) return {StatusCode::kIsADirectory, "is a directory"};
  if (truncate) return ReadOnly();
  const SnapshotInode split = Split(inode);
  SILTFS_ASSIGN_OR_RETURN(const auto tree, Enter(split.snapshot));
  return tree->files().OpenFile(split.inode, false);
}

Status RoutedFileSystem::OpenLive(InodeNumber inode, bool truncate) {
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  // After this error the kernel looks the name up again.
  if (rolled_back_.IsStale(inode))
    return {StatusCode::kStale, "a rollback has changed the file since it was looked up"};
  return live_->OpenFile(inode, truncate);
}

Result<Attributes> RoutedFileSystem::WithGeneration(Result<Attributes> attributes) {
  if (attributes.ok()) attributes->generation = rolled_back_.LookUp(attributes->inode);
  return attributes;
}

uint64_t RoutedFileSystem::GenerationOf(InodeNumber inode) const {
  return IsLive(inode) ? rolled_back_.GenerationOf(inode) : 0;
}

void RoutedFileSystem::ReleaseFile(InodeNumber inode) {
  if (IsLive(inode)) {
    const auto pass = gate_.Enter();
    if (pass.ok()) live_->ReleaseFile(inode);
    return;
  }
  const SnapshotInode split = Split(inode);
  const auto tree = trees_.EnterKnown(split.snapshot, view_);
  if (tree.ok()) (*tree)->files().ReleaseFile(split.inode);
}

Result<size_t> RoutedFileSystem::Read(InodeNumber inode, uint64_t offset, MutableByteView out) {
  const SnapshotInode split = Split(inode);
  if (split.snapshot == 0) {
    SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
    return live_->Read(inode, offset, out);
  }
  SILTFS_ASSIGN_OR_RETURN(const auto tree, Enter(split.snapshot));
  return tree->files().Read(split.inode, offset, out);
}

Result<std::optional<uint64_t>> RoutedFileSystem::Seek(InodeNumber inode, uint64_t offset,
                                                       SeekTarget target) {
  const SnapshotInode split = Split(inode);
  if (split.snapshot == 0) {
    SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
    return live_->Seek(inode, offset, target);
  }
  SILTFS_ASSIGN_OR_RETURN(const auto tree, Enter(split.snapshot));
  return tree->files().Seek(split.inode, offset, target);
}

Status RoutedFileSystem::RoutedContents::Visit(
    InodeNumber file, uint64_t offset, const std::function<bool(const ContentPiece&)>& visit) {
  const SnapshotInode split = routed_.Split(file);
  if (split.snapshot == 0) {
    SILTFS_ASSIGN_OR_RETURN(const auto pass, routed_.gate_.Enter());
    return routed_.live_->contents().Visit(file, offset, visit);
  }
  SILTFS_ASSIGN_OR_RETURN(const auto tree, routed_.Enter(split.snapshot));
  return tree->contents().Visit(split.inode, offset, visit);
}

std::vector<Result<PutOutcome>> RoutedFileSystem::RoutedEntries::Put(
    std::span<const EntryImage> images) {
  const auto pass = routed_.gate_.Enter();
  std::vector<Result<PutOutcome>> outcomes;
  if (!pass.ok()) {
    for (size_t i = 0; i < images.size(); ++i) outcomes.emplace_back(pass.status());
    return outcomes;
  }
  const bool all_good =
      std::ranges::all_of(images, [this](const EntryImage& image) { return Check(image).ok(); });
  if (all_good) return live().Put(images);
  for (const EntryImage& image : images) {
    Status checked = Check(image);
    if (checked.ok()) {
      outcomes.push_back(std::move(live().Put({&image, 1})[0]));
    } else {
      outcomes.emplace_back(std::move(checked));
    }
  }
  return outcomes;
}

Result<PutOutcome> RoutedFileSystem::RoutedEntries::Offer(const EntryImage& image,
                                                          InodeNumber reference,
                                                          bool probably_new) {
  SILTFS_RETURN_IF_ERROR(Check(image));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, routed_.gate_.Enter());
  return live().Offer(image, reference, probably_new);
}

Result<PutOutcome> RoutedFileSystem::RoutedEntries::Place(InodeNumber temporary,
                                                          const EntryImage& image) {
  SILTFS_RETURN_IF_ERROR(Check(image));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, routed_.gate_.Enter());
  return live().Place(temporary, image);
}

Result<PutOutcome> RoutedFileSystem::RoutedEntries::Link(InodeNumber inode, InodeNumber parent,
                                                         std::string_view name) {
  SILTFS_RETURN_IF_ERROR(routed_.CheckNewName(parent, name));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, routed_.gate_.Enter());
  return live().Link(inode, parent, name);
}

Result<bool> RoutedFileSystem::RoutedEntries::SetDirectory(InodeNumber directory,
                                                           const EntryImage& image) {
  SILTFS_RETURN_IF_ERROR(routed_.CheckLive(directory));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, routed_.gate_.Enter());
  return live().SetDirectory(directory, image);
}

Result<CloneOutcome> RoutedFileSystem::RoutedEntries::Clone(const CloneRequest& request) {
  SILTFS_RETURN_IF_ERROR(routed_.CheckNewName(request.parent, request.name));
  if (request.source == kSnapshotDirectory)
    return Status(StatusCode::kInvalidArgument, "the directory of snapshots cannot be cloned");
  const SnapshotInode source = routed_.Split(request.source);
  SILTFS_ASSIGN_OR_RETURN(const auto pass, routed_.gate_.Enter());
  if (source.snapshot == 0) return live().Clone(request);
  SILTFS_ASSIGN_OR_RETURN(const auto tree, routed_.Enter(source.snapshot));
  return live().Clone(request);
}

// --- Changes, which only the live file system allows

Result<Attributes> RoutedFileSystem::MakeNode(InodeNumber parent, std::string_view name,
                                              uint32_t mode, uint64_t device, Caller caller) {
  SILTFS_RETURN_IF_ERROR(CheckNewName(parent, name));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->MakeNode(parent, name, mode, device, caller);
}

Result<Attributes> RoutedFileSystem::MakeDirectory(InodeNumber parent, std::string_view name,
                                                   uint32_t mode, Caller caller) {
  SILTFS_RETURN_IF_ERROR(CheckNewName(parent, name));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->MakeDirectory(parent, name, mode, caller);
}

Result<Attributes> RoutedFileSystem::MakeSymlink(InodeNumber parent, std::string_view name,
                                                 std::string_view target, Caller caller) {
  SILTFS_RETURN_IF_ERROR(CheckNewName(parent, name));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->MakeSymlink(parent, name, target, caller);
}

Result<Attributes> RoutedFileSystem::Link(InodeNumber inode, InodeNumber new_parent,
                                          std::string_view new_name) {
  SILTFS_RETURN_IF_ERROR(CheckLive(inode));
  SILTFS_RETURN_IF_ERROR(CheckNewName(new_parent, new_name));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return WithGeneration(live_->Link(inode, new_parent, new_name));
}

Status RoutedFileSystem::Unlink(InodeNumber parent, std::string_view name) {
  SILTFS_RETURN_IF_ERROR(CheckLiveName(parent, name));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->Unlink(parent, name);
}

Status RoutedFileSystem::RemoveDirectory(InodeNumber parent, std::string_view name) {
  SILTFS_RETURN_IF_ERROR(CheckLiveName(parent, name));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->RemoveDirectory(parent, name);
}

Status RoutedFileSystem::Rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                                std::string_view new_name, RenameMode mode) {
  SILTFS_RETURN_IF_ERROR(CheckLiveName(parent, name));
  SILTFS_RETURN_IF_ERROR(CheckLiveName(new_parent, new_name));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->Rename(parent, name, new_parent, new_name, mode);
}

Result<Attributes> RoutedFileSystem::SetAttributes(InodeNumber inode,
                                                   const AttributeChange& change) {
  SILTFS_RETURN_IF_ERROR(CheckLive(inode));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  if (!IsWriteBack(change)) return live_->SetAttributes(inode, change);
  // The kernel writes the times of a stale inode back when it forgets it. They are those from
  // before the rollback.
  auto attributes = rolled_back_.IsStale(inode) ? live_->GetAttributes(inode)
                                                : live_->SetAttributes(inode, change);
  // The rollback has removed the file. After an error, the next syncfs(2) of any program would
  // fail. The kernel does not look at the attributes.
  if (attributes.status().Is(StatusCode::kStale) && rolled_back_.GenerationOf(inode) > 0)
    return Attributes{.inode = inode, .mode = kRegularType};
  return attributes;
}

Status RoutedFileSystem::SetXattr(InodeNumber inode, std::string_view name, std::string_view value,
                                  XattrMode mode) {
  SILTFS_RETURN_IF_ERROR(CheckLive(inode));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->SetXattr(inode, name, value, mode);
}

Status RoutedFileSystem::RemoveXattr(InodeNumber inode, std::string_view name) {
  SILTFS_RETURN_IF_ERROR(CheckLive(inode));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->RemoveXattr(inode, name);
}

Result<Attributes> RoutedFileSystem::CreateFile(InodeNumber parent, std::string_view name,
                                                uint32_t mode, Caller caller) {
  SILTFS_RETURN_IF_ERROR(CheckNewName(parent, name));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->CreateFile(parent, name, mode, caller);
}

Result<Attributes> RoutedFileSystem::MakeTemporaryFile(InodeNumber directory, uint32_t mode,
                                                       Caller caller) {
  SILTFS_RETURN_IF_ERROR(CheckLive(directory));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->MakeTemporaryFile(directory, mode, caller);
}

Status RoutedFileSystem::Write(InodeNumber inode, uint64_t offset, ByteView data,
                               Privileges privileges, WriteTimes times) {
  SILTFS_RETURN_IF_ERROR(CheckLive(inode));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->Write(inode, offset, data, privileges, times);
}

Status RoutedFileSystem::Allocate(InodeNumber inode, AllocateMode mode, uint64_t offset,
                                  uint64_t length, bool keep_size, Privileges privileges) {
  SILTFS_RETURN_IF_ERROR(CheckLive(inode));
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->Allocate(inode, mode, offset, length, keep_size, privileges);
}

Result<uint64_t> RoutedFileSystem::CopyRange(InodeNumber source, uint64_t source_offset,
                                             InodeNumber target, uint64_t target_offset,
                                             uint64_t length, Privileges privileges) {
  SILTFS_RETURN_IF_ERROR(CheckLive(target));
  // Programs then read and write the bytes themselves.
  if (!IsLive(source))
    return Status(StatusCode::kUnsupported, "the recipe of a snapshot's file cannot be shared");
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->CopyRange(source, source_offset, target, target_offset, length, privileges);
}

Status RoutedFileSystem::Fsync(InodeNumber inode) {
  if (!IsLive(inode)) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const auto pass, gate_.Enter());
  return live_->Fsync(inode);
}

Status RoutedFileSystem::RoutedUsage::Check(const UsageScope& scope) const {
  for (const UsagePath& path : scope.paths) {
    if (routed_.root_ == 0 && routed_.IsLive(path.directory) &&
        !routed_.IsDirectoryName(path.directory, path.name)) {
      continue;
    }
    return {StatusCode::kUnsupported,
            "it is in a snapshot, which can only be deleted as a whole; \"siltfs snapshot list\" "
            "shows what that frees"};
  }
  return Status::Ok();
}

Result<UsageReport> RoutedFileSystem::RoutedUsage::Measure(const UsageRequest& request) {
  SILTFS_RETURN_IF_ERROR(Check(request.scope));
  return routed_.live_->usage().Measure(request);
}

Result<DuplicateReport> RoutedFileSystem::RoutedUsage::FindDuplicates(
    const DuplicateRequest& request) {
  SILTFS_RETURN_IF_ERROR(Check(request.scope));
  return routed_.live_->usage().FindDuplicates(request);
}

}  // namespace siltfs
