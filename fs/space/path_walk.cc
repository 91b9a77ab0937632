#include "fs/space/path_walk.h"

#include <fmt/format.h>

#include <set>

#include "fs/interface/posix_acl.h"
#include "fs/records/directory_paths.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

// So many names are visited between two reports of progress.
constexpr uint64_t kNamesBetweenReports = 1024;

Status Missing(const UsagePath& path) {
  return {StatusCode::kAborted,
          path.name.empty() ? "a directory was removed meanwhile"
                            : fmt::format("\"{}\" was removed or renamed meanwhile", path.name)};
}

}  // namespace

PathWalk::PathWalk(const KvSnapshot& state, const UsageScope& scope)
    : state_(state),
      scope_(scope),
      reader_(state),
      cookies_(state.NewIteratorBelow(RangeOf(Table::kDirectoryCookie).end)) {}

Status PathWalk::Run(const PathVisitor& visitor) {
  SILTFS_RETURN_IF_ERROR(FindAll());
  for (size_t path = 0; path < given_.size(); ++path) {
    if (same_as_[path] != path) continue;
    SILTFS_ASSIGN_OR_RETURN(const bool below, LiesBelowAnother(path));
    if (!below) SILTFS_RETURN_IF_ERROR(WalkFrom(path, visitor));
  }
  return Status::Ok();
}

Result<PathWalk::Given> PathWalk::Find(const UsagePath& path) const {
  Given given;
  given.inode = path.directory;
  if (!path.name.empty()) {
    SILTFS_ASSIGN_OR_RETURN(const auto entry, reader_.FindName({path.directory, path.name}));
    if (!entry) return Missing(path);
    given.inode = entry->inode;
    given.cookie = entry->cookie;
  }
  SILTFS_ASSIGN_OR_RETURN(auto record, reader_.FindInode(given.inode));
  if (!record) return Missing(path);
  if (path.name.empty() && !record->IsDirectory())
    return Status(StatusCode::kNotADirectory, fmt::format("inode {} is no directory", given.inode));
  given.record = *std::move(record);
  return given;
}

Status PathWalk::FindAll() {
  for (const UsagePath& path : scope_.paths) {
    SILTFS_ASSIGN_OR_RETURN(Given given, Find(path));
    const size_t place = given_.size();
    const bool directory = given.record.IsDirectory();
    same_as_.push_back(
        directory ? directories_.try_emplace(given.inode, place).first->second
                  : other_names_.try_emplace({path.directory, given.cookie}, place).first->second);
    given_.push_back(std::move(given));
  }
  return Status::Ok();
}

Result<bool> PathWalk::LiesBelowAnother(size_t path) const {
  const InodeRecord& record = given_[path].record;
  uint64_t above = record.IsDirectory() ? record.parent : scope_.paths[path].directory;
  if (record.IsDirectory() && given_[path].inode == kRootInode) return false;
  std::set<uint64_t> passed;
  while (true) {
    if (directories_.contains(above)) return true;
    if (above == kRootInode) return false;
    SILTFS_ASSIGN_OR_RETURN(const auto parent, reader_.FindInode(above));
    if (!parent || !parent->IsDirectory() || !passed.insert(above).second)
      return Contradiction(above, "is no directory that the root leads to");
    above = parent->parent;
  }
}

Result<bool> PathWalk::Admit(uint64_t inode, const InodeRecord& record) const {
  if (!scope_.admit) return true;
  UsageInode asked{
      .attributes = {.inode = inode, .mode = record.mode, .uid = record.uid, .gid = record.gid}};
  if (record.xattrs > 0) {
    SILTFS_ASSIGN_OR_RETURN(asked.access_list, state_.Get(XattrKey(inode, kAccessAclName)));
  }
  return scope_.admit(asked);
}

Status PathWalk::CountName() {
  if (++names_ % kNamesBetweenReports != 0 || !scope_.on_progress) return Status::Ok();
  return scope_.on_progress({.step = UsageProgress::Step::kNames, .done = names_});
}

Status PathWalk::WalkFrom(size_t root, const PathVisitor& visitor) {
  const Given& given = given_[root];
  const UsagePath& path = scope_.paths[root];
  const bool named = !path.name.empty();
  const FoundName found{.inode = given.inode,
                        .directory = named ? path.directory : 0,
                        .cookie = given.cookie,
                        .name = path.name,
                        .root = root,
                        .path = root};
  if (given.record.IsDirectory() || given.record.IsRegular()) {
    SILTFS_ASSIGN_OR_RETURN(const bool admitted, Admit(given.inode, given.record));
    if (!admitted) {
      DirectoryPaths paths(state_);
      SILTFS_ASSIGN_OR_RETURN(const std::string above, paths.PathOf(path.directory));
      return Status(StatusCode::kAccessDenied, "permission denied").At(above + path.name);
    }
  }
  SILTFS_RETURN_IF_ERROR(CountName());
  if (!given.record.IsDirectory()) return visitor.file(found);
  SILTFS_RETURN_IF_ERROR(visitor.enter(found));
  levels_.push_back({given.inode, kFirstCookie});
  return WalkDirectories(root, visitor);
}

Status PathWalk::WalkDirectories(size_t root, const PathVisitor& visitor) {
  uint64_t at = 0;  // the directory at whose next entry the cursor is
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (level.directory != at)
      cookies_->Seek(DirectoryCookieKey(level.directory, level.next_cookie));
    at = level.directory;
    SILTFS_RETURN_IF_ERROR(cookies_->status());
    const auto key = cookies_->Valid() ? ParseNumberedKey(Table::kDirectoryCookie, cookies_->key())
                                       : std::nullopt;
    if (!key || key->inode != level.directory) {
      levels_.pop_back();
      SILTFS_RETURN_IF_ERROR(visitor.leave());
      continue;
    }
    SILTFS_ASSIGN_OR_RETURN(const CookieEntry entry, CookieEntry::Decode(cookies_->value()));
    cookies_->Next();
    level.next_cookie = key->number + 1;
    SILTFS_RETURN_IF_ERROR(VisitEntry(entry,
                                      {.inode = entry.inode,
                                       .directory = key->inode,
                                       .cookie = key->number,
                                       .name = entry.name,
                                       .root = root},
                                      visitor));
  }
  return Status::Ok();
}

Status PathWalk::VisitEntry(const CookieEntry& entry, FoundName found, const PathVisitor& visitor) {
  SILTFS_RETURN_IF_ERROR(CountName());
  if (entry.type == 0040000) {
    SILTFS_ASSIGN_OR_RETURN(const InodeRecord record,
                            reader_.ReadChildDirectory(entry.inode, found.directory));
    SILTFS_ASSIGN_OR_RETURN(const bool admitted, Admit(entry.inode, record));
    if (!admitted) {
      ++left_out_;
      return Status::Ok();
    }
    if (const auto given = directories_.find(entry.inode); given != directories_.end())
      found.path = given->second;
    levels_.push_back({entry.inode, kFirstCookie});
    return visitor.enter(found);
  }
  if (entry.type == 0100000 && scope_.admit) {
    SILTFS_ASSIGN_OR_RETURN(const auto record, reader_.FindInode(entry.inode));
    if (!record) return Contradiction(entry.inode, "has a name but does not exist");
    SILTFS_ASSIGN_OR_RETURN(const bool admitted, Admit(entry.inode, *record));
    if (!admitted) {
      ++left_out_;
      return Status::Ok();
    }
  }
  const auto given = other_names_.find({found.directory, found.cookie});
  if (given != other_names_.end()) found.path = given->second;
  return visitor.file(found);
}

}  // namespace siltfs
