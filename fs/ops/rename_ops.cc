#include "fs/ops/rename_ops.h"

#include <vector>

#include "fs/ops/quota_moves.h"
#include "fs/records/schema.h"

namespace siltfs {

Status RenameOps::Rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                         std::string_view new_name, RenameMode mode) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckName(name));
  SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckName(new_name));
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  InodePtr from_directory = inodes_.Get(parent);
  InodePtr to_directory = inodes_.Get(new_parent);
  // Only the move of a directory to another parent needs this lock. But whether the source is a
  // directory is known only when its inode is locked, and this lock comes first in the lock order.
  std::optional<MutexLock> tree_lock;
  if (parent != new_parent) tree_lock.emplace(rename_mutex_);
  for (;;) {
    SILTFS_ASSIGN_OR_RETURN(auto source_seen, names_.FindName(parent, name));
    if (!source_seen) return names_.NoSuchName(parent);
    SILTFS_ASSIGN_OR_RETURN(auto target_seen, names_.FindName(new_parent, new_name));
    InodePtr source = inodes_.Get(source_seen->inode);
    InodePtr target = target_seen ? inodes_.Get(target_seen->inode) : nullptr;
    std::vector<InodePtr> all{from_directory, to_directory, source};
    if (target) all.push_back(target);
    {
      InodeLock lock(all, InodeLock::Mode::kExclusive);
      SILTFS_ASSIGN_OR_RETURN(auto source_entry, names_.FindName(parent, name));
      SILTFS_ASSIGN_OR_RETURN(auto target_entry, names_.FindName(new_parent, new_name));
      const bool source_same = source_entry && source_entry->inode == source->number;
      const bool target_same =
          target_entry ? target && target_entry->inode == target->number : !target;
      if (!source_same || !target_same) continue;  // changed before the locks were taken
      for (const InodePtr& inode : all) SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(*inode));
      SILTFS_RETURN_IF_ERROR(RenameLocked({*from_directory, name, source_entry, source.get()},
                                          {*to_directory, new_name, target_entry, target.get()},
                                          mode));
    }
    tree_lock.reset();
    if (target) lifetimes_.RemoveIfUnused(target->number);
    return Status::Ok();
  }
}

Status RenameOps::RenameLocked(const Place& from, const Place& to, RenameMode mode) {
  SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckDirectory(from.directory));
  SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckDirectory(to.directory));
  if (mode == RenameMode::kNoReplace && to.inode)
    return Status(StatusCode::kAlreadyExists, "the name is taken");
  if (mode == RenameMode::kExchange && !to.inode)
    return Status(StatusCode::kNotFound, "there is no such name");
  if (to.inode == from.inode)
    return Status::Ok();  // two names of one file, or one name: nothing to do
  SILTFS_RETURN_IF_ERROR(CheckSameQuota(store_, names_, from.directory, to.directory));
  if (&from.directory != &to.directory) {
    if (from.inode->record.IsDirectory()) {
      SILTFS_RETURN_IF_ERROR(names_.CheckNotInside(to.directory.number, from.inode->number));
    }
    if (mode == RenameMode::kExchange && to.inode->record.IsDirectory()) {
      SILTFS_RETURN_IF_ERROR(names_.CheckNotInside(from.directory.number, to.inode->number));
    }
  }
  Change change;
  change.Include({&from.directory, &to.directory, from.inode});
  if (to.inode) change.Include(*to.inode);
  const int64_t now = store_.Now();
  if (mode == RenameMode::kExchange) {
    CountMoved(store_, to.directory, *from.inode, change);
    CountMoved(store_, from.directory, *to.inode, change);
    Exchange(from, to, now, change);
  } else {
    SILTFS_RETURN_IF_ERROR(Replace(from, to, now, change));
  }
  from.directory.record.mtime = from.directory.record.ctime = now;
  to.directory.record.mtime = to.directory.record.ctime = now;
  change.Save(from.directory);
  if (&from.directory != &to.directory) change.Save(to.directory);
  SILTFS_RETURN_IF_ERROR(changes_.Apply(change));
  if (to.inode && mode != RenameMode::kExchange) lifetimes_.ForgetRemoved(*to.inode);
  return Status::Ok();
}

Status RenameOps::Replace(const Place& from, const Place& to, int64_t now, Change& change) {
  Inode& source = *from.inode;
  const bool is_directory = source.record.IsDirectory();
  if (to.inode) {
    const InodeRecord& target = to.inode->record;
    if (is_directory && !target.IsDirectory())
      return Status(StatusCode::kNotADirectory, "is not a directory");
    if (!is_directory && target.IsDirectory())
      return Status(StatusCode::kIsADirectory, "is a directory");
    if (target.IsDirectory() && target.entries > 0)
      return Status(StatusCode::kNotEmpty, "the directory is not empty");
  } else if (is_directory && &from.directory != &to.directory &&
             to.directory.record.links >= kMaxLinks) {
    return Status(StatusCode::kTooManyLinks, "the directory is full");
  }
  DirectoryNames::DropName(from.directory, from.name, *from.entry, change);
  if (to.inode) {
    if (is_directory) --to.directory.record.links;
    SILTFS_RETURN_IF_ERROR(lifetimes_.DropLink(*to.inode, now, change));
    // The name existed before, and keeps its place in the directory.
    DirectoryNames::PutName(to.directory, to.name, source, to.entry->cookie, change);
  } else if (&from.directory == &to.directory) {
    // The entry keeps its place in the listing. If a rename moved it to the end, a program that
    // renames the entries while it lists the directory would meet each of them again.
    DirectoryNames::PutName(to.directory, to.name, source, from.entry->cookie, change);
    ++to.directory.record.entries;
  } else {
    DirectoryNames::AddName(to.directory, to.name, source, change);
  }
  if (is_directory) {
    --from.directory.record.links;
    ++to.directory.record.links;
    source.record.parent = to.directory.number;
  }
  // After all checks, because a count reads the directory that it is told of, although the rename
  // fails. Renames that fail again and again would keep it from ending.
  CountMoved(store_, to.directory, source, change);
  source.record.ctime = now;
  change.Save(source);
  return Status::Ok();
}

void RenameOps::Exchange(const Place& from, const Place& to, int64_t now, Change& change) {
  DirectoryNames::PutName(from.directory, from.name, *to.inode, from.entry->cookie, change);
  DirectoryNames::PutName(to.directory, to.name, *from.inode, to.entry->cookie, change);
  auto move = [now](Inode& inode, Inode& old_directory, Inode& new_directory) {
    inode.record.ctime = now;
    if (!inode.record.IsDirectory()) return;
    --old_directory.record.links;
    ++new_directory.record.links;
    inode.record.parent = new_directory.number;
  };
  move(*from.inode, from.directory, to.directory);
  move(*to.inode, to.directory, from.directory);
  for (Inode* inode : {from.inode, to.inode})
    change.Put(InodeKey(inode->number), inode->record.Encode());
}

}  // namespace siltfs
