#include "tests/support/memory_entries.h"

#include <sys/stat.h>

#include <optional>

#include "fs/interface/posix_acl.h"
#include "fs/interface/snapshot_inode.h"

namespace siltfs::testing {
namespace {

constexpr uint32_t kPermissionBits = 07777;
constexpr uint32_t kAccessBits = 0777;

using Xattrs = std::map<std::string, std::string, std::less<>>;

uint32_t ModeOf(uint32_t type, const EntryImage& image) {
  return type | (S_ISLNK(type) ? kAccessBits : image.mode & kPermissionBits);
}

uint64_t DeviceOf(const EntryImage& image) {
  return S_ISCHR(image.mode) || S_ISBLK(image.mode) ? image.device : 0;
}

void SetAttributes(const EntryImage& image, Attributes& attributes) {
  attributes.mode = ModeOf(attributes.mode & S_IFMT, image);
  attributes.uid = image.uid;
  attributes.gid = image.gid;
  attributes.atime = image.atime;
  attributes.mtime = image.mtime;
}

bool HasAttributes(const MemoryInode& inode, const EntryImage& image) {
  const Attributes& attributes = inode.attributes;
  return attributes.mode == ModeOf(image.mode & S_IFMT, image) && attributes.uid == image.uid &&
         attributes.gid == image.gid && attributes.mtime == image.mtime &&
         attributes.device == DeviceOf(image) &&
         inode.target == (S_ISLNK(image.mode) ? image.target : "");
}

// The attributes to keep. An access list sets the permission bits in `mode`.
Result<Xattrs> XattrsOf(const EntryImage& image, uint32_t& mode) {
  Xattrs kept;
  for (const XattrImage& xattr : image.xattrs) {
    std::string value(xattr.value);
    if (IsAclName(xattr.name)) {
      SILTFS_ASSIGN_OR_RETURN(const PosixAcl acl, PosixAcl::Decode(xattr.value));
      value = acl.Encode();
      if (xattr.name == kAccessAclName) {
        mode = (mode & ~kAccessBits) | acl.PermissionBits();
        if (acl.IsEquivalentToMode()) continue;
      }
    }
    kept.emplace(xattr.name, std::move(value));
  }
  return kept;
}

MemoryContent ContentOf(const EntryImage& image) {
  MemoryContent content;
  for (const ExtentImage& extent : image.extents) content.Write(extent.offset, extent.bytes);
  content.Resize(image.size);
  return content;
}

bool Equal(const MemoryContent& a, const MemoryContent& b) {
  if (a.size() != b.size()) return false;
  Bytes of_a(a.size());
  Bytes of_b(b.size());
  a.Read(0, of_a);
  b.Read(0, of_b);
  return of_a == of_b;
}

void SetContent(const MemoryContent& content, MemoryInode& inode) {
  inode.content = content;
  inode.attributes.size = content.size();
  inode.attributes.allocated_bytes = content.AllocatedBytes();
}

void KeepSource(const EntryImage& image, MemoryInode& inode) {
  if (!image.source || !S_ISREG(inode.attributes.mode)) return;
  inode.source = image.source;
  inode.source_ctime = inode.attributes.ctime;
}

bool IsOf(const MemoryInode& inode, const EntryImage& image) {
  return image.source && inode.source == image.source &&
         inode.attributes.size == image.source->size &&
         inode.source_ctime == inode.attributes.ctime;
}

// Whether the old inode, if there is one, is what the image describes. Then it keeps the image's
// source.
Result<bool> RenewIfSame(const EntryImage& image, const MemoryContent& content, MemoryInode* old) {
  if (old == nullptr || !HasAttributes(*old, image)) return false;
  if (S_ISREG(image.mode) && !Equal(old->content, content)) return false;
  uint32_t mode = image.mode;
  SILTFS_ASSIGN_OR_RETURN(const Xattrs xattrs, XattrsOf(image, mode));
  if (old->xattrs != xattrs) return false;
  KeepSource(image, *old);
  return true;
}

// Gives an inode that was made for the image the attributes and extended attributes of the image.
Status Complete(const EntryImage& image, int64_t now, MemoryInode& inode) {
  SetAttributes(image, inode.attributes);
  SILTFS_ASSIGN_OR_RETURN(inode.xattrs, XattrsOf(image, inode.attributes.mode));
  inode.attributes.links = 1;
  inode.attributes.ctime = now;
  KeepSource(image, inode);
  return Status::Ok();
}

}  // namespace

Result<MemoryEntries::NamePlace> MemoryEntries::Find(InodeNumber parent, std::string_view name) {
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * directory, inodes_.FindDirectory(parent));
  if (directory->attributes.links == 0)
    return Failed(StatusCode::kNotFound, "the directory was removed", parent);
  const auto found = directory->entries.find(name);
  if (found == directory->entries.end()) return NamePlace{*directory};
  MemoryInode& old = inodes_.At(found->second.inode);
  if (old.IsDirectory())
    return Failed(StatusCode::kIsADirectory, "is a directory", found->second.inode);
  return NamePlace{*directory, &old};
}

PutOutcome MemoryEntries::Enter(const NamePlace& place, std::string_view name, MemoryInode& inode) {
  PutOutcome outcome{.effect = PutEffect::kMade, .inode = inode.attributes.inode};
  outcome.replaced = inodes_.Enter(place.directory, name, outcome.inode);
  if (outcome.replaced != 0) outcome.effect = PutEffect::kReplaced;
  return outcome;
}

std::vector<Result<PutOutcome>> MemoryEntries::Put(std::span<const EntryImage> images) {
  const MutexLock lock(mutex_);
  std::vector<Result<PutOutcome>> outcomes;
  for (const EntryImage& image : images) outcomes.push_back(PutOne(image));
  return outcomes;
}

Result<PutOutcome> MemoryEntries::PutOne(const EntryImage& image) {
  SILTFS_ASSIGN_OR_RETURN(const NamePlace place, Find(image.parent, image.name));
  const MemoryContent content = ContentOf(image);
  SILTFS_ASSIGN_OR_RETURN(const bool same, RenewIfSame(image, content, place.old));
  if (same) return PutOutcome{.inode = place.old->attributes.inode};
  SILTFS_RETURN_IF_ERROR(inodes_.CheckQuota(place.directory, 1));
  MemoryInode& inode = inodes_.MakeBare(image.mode);
  inode.counted = MemoryInodes::HasQuota(place.directory);
  const int64_t now = inodes_.Now();
  SILTFS_RETURN_IF_ERROR(Complete(image, now, inode));
  inode.attributes.btime = now;
  inode.attributes.device = DeviceOf(image);
  if (S_ISREG(image.mode)) SetContent(content, inode);
  if (S_ISLNK(image.mode)) {
    inode.target = image.target;
    inode.attributes.size = inode.target.size();
  }
  return Enter(place, image.name, inode);
}

MemoryInode* MemoryEntries::FindCurrent(const EntryImage& image) {
  const auto directory = inodes_.FindDirectory(image.parent);
  if (!directory.ok()) return nullptr;
  const auto found = (*directory)->entries.find(image.name);
  if (found == (*directory)->entries.end()) return nullptr;
  MemoryInode& inode = inodes_.At(found->second.inode);
  const bool current = S_ISREG(image.mode) ? IsOf(inode, image) : inode.xattrs.empty();
  return current && HasAttributes(inode, image) ? &inode : nullptr;
}

Result<PutOutcome> MemoryEntries::Offer(const EntryImage& image, InodeNumber reference,
                                        bool probably_new) {
  const MutexLock lock(mutex_);
  const MemoryInode* current = probably_new ? nullptr : FindCurrent(image);
  if (current != nullptr) return PutOutcome{.inode = current->attributes.inode};
  if (reference == 0 || !S_ISREG(image.mode)) return PutOutcome{.effect = PutEffect::kNeeded};
  return Share(image, reference);
}

Result<PutOutcome> MemoryEntries::Share(const EntryImage& image, InodeNumber reference) {
  const PutOutcome needed{.effect = PutEffect::kNeeded};
  const auto directory = inodes_.FindDirectory(reference);
  if (!directory.ok()) return needed;
  const auto found = (*directory)->entries.find(image.name);
  if (found == (*directory)->entries.end()) return needed;
  const MemoryInode& source = inodes_.At(found->second.inode);
  SILTFS_ASSIGN_OR_RETURN(const NamePlace place, Find(image.parent, image.name));
  if (!IsOf(source, image) || place.old == &source) return needed;
  SILTFS_RETURN_IF_ERROR(inodes_.CheckQuota(place.directory, 1));
  MemoryInode& inode = inodes_.MakeBare(image.mode);
  inode.counted = MemoryInodes::HasQuota(place.directory);
  const int64_t now = inodes_.Now();
  SILTFS_RETURN_IF_ERROR(Complete(image, now, inode));
  inode.attributes.btime = now;
  inode.xattrs = source.xattrs;
  SetContent(source.content, inode);
  return Enter(place, image.name, inode);
}

Result<PutOutcome> MemoryEntries::Place(InodeNumber temporary, const EntryImage& image) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * file, inodes_.FindFile(temporary));
  SILTFS_ASSIGN_OR_RETURN(const NamePlace place, Find(image.parent, image.name));
  if (file->attributes.links > 0 || !file->linkable || file->opens == 0)
    return Failed(StatusCode::kInvalidArgument, "is not an open temporary file", temporary);
  if (file->content.size() != image.size || !file->xattrs.empty())
    return Failed(StatusCode::kInvalidArgument, "has another size, or attributes", temporary);
  SILTFS_ASSIGN_OR_RETURN(const bool same, RenewIfSame(image, file->content, place.old));
  if (same) return PutOutcome{.inode = place.old->attributes.inode};
  const bool counted = MemoryInodes::HasQuota(place.directory);
  if (counted && !file->counted) SILTFS_RETURN_IF_ERROR(inodes_.CheckQuota(place.directory, 1));
  file->counted = counted;
  SILTFS_RETURN_IF_ERROR(Complete(image, inodes_.Now(), *file));
  file->linkable = false;
  return Enter(place, image.name, *file);
}

Result<PutOutcome> MemoryEntries::Link(InodeNumber number, InodeNumber parent,
                                       std::string_view name) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const NamePlace place, Find(parent, name));
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * inode, inodes_.Find(number));
  if (place.old == inode) return PutOutcome{.inode = number};
  if (inode->IsDirectory()) return Failed(StatusCode::kNotPermitted, "is a directory", number);
  if (inode->attributes.links == 0) return Failed(StatusCode::kNotFound, "was removed", number);
  if (inode->attributes.links >= kMaxLinks)
    return Failed(StatusCode::kTooManyLinks, "too many links", number);
  ++inode->attributes.links;
  return Enter(place, name, *inode);
}

Result<bool> MemoryEntries::SetDirectory(InodeNumber number, const EntryImage& image) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * directory, inodes_.FindDirectory(number));
  if (directory->attributes.links == 0)
    return Failed(StatusCode::kNotFound, "the directory was removed", number);
  Attributes attributes = directory->attributes;
  SetAttributes(image, attributes);
  SILTFS_ASSIGN_OR_RETURN(Xattrs xattrs, XattrsOf(image, attributes.mode));
  const Attributes& before = directory->attributes;
  if (xattrs == directory->xattrs && attributes.mode == before.mode &&
      attributes.uid == before.uid && attributes.gid == before.gid &&
      attributes.mtime == before.mtime) {
    return false;
  }
  attributes.ctime = inodes_.Now();
  directory->attributes = attributes;
  directory->xattrs = std::move(xattrs);
  return true;
}

InodeNumber MemoryEntries::CopyTree(const MemoryInodes& tree, InodeNumber source,
                                    InodeNumber parent, Copies& copies, CloneTotals& totals) {
  if (const auto copied = copies.find(source); copied != copies.end()) {
    ++inodes_.At(copied->second).attributes.links;
    return copied->second;
  }
  const MemoryInode& from = tree.all().at(source);
  MemoryInode& copy = inodes_.MakeBare(from.attributes.mode);
  const InodeNumber number = copy.attributes.inode;
  copies[source] = number;
  const bool source_counts = from.source_ctime == from.attributes.ctime;
  copy = from;
  copy.lookups = copy.opens = 0;
  copy.limits.reset();
  copy.counted = MemoryInodes::HasQuota(inodes_.At(parent));
  copy.times_replied = copy.linkable = false;
  copy.attributes.inode = number;
  copy.attributes.ctime = copy.attributes.btime = inodes_.Now();
  if (source_counts) copy.source_ctime = copy.attributes.ctime;
  if (!copy.IsDirectory()) {
    copy.attributes.links = 1;
    ++totals.files;
    totals.logical_bytes += copy.attributes.allocated_bytes;
    return number;
  }
  ++totals.directories;
  copy.parent = parent;
  for (auto& [name, entry] : copy.entries)
    entry.inode = CopyTree(tree, entry.inode, number, copies, totals);
  return number;
}

Result<CloneOutcome> MemoryEntries::Clone(const CloneRequest& request) {
  const SnapshotInode from = SplitSnapshotInode(request.source);
  const auto snapshot = from.snapshot == 0 ? nullptr : find_snapshot(from.snapshot);
  const MutexLock lock(mutex_);
  if (!IsName(request.name)) return Status(StatusCode::kInvalidArgument, "is no name");
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * parent, inodes_.FindDirectory(request.parent));
  if (parent->attributes.links == 0) return Status(StatusCode::kNotFound, "was removed");
  if (parent->entries.contains(request.name)) return Status(StatusCode::kAlreadyExists, "is taken");
  for (InodeNumber above = request.parent; above != kRootInode; above = inodes_.At(above).parent) {
    if (above == request.source) return Status(StatusCode::kInvalidArgument, "lies in itself");
  }
  if (request.source == kRootInode) return Status(StatusCode::kInvalidArgument, "lies in itself");
  const MemoryInodes& tree = snapshot ? *snapshot : inodes_;
  const auto source = tree.all().find(from.inode);
  if (source == tree.all().end() || source->second.attributes.links == 0)
    return Status(StatusCode::kNotFound, "was removed");
  Copies copies;
  CloneOutcome outcome;
  outcome.inode = CopyTree(tree, from.inode, request.parent, copies, outcome.totals);
  // The copies count already.
  if (const Status room = inodes_.CheckQuota(*parent, 0); !room.ok()) {
    for (const auto& [original, copy] : copies) inodes_.Erase(copy);
    return room;
  }
  if (inodes_.At(outcome.inode).IsDirectory()) ++parent->attributes.links;
  inodes_.Enter(*parent, request.name, outcome.inode);
  return outcome;
}

}  // namespace siltfs::testing
