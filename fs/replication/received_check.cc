#include "fs/replication/received_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "fs/inodes/inode_table.h"
#include "fs/interface/file_system.h"
#include "fs/mark/reference_sorter.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/schema.h"
#include "fs/versions/record_form.h"
#include "fs/versions/version_key.h"

namespace siltfs {
namespace {

constexpr uint64_t kStepsBetweenChecks = 1024;
// A path has at most PATH_MAX bytes, but directories can be deeper.
constexpr uint64_t kMostDepth = 1u << 20;

// What a change means for an inode. The second word of a note begins with it.
enum class Note : uint8_t {
  kTouched,       // its record or its overlay changed
  kName,          // a name leads to it
  kNameLost,      //
  kEntry,         // the directory has an entry
  kEntryLost,     //
  kSubdirectory,  //
  kSubdirectoryLost,
  kCookie,
  kCookieLost,
  kXattr,
  kXattrLost,
};
constexpr unsigned kNoteShift = 56;

Status Fault(std::string message) {
  return {StatusCode::kCorruption,
          "the snapshot in the stream is inconsistent: " + std::move(message)};
}

Result<std::optional<InodeRecord>> ReadInode(const KvSnapshot& state, uint64_t inode) {
  SILTFS_ASSIGN_OR_RETURN(const auto value, state.Get(InodeKey(inode)));
  if (!value) return std::optional<InodeRecord>();
  SILTFS_ASSIGN_OR_RETURN(InodeRecord record, InodeRecord::Decode(*value));
  return std::optional(std::move(record));
}

class ReceivedCheck {
 public:
  ReceivedCheck(Env& env, const ReceivedCheckOptions& options)
      : env_(env), options_(options), changes_(options.states), counters_(options.counters) {}

  Result<Counters> Run() {
    SILTFS_ASSIGN_OR_RETURN(
        notes_, RecordSorter<TwoWords>::Create(env_, {.directory = options_.sort_directory,
                                                      .memory_bytes = options_.memory_bytes,
                                                      .unnamed_files = true}));
    Status looked =
        changes_.ForEach({}, [this](RecordChange& change, std::string_view) -> Result<bool> {
          SILTFS_RETURN_IF_ERROR(Step());
          SILTFS_RETURN_IF_ERROR(Look(change));
          return true;
        });
    SILTFS_RETURN_IF_ERROR(looked);
    SILTFS_RETURN_IF_ERROR(notes_->Sort());
    while (!notes_->AtEnd()) SILTFS_RETURN_IF_ERROR(JudgeNext());
    SILTFS_ASSIGN_OR_RETURN(const auto root, ReadInode(changes_.after(), kRootInode));
    if (!root || !root->IsDirectory() || root->parent != kRootInode || root->links == 0)
      return Fault("it has no root directory");
    return counters_;
  }

 private:
  // The sums of the notes of one inode.
  struct Sums {
    uint64_t inode = 0;
    int64_t names = 0;
    int64_t new_names = 0;
    int64_t entries = 0;
    int64_t subdirectories = 0;
    int64_t cookies = 0;
    int64_t xattrs = 0;
  };

  Status Step() {
    return ++steps_ % kStepsBetweenChecks == 0 && options_.check ? options_.check() : Status::Ok();
  }
  // Equal records would count once, so each note has a number.
  Status Add(uint64_t inode, Note note) {
    return notes_->Add({inode, static_cast<uint64_t>(note) << kNoteShift | ++noted_});
  }
  Status AddPair(uint64_t inode, Note present, Note lost, const RecordChange& change) {
    if (change.before) SILTFS_RETURN_IF_ERROR(Add(inode, lost));
    return change.after ? Add(inode, present) : Status::Ok();
  }

  Status Look(const RecordChange& change) {
    uint64_t inode = 0;
    if (!IsVersionedKey(change.key, inode) || inode == 0 || inode >= options_.inode_limit ||
        (change.after && !IsRecord(change.key, *change.after)))
      return Fault("it has a malformed record");
    switch (static_cast<Table>(change.key[0])) {
      case Table::kDirectoryEntry:
        return LookAtName(inode, change);
      case Table::kDirectoryCookie:
        return LookAtCookie(inode, change);
      case Table::kXattr:
        return AddPair(inode, Note::kXattr, Note::kXattrLost, change);
      default:
        return Add(inode, Note::kTouched);
    }
  }

  Status LookAtName(uint64_t directory, const RecordChange& change) {
    const std::string_view name = change.key.substr(InodeKey(0).size());
    SILTFS_RETURN_IF_ERROR(AddPair(directory, Note::kEntry, Note::kEntryLost, change));
    if (change.before) {
      SILTFS_ASSIGN_OR_RETURN(const NameEntry before, NameEntry::Decode(*change.before));
      SILTFS_RETURN_IF_ERROR(Add(before.inode, Note::kNameLost));
      if (before.IsDirectory()) SILTFS_RETURN_IF_ERROR(Add(directory, Note::kSubdirectoryLost));
    }
    if (!change.after) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(const NameEntry after, NameEntry::Decode(*change.after));
    SILTFS_RETURN_IF_ERROR(Add(after.inode, Note::kName));
    if (after.IsDirectory()) SILTFS_RETURN_IF_ERROR(Add(directory, Note::kSubdirectory));
    SILTFS_ASSIGN_OR_RETURN(const auto cookie,
                            changes_.after().Get(DirectoryCookieKey(directory, after.cookie)));
    if (!cookie || *cookie != CookieEntry{after.inode, after.type, std::string(name)}.Encode())
      return Fault(fmt::format("a name in directory {} has no cookie", directory));
    SILTFS_ASSIGN_OR_RETURN(const auto target, ReadInode(changes_.after(), after.inode));
    if (!target || target->type() != after.type || after.inode == kRootInode)
      return Fault(fmt::format("a name in directory {} leads to no such inode", directory));
    if (target->IsDirectory() && target->parent != directory)
      return Fault(fmt::format("directory {} has another parent", after.inode));
    return Status::Ok();
  }

  Status LookAtCookie(uint64_t directory, const RecordChange& change) {
    SILTFS_RETURN_IF_ERROR(AddPair(directory, Note::kCookie, Note::kCookieLost, change));
    if (!change.after) return Status::Ok();
    const auto place = ParseNumberedKey(Table::kDirectoryCookie, change.key);
    SILTFS_ASSIGN_OR_RETURN(const CookieEntry entry, CookieEntry::Decode(*change.after));
    SILTFS_ASSIGN_OR_RETURN(const auto record, ReadInode(changes_.after(), directory));
    if (!place || place->number < kFirstCookie || !record || place->number >= record->next_cookie)
      return Fault(fmt::format("a cookie of directory {} is impossible", directory));
    SILTFS_ASSIGN_OR_RETURN(const auto name,
                            changes_.after().Get(DirectoryEntryKey(directory, entry.name)));
    if (!name || *name != NameEntry{entry.inode, entry.type, place->number}.Encode())
      return Fault(fmt::format("a cookie of directory {} has no name", directory));
    return Status::Ok();
  }

  // Judges the inode of the next notes.
  Status JudgeNext() {
    Sums sums;
    sums.inode = notes_->record()[0];
    while (!notes_->AtEnd() && notes_->record()[0] == sums.inode) {
      SILTFS_RETURN_IF_ERROR(Step());
      AddTo(sums, static_cast<Note>(notes_->record()[1] >> kNoteShift));
      SILTFS_RETURN_IF_ERROR(notes_->Next());
    }
    SILTFS_ASSIGN_OR_RETURN(auto before, ReadInode(changes_.before(), sums.inode));
    SILTFS_ASSIGN_OR_RETURN(const auto after, ReadInode(changes_.after(), sums.inode));
    return Judge(sums, before, after);
  }

  static void AddTo(Sums& sums, Note note) {
    switch (note) {
      case Note::kTouched:
        return;
      case Note::kName:
        ++sums.names;
        ++sums.new_names;
        return;
      case Note::kNameLost:
        --sums.names;
        return;
      case Note::kEntry:
        ++sums.entries;
        return;
      case Note::kEntryLost:
        --sums.entries;
        return;
      case Note::kSubdirectory:
        ++sums.subdirectories;
        return;
      case Note::kSubdirectoryLost:
        --sums.subdirectories;
        return;
      case Note::kCookie:
        ++sums.cookies;
        return;
      case Note::kCookieLost:
        --sums.cookies;
        return;
      case Note::kXattr:
        ++sums.xattrs;
        return;
      case Note::kXattrLost:
        --sums.xattrs;
        return;
    }
  }

  // How many names lead to the inode.
  static int64_t NamesOf(const std::optional<InodeRecord>& record, bool root) {
    if (!record || root) return 0;
    return record->IsDirectory() ? 1 : record->links;
  }

  Status Judge(const Sums& sums, const std::optional<InodeRecord>& before,
               const std::optional<InodeRecord>& after) {
    const auto fault = [&](std::string_view what) {
      return Fault(fmt::format("inode {} {}", sums.inode, what));
    };
    const bool root = sums.inode == kRootInode;
    if (after && (after->links == 0 || (before && before->type() != after->type())))
      return fault("has an impossible record");
    if (NamesOf(before, root) + sums.names != NamesOf(after, root))
      return fault("has another number of names than its record says");
    const InodeRecord none;
    const InodeRecord& old = before ? *before : none;
    const InodeRecord& now = after ? *after : none;
    const auto grew = [](uint64_t from, uint64_t to) { return static_cast<int64_t>(to - from); };
    if (grew(old.xattrs, now.xattrs) != sums.xattrs)
      return fault("has another number of extended attributes than its record says");
    if (grew(old.entries, now.entries) != sums.entries || sums.entries != sums.cookies)
      return fault("has another number of entries than its record says");
    const auto subdirectories = [](const InodeRecord& record) {
      return record.IsDirectory() ? int64_t{record.links} - 2 : 0;
    };
    if (subdirectories(now) - subdirectories(old) != sums.subdirectories)
      return fault("has another number of subdirectories than its record says");
    if (after && after->IsDirectory()) SILTFS_RETURN_IF_ERROR(JudgeDirectory(sums, before, *after));
    SILTFS_RETURN_IF_ERROR(JudgeOverlay(sums.inode, after));
    if (before) Count(*before, -1);
    if (after) Count(*after, 1);
    return Status::Ok();
  }

  Status JudgeDirectory(const Sums& sums, const std::optional<InodeRecord>& before,
                        const InodeRecord& after) {
    if (before && after.next_cookie < before->next_cookie)
      SILTFS_RETURN_IF_ERROR(JudgeCookies(sums.inode, after));
    if (sums.inode == kRootInode) return Status::Ok();
    // A new name was compared with the parent (LookAtName).
    if ((!before || before->parent != after.parent) && sums.new_names == 0)
      return Fault(fmt::format("directory {} has no name in its parent", sums.inode));
    // The base has no cycle. So a cycle has a directory that was moved, or only new directories,
    // one of which has a lower number than its parent.
    if (before ? before->parent == after.parent : after.parent < sums.inode) return Status::Ok();
    uint64_t at = after.parent;
    for (uint64_t depth = 0; at != kRootInode; ++depth) {
      SILTFS_RETURN_IF_ERROR(Step());
      SILTFS_ASSIGN_OR_RETURN(const auto above, ReadInode(changes_.after(), at));
      if (!above || !above->IsDirectory() || at == sums.inode || depth == kMostDepth)
        return Fault(fmt::format("directory {} cannot be reached from the root", sums.inode));
      at = above->parent;
    }
    return Status::Ok();
  }

  // The next cookie has fallen, as by a rollback at the sender.
  Status JudgeCookies(uint64_t directory, const InodeRecord& record) {
    const KeyRange range = RangeOf(Table::kDirectoryCookie, directory);
    SILTFS_ASSIGN_OR_RETURN(const auto last, changes_.after().LastIn(range.begin, range.end));
    const auto place = last ? ParseNumberedKey(Table::kDirectoryCookie, last->key) : std::nullopt;
    if (place && place->number >= record.next_cookie)
      return Fault(fmt::format("a cookie of directory {} is impossible", directory));
    return Status::Ok();
  }

  Status JudgeOverlay(uint64_t inode, const std::optional<InodeRecord>& record) {
    const KeyRange range = RangeOf(Table::kOverlay, inode);
    const auto extents = changes_.after().NewIteratorBelow(range.end);
    uint64_t end = 0;
    uint64_t slices = 0;
    uint64_t bytes = 0;
    bool any = false;
    for (extents->Seek(range.begin); extents->Valid(); extents->Next()) {
      const auto place = ParseNumberedKey(Table::kOverlay, extents->key());
      const auto extent = OverlayExtent::Decode(extents->value());
      if (!place || !extent.ok() || place->number < end || place->number > kMaxRecipeBytes)
        return Fault(fmt::format("inode {} has an impossible overlay", inode));
      any = true;
      end = place->number + extent->length;
      slices += extent->slices.size();
      if (extent->kind != OverlayExtent::Kind::kHole) bytes += extent->length;
    }
    SILTFS_RETURN_IF_ERROR(extents->status());
    const bool right = record && record->IsRegular()
                           ? record->has_overlay == any && record->overlay_chunks == slices &&
                                 record->overlay_bytes == bytes && end <= record->size
                           : !any;
    return right ? Status::Ok()
                 : Fault(fmt::format("inode {} has another overlay than its record says", inode));
  }

  void Count(const InodeRecord& record, int64_t sign) {
    // Sizes of a hostile stream may overflow the sums, which then are wrong, but defined.
    const auto add = [&](Counter counter, int64_t value) {
      int64_t& sum = counters_[static_cast<size_t>(counter)];
      const auto difference =
          sign > 0 ? static_cast<uint64_t>(value) : -static_cast<uint64_t>(value);
      sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + difference);
    };
    add(record.IsDirectory() ? Counter::kDirectories : Counter::kFiles, 1);
    if (!record.IsRegular()) return;
    const ContentTally tally(record);
    add(Counter::kLogicalBytes, tally.allocated);
    add(Counter::kChunkReferences, tally.references);
  }

  Env& env_;
  const ReceivedCheckOptions& options_;
  const StateChanges changes_;
  Counters counters_;
  std::unique_ptr<RecordSorter<TwoWords>> notes_;
  uint64_t noted_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace

Result<Counters> CheckReceived(Env& env, const ReceivedCheckOptions& options) {
  return ReceivedCheck(env, options).Run();
}

}  // namespace siltfs
