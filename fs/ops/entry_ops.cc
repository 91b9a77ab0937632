#include "fs/ops/entry_ops.h"

#include <utility>

#include "fs/content/whole_content.h"
#include "fs/ops/entry_images.h"
#include "fs/ops/quota_moves.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

bool Matches(const SourceRecord& kept, const EntryImage& image) {
  const SourceFacts facts{kept.inode, kept.ctime, kept.size, kept.mtime};
  return image.source && facts == *image.source;
}

uint64_t ContentBytes(const EntryImage& image) {
  uint64_t bytes = 0;
  for (const ExtentImage& extent : image.extents) bytes += extent.bytes.size();
  return bytes;
}

}  // namespace

Status EntryOps::CheckBegin(uint64_t bytes) const {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(bytes));
  SILTFS_RETURN_IF_ERROR(store_.WaitForSegmentRoom());
  return store_.metadata().WaitForRoom();
}

Result<PutOutcome> EntryOps::AtName(InodeNumber parent, std::string_view name,
                                    const InodePtr& other, const UsePlace& use) {
  const InodePtr directory = inodes_.Get(parent);
  InodePtr old;
  for (;;) {
    std::vector<InodePtr> locked{directory};
    if (other) locked.push_back(other);
    if (old) locked.push_back(old);
    Result<PutOutcome> outcome = PutOutcome();
    {
      const InodeLock lock(std::move(locked), InodeLock::Mode::kExclusive);
      SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(*directory));
      SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckDirectory(*directory));
      SILTFS_ASSIGN_OR_RETURN(const auto entry, names_.FindName(*directory, name));
      const InodeNumber found = entry ? entry->inode : 0;
      if (found != (old ? old->number : 0)) {  // not the inode that is locked
        old = found != 0 ? inodes_.Get(found) : nullptr;
        continue;
      }
      if (old) {
        SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(*old));
        if (old->record.IsDirectory())
          return Status(StatusCode::kIsADirectory, "the name belongs to a directory");
      }
      outcome = use({*directory, entry, old.get()});
    }
    if (old) lifetimes_.RemoveIfUnused(old->number);
    return outcome;
  }
}

Result<PutOutcome> EntryOps::Enter(const NamePlace& place, std::string_view name, Inode& inode,
                                   int64_t now, Change& change) {
  PutOutcome outcome{.effect = PutEffect::kMade, .inode = inode.number};
  if (place.old != nullptr) {
    change.Include(*place.old);
    SILTFS_RETURN_IF_ERROR(lifetimes_.DropLink(*place.old, now, change));
    DirectoryNames::PutName(place.directory, name, inode, place.entry->cookie, change);
    outcome.effect = PutEffect::kReplaced;
    outcome.replaced = place.old->number;
  } else {
    DirectoryNames::AddName(place.directory, name, inode, change);
  }
  place.directory.record.mtime = place.directory.record.ctime = now;
  change.Save(place.directory);
  SILTFS_RETURN_IF_ERROR(changes_.Apply(change));
  if (place.old != nullptr) lifetimes_.ForgetRemoved(*place.old);
  return outcome;
}

Result<PutOutcome> EntryOps::EnterNew(const NamePlace& place, std::string_view name, Inode& inode,
                                      int64_t now, Change& change) {
  inode.record.quota = store_.quotas().Existing(place.directory.record.quota);
  const QuotaUsage usage{.bytes = ContentTally(inode.record).allocated, .files = 1};
  SILTFS_ASSIGN_OR_RETURN(const auto room, store_.quotas().Reserve(inode.record.quota, usage));
  change.SaveContent(inode, ContentTally(InodeRecord()));
  change.Count(Counter::kFiles, 1);
  change.CountUsage(inode.record, kOneFile);
  return Enter(place, name, inode, now, change);
}

Result<Quotas::Reservation> EntryOps::MoveToQuota(QuotaNumber quota, Inode& inode, Change& change) {
  if (store_.quotas().Existing(inode.record.quota) == quota) return Quotas::Reservation();
  const QuotaUsage usage{.bytes = ContentTally(inode.record).allocated, .files = 1};
  SILTFS_ASSIGN_OR_RETURN(auto room, store_.quotas().Reserve(quota, usage));
  change.CountUsage(inode.record, -usage);
  inode.record.quota = quota;
  change.CountUsage(inode.record, usage);
  return room;
}

std::vector<Result<PutOutcome>> EntryOps::Put(std::span<const EntryImage> images) {
  // The names of chunks count from here until metadata has them.
  const ChunkStore::Use use(store_.chunks());
  WholeContent content(store_.chunks(), content_.tables());
  std::vector<Result<PutOutcome>> outcomes;
  outcomes.reserve(images.size());
  std::vector<size_t> files(images.size(), SIZE_MAX);  // numbers in `content`
  size_t cut = 0;
  uint64_t content_bytes = 0;
  std::vector<WholeContent::Extent> extents;
  for (size_t i = 0; i < images.size(); ++i) {
    Status usable = CheckEntryImage(images[i], /*directory=*/false);
    if (usable.ok() && (images[i].mode & 0170000) == 0100000) {
      extents.clear();
      for (const ExtentImage& extent : images[i].extents)
        extents.push_back({extent.offset, extent.bytes});
      usable = content.Cut(images[i].size, extents);
      if (usable.ok()) files[i] = cut++;
    }
    content_bytes += ContentBytes(images[i]);
    outcomes.push_back(usable.ok() ? Result<PutOutcome>(PutOutcome())
                                   : Result<PutOutcome>(std::move(usable)));
  }
  Status put = CheckBegin(content_bytes + kBytesPerName * images.size());
  if (put.ok()) put = content.Put();
  if (put.ok()) store_.chunks().CountWrite(content_bytes);
  put.IgnoreError("each entry that was not refused gets it");
  for (size_t i = 0; i < images.size(); ++i) {
    if (!outcomes[i].ok()) continue;
    if (!put.ok()) {
      outcomes[i] = put;
    } else if (files[i] == SIZE_MAX) {
      outcomes[i] = PutOne(images[i], Recipe());
    } else {
      auto recipe = content.RecipeOf(files[i]);
      outcomes[i] =
          recipe.ok() ? PutOne(images[i], *recipe) : Result<PutOutcome>(std::move(recipe).status());
    }
  }
  return outcomes;
}

Result<PutOutcome> EntryOps::PutOne(const EntryImage& image, const Recipe& recipe) {
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  return AtName(image.parent, image.name, nullptr,
                [&](const NamePlace& place) -> Result<PutOutcome> {
                  bool same = false;
                  if (place.old != nullptr) {
                    SILTFS_ASSIGN_OR_RETURN(same, IsSame(image, recipe, *place.old));
                  }
                  if (same) {
                    SILTFS_RETURN_IF_ERROR(RenewSource(image, *place.old));
                    return PutOutcome{.effect = PutEffect::kUnchanged, .inode = place.old->number};
                  }
                  SILTFS_ASSIGN_OR_RETURN(const InodeNumber number, ids_->NextInode());
                  const int64_t now = store_.Now();
                  Inode inode(number);
                  inode.record = RecordOf(image, now);
                  if (inode.record.IsRegular()) {
                    inode.record.size = inode.record.recipe_limit = recipe.size();
                    inode.record.recipe = recipe;
                  }
                  Change change;
                  SILTFS_RETURN_IF_ERROR(AddXattrs(image, inode, change));
                  PutSourceRecord(image, /*present=*/false, inode, change);
                  return EnterNew(place, image.name, inode, now, change);
                });
}

Result<bool> EntryOps::IsSame(const EntryImage& image, const Recipe& recipe,
                              const Inode& old) const {
  if (!HasAttributesOf(old.record, image)) return false;
  if (old.record.IsRegular() &&
      (!FileContent::IsFolded(old.record) || old.record.recipe != recipe)) {
    return false;
  }
  return HasXattrsOf(store_.metadata(), image, old);
}

Status EntryOps::RenewSource(const EntryImage& image, Inode& inode) {
  if (!image.source || !inode.record.IsRegular()) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const auto kept, FindSourceRecord(store_.metadata(), inode));
  if (kept && Matches(*kept, image) && kept->HasContentOf(inode.record) &&
      kept->HasAttributesOf(inode.record)) {
    return Status::Ok();
  }
  Change change;
  PutSourceRecord(image, kept.has_value(), inode, change);
  change.Save(inode);
  return changes_.Apply(change);
}

Result<InodeNumber> EntryOps::FindCurrent(const EntryImage& image) {
  SILTFS_ASSIGN_OR_RETURN(const auto entry, names_.FindName(image.parent, image.name));
  if (!entry) return InodeNumber{0};
  bool current = false;
  Status seen = inodes_.WithLoaded(entry->inode, false, [&](const Inode& inode) -> Status {
    if (!HasAttributesOf(inode.record, image)) return Status::Ok();
    if (!inode.record.IsRegular()) {
      current = inode.record.xattrs == 0;
      return Status::Ok();
    }
    SILTFS_ASSIGN_OR_RETURN(const auto kept, FindSourceRecord(store_.metadata(), inode));
    current = kept && Matches(*kept, image) && kept->HasAttributesOf(inode.record) &&
              kept->HasContentOf(inode.record);
    return Status::Ok();
  });
  if (seen.Is(StatusCode::kStale)) return InodeNumber{0};  // removed meanwhile
  SILTFS_RETURN_IF_ERROR(seen);
  return current ? entry->inode : 0;
}

Result<PutOutcome> EntryOps::Offer(const EntryImage& image, InodeNumber reference,
                                   bool probably_new) {
  SILTFS_RETURN_IF_ERROR(CheckEntryImage(image, /*directory=*/false));
  InodeNumber current = 0;
  if (!probably_new) {
    SILTFS_ASSIGN_OR_RETURN(current, FindCurrent(image));
  }
  if (current != 0) return PutOutcome{.effect = PutEffect::kUnchanged, .inode = current};
  const bool regular = (image.mode & 0170000) == 0100000;
  if (reference == 0 || !regular) return PutOutcome{.effect = PutEffect::kNeeded};
  return Share(image, reference);
}

Result<PutOutcome> EntryOps::Share(const EntryImage& image, InodeNumber reference) {
  const ChunkStore::Use use(store_.chunks());
  SILTFS_ASSIGN_OR_RETURN(const auto entry, names_.FindName(reference, image.name));
  if (!entry) return PutOutcome{.effect = PutEffect::kNeeded};
  SILTFS_RETURN_IF_ERROR(CheckBegin(kBytesPerName));
  const InodePtr source = inodes_.Get(entry->inode);
  // The source stays locked until its recipe is applied to the new inode. So a commit that lacks
  // the new inode has the source, and GC keeps the chunks.
  return AtName(
      image.parent, image.name, source, [&](const NamePlace& place) -> Result<PutOutcome> {
        const Status loaded = inodes_.LoadAndFlush(*source);
        if (loaded.Is(StatusCode::kStale)) return PutOutcome{.effect = PutEffect::kNeeded};
        SILTFS_RETURN_IF_ERROR(loaded);
        SILTFS_ASSIGN_OR_RETURN(const auto kept, FindSourceRecord(store_.metadata(), *source));
        const bool same = kept && source->record.links > 0 && Matches(*kept, image) &&
                          kept->HasAttributesOf(source->record) &&
                          kept->HasContentOf(source->record);
        if (!same || place.old == source.get()) return PutOutcome{.effect = PutEffect::kNeeded};
        SILTFS_ASSIGN_OR_RETURN(const InodeNumber number, ids_->NextInode());
        const int64_t now = store_.Now();
        Inode inode(number);
        inode.record = RecordOf(image, now);
        inode.record.size = inode.record.recipe_limit = source->record.size;
        inode.record.recipe = source->record.recipe;
        Change change;
        SILTFS_RETURN_IF_ERROR(CopyXattrs(store_.metadata(), *source, /*hidden=*/1, inode, change));
        PutSourceRecord(image, /*present=*/false, inode, change);
        return EnterNew(place, image.name, inode, now, change);
      });
}

Result<PutOutcome> EntryOps::Place(InodeNumber temporary, const EntryImage& image) {
  SILTFS_RETURN_IF_ERROR(CheckEntryImage(image, /*directory=*/false));
  const ChunkStore::Use use(store_.chunks());
  SILTFS_RETURN_IF_ERROR(folds_.FoldForCopy(temporary));  // the long part, before the locks
  SILTFS_RETURN_IF_ERROR(CheckBegin(kBytesPerName));
  const InodePtr inode = inodes_.Get(temporary);
  auto placed =
      AtName(image.parent, image.name, inode, [&](const NamePlace& place) -> Result<PutOutcome> {
        SILTFS_RETURN_IF_ERROR(inodes_.LoadContentAndFlush(*inode));
        SILTFS_RETURN_IF_ERROR(CheckRegular(inode->record));
        if (inode->record.links > 0 || !inode->linkable || inode->open_count == 0)
          return Status(StatusCode::kInvalidArgument, "is not an open temporary file");
        SILTFS_RETURN_IF_ERROR(folds_.FoldLocked(*inode, FileContent::FoldMode::kAll));
        if (inode->record.size != image.size || inode->record.xattrs > 0)
          return Status(StatusCode::kInvalidArgument, "the file's data contradict its size");
        bool same = false;
        if (place.old != nullptr) {
          SILTFS_ASSIGN_OR_RETURN(same, IsSame(image, inode->record.recipe, *place.old));
        }
        if (same) {
          SILTFS_RETURN_IF_ERROR(RenewSource(image, *place.old));
          return PutOutcome{.effect = PutEffect::kUnchanged, .inode = place.old->number};
        }
        const int64_t now = store_.Now();
        Change change;
        change.Include(*inode);
        const QuotaNumber quota = store_.quotas().Existing(place.directory.record.quota);
        SILTFS_ASSIGN_OR_RETURN(const auto room, MoveToQuota(quota, *inode, change));
        SetAttributesOf(inode->record, image);
        inode->record.links = 1;
        inode->record.parent = image.parent;
        inode->record.ctime = now;
        SILTFS_RETURN_IF_ERROR(AddXattrs(image, *inode, change));
        PutSourceRecord(image, /*present=*/false, *inode, change);
        InodeLifetimes::RemoveOrphanKey(*inode, change);
        change.Save(*inode);
        auto entered = Enter(place, image.name, *inode, now, change);
        if (entered.ok()) {
          inode->linkable = false;
          lifetimes_.NoLongerOrphan(temporary);
        }
        return entered;
      });
  return placed;
}

Result<PutOutcome> EntryOps::Link(InodeNumber number, InodeNumber parent, std::string_view name) {
  SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckName(name));
  SILTFS_RETURN_IF_ERROR(CheckBegin(kBytesPerName));
  const InodePtr inode = inodes_.Get(number);
  return AtName(parent, name, inode, [&](const NamePlace& place) -> Result<PutOutcome> {
    if (place.old == inode.get())
      return PutOutcome{.effect = PutEffect::kUnchanged, .inode = number};
    SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(*inode));
    InodeRecord& record = inode->record;
    if (record.IsDirectory())
      return Status(StatusCode::kNotPermitted, "a directory has one name only");
    if (record.links == 0) return Status(StatusCode::kNotFound, "the file was removed");
    if (record.links >= kMaxLinks)
      return Status(StatusCode::kTooManyLinks, "the file has too many names");
    SILTFS_RETURN_IF_ERROR(CheckLinkQuota(store_, names_, *inode, place.directory));
    Change change;
    CountMoved(store_, place.directory, *inode, change);
    ++record.links;
    record.parent = parent;
    change.Save(*inode);
    return Enter(place, name, *inode, store_.Now(), change);
  });
}

Result<bool> EntryOps::SetDirectory(InodeNumber directory, const EntryImage& image) {
  SILTFS_RETURN_IF_ERROR(CheckEntryImage(image, /*directory=*/true));
  SILTFS_RETURN_IF_ERROR(CheckBegin(kBytesPerName));
  const InodePtr inode = inodes_.Get(directory);
  const InodeLock lock(inode, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(*inode));
  SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckDirectory(*inode));
  InodeRecord& record = inode->record;
  const InodeRecord before = record;
  Change change;
  change.Include(*inode);
  SetAttributesOf(record, image);
  SILTFS_ASSIGN_OR_RETURN(const bool xattrs_changed,
                          ReplaceXattrs(store_.metadata(), image, *inode, change));
  if (xattrs_changed) inode->default_acl.reset();
  // The atime alone is not worth a write. Reading the source may have changed it.
  const bool changed = xattrs_changed || record.mode != before.mode || record.uid != before.uid ||
                       record.gid != before.gid || record.mtime != before.mtime;
  if (!changed) {
    record = before;
    change.SetApplied();
    return false;
  }
  record.ctime = store_.Now();
  change.Save(*inode);
  SILTFS_RETURN_IF_ERROR(changes_.Apply(change));
  return true;
}

}  // namespace siltfs
