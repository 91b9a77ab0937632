#include "tools/import/import_worker.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "tools/import/import_records.h"

namespace siltfs {

using transfer::Answer;
using transfer::RequestType;

namespace {

constexpr uint32_t kDirectoryType = 0040000;
constexpr uint32_t kRegularType = 0100000;
// So many files are offered with one request.
constexpr size_t kOffersAtOnce = 1024;

}  // namespace

Status ImportWorker::Run() {
  while (!job_.stopped()) {
    const auto item = job_.TryPop();
    if (!item) {
      SILTFS_RETURN_IF_ERROR(Drain());
      if (!job_.WaitForMore()) break;
      continue;
    }
    Status imported = ImportOne(*item);
    job_.ItemDone();
    SILTFS_RETURN_IF_ERROR(imported);
  }
  return job_.stopped() ? Status::Ok() : Drain();
}

Status ImportWorker::Attach(InodeNumber directory) {
  SILTFS_ASSIGN_OR_RETURN(const Answer answer,
                          Call({.type = RequestType::kAttach, .number = directory}, {}));
  return transfer::StatusOfAnswer(answer);
}

Result<InodeNumber> ImportWorker::OpenTarget(InodeNumber parent, const std::string& name,
                                             bool create) {
  transfer::EntryRecord record;
  record.parent = parent;
  record.name = name;
  SILTFS_ASSIGN_OR_RETURN(
      const Answer answer,
      Call({.type = RequestType::kOpenDirectory, .flags = create ? transfer::kCreate : uint8_t{0}},
           transfer::EncodeRecord(record)));
  SILTFS_RETURN_IF_ERROR(transfer::StatusOfAnswer(answer));
  return answer.number;
}

Status ImportWorker::ImportOne(const ImportItem& item) {
  if (item.opened) {
    SILTFS_RETURN_IF_ERROR(ImportContents(item.opened));
    return CompleteWhenAnswered(item.opened);
  }
  Status imported;
  const auto attributes = item.parent->source->AttributesOf(item.name);
  if (!attributes.ok()) {
    Fail(*item.parent, item.name, attributes.status());
  } else if (attributes->IsDirectory()) {
    return ImportDirectory(item);
  } else {
    imported = ImportEntry(item.parent, item.name, *attributes);
  }
  SILTFS_RETURN_IF_ERROR(imported);
  return CompleteWhenAnswered(item.parent);
}

Status ImportWorker::ImportDirectory(const ImportItem& item) {
  const auto node = std::make_shared<DirectoryNode>();
  node->parent = item.parent;
  node->path = PathIn(*item.parent, item.name);
  node->relative = item.is_source                  ? std::string()
                   : item.parent->relative.empty() ? item.name
                                                   : item.parent->relative + "/" + item.name;
  node->finish = true;
  const auto open = [&]() -> Status {
    SILTFS_ASSIGN_OR_RETURN(node->source, item.parent->source->OpenDirectory(item.name));
    SILTFS_ASSIGN_OR_RETURN(node->attributes, node->source->Attributes());
    SILTFS_ASSIGN_OR_RETURN(node->xattrs, node->source->Xattrs());
    return Status::Ok();
  };
  const Status opened = open();
  const bool is_target = opened.ok() &&
                         node->attributes.file_system == job_.options().target_device &&
                         node->attributes.inode == job_.options().target_inode;
  if (!opened.ok() || is_target) {
    job_.AddError(node->path, is_target ? "is the directory that the import goes into, left out"
                                        : std::string(opened.cause()));
    return CompleteWhenAnswered(item.parent);
  }
  node->root_file_system =
      item.is_source ? node->attributes.file_system : item.parent->root_file_system;
  SILTFS_RETURN_IF_ERROR(OpenNode(*node, item.name));
  if (node->target == 0 && !job_.options().dry_run) return CompleteWhenAnswered(item.parent);
  const bool other = node->attributes.file_system != node->root_file_system;
  if (!other || !job_.options().one_file_system) SILTFS_RETURN_IF_ERROR(ImportContents(node));
  return CompleteWhenAnswered(node);
}

Status ImportWorker::OpenNode(DirectoryNode& node, const std::string& name) {
  const DirectoryNode& parent = *node.parent;
  const bool dry_run = job_.options().dry_run;
  if (parent.target != 0) {
    transfer::EntryRecord record;
    record.parent = parent.target;
    record.name = name;
    SILTFS_ASSIGN_OR_RETURN(const Answer answer,
                            Call({.type = RequestType::kOpenDirectory,
                                  .flags = dry_run ? uint8_t{0} : transfer::kCreate,
                                  .number = parent.reference},
                                 transfer::EncodeRecord(record)));
    const Status opened = transfer::StatusOfAnswer(answer);
    if (opened.Is(StatusCode::kNoSpace) || opened.Is(StatusCode::kReadOnly) ||
        opened.Is(StatusCode::kAborted)) {
      return opened;
    }
    if (!opened.ok()) {
      job_.AddError(node.path, std::string(opened.cause()));
      return Status::Ok();
    }
    node.target = answer.number;
    node.reference = answer.second;
    node.existed = (answer.flags & transfer::kExisted) != 0;
  }
  if (dry_run && node.target == 0) job_.TellChange("put " + node.path + "/");
  return Status::Ok();
}

Status ImportWorker::ImportContents(const DirectoryNodePtr& node) {
  const auto names = node->source->List();
  if (!names.ok()) {
    job_.AddError(node->path, std::string(names.status().cause()));
    return Status::Ok();
  }
  const ImportOptions& options = job_.options();
  const bool offers =
      !options.checksum && node->target != 0 && (node->existed || node->reference != 0);
  std::vector<ImportItem> below;
  std::vector<Offered> offered;
  for (const SourceDirectory::Name& entry : *names) {
    if (job_.stopped()) return Status::Ok();
    uint32_t type = entry.type;
    std::optional<SourceAttributes> attributes;
    const bool plain = type == kDirectoryType || (type == kRegularType && !offers);
    if (!plain) {
      auto read = node->source->AttributesOf(entry.name);
      if (!read.ok()) {
        Fail(*node, entry.name, read.status());
        continue;
      }
      attributes = *read;
      type = read->mode & 0170000;
    }
    const std::string relative = job_.exclude().empty()   ? std::string()
                                 : node->relative.empty() ? entry.name
                                                          : node->relative + "/" + entry.name;
    if (!job_.exclude().empty() && job_.exclude().Matches(relative, type == kDirectoryType))
      continue;
    if (type == kDirectoryType) {
      below.push_back({.parent = node, .name = entry.name});
    } else if (options.dry_run && node->target == 0) {
      ++job_.totals().files;
      job_.TellChange("put " + PathIn(*node, entry.name));
    } else if (type == kRegularType && (offers || options.dry_run)) {
      if (!attributes) {
        auto read = node->source->AttributesOf(entry.name);
        if (!read.ok()) {
          Fail(*node, entry.name, read.status());
          continue;
        }
        attributes = *read;
      }
      offered.push_back({entry.name, *attributes});
      if (offered.size() == kOffersAtOnce) SILTFS_RETURN_IF_ERROR(OfferAll(node, offered));
    } else if (type == kRegularType) {
      SILTFS_RETURN_IF_ERROR(PutFile(node, entry.name, /*claimed=*/false));
    } else if (options.dry_run) {
      offered.push_back({entry.name, *attributes});
    } else {
      SILTFS_RETURN_IF_ERROR(PutSpecial(node, entry.name, *attributes, /*claimed=*/false));
    }
  }
  SILTFS_RETURN_IF_ERROR(OfferAll(node, offered));
  if (options.remove && node->existed && !node->incomplete)
    SILTFS_RETURN_IF_ERROR(RemoveOthers(*node, *names));
  node->pending += below.size();
  if (!below.empty()) job_.Push(std::move(below));
  return Status::Ok();
}

Status ImportWorker::ImportEntry(const DirectoryNodePtr& node, const std::string& name,
                                 const SourceAttributes& attributes) {
  if (job_.options().dry_run || (attributes.IsRegular() && !job_.options().checksum)) {
    std::vector<Offered> offered = {{name, attributes}};
    return OfferAll(node, offered);
  }
  if (attributes.IsRegular()) return PutFile(node, name, /*claimed=*/false);
  return PutSpecial(node, name, attributes, /*claimed=*/false);
}

Result<std::vector<transfer::ListedName>> ImportWorker::ListTarget(InodeNumber directory) {
  std::vector<transfer::ListedName> names;
  for (uint64_t cookie = 0;;) {
    SILTFS_ASSIGN_OR_RETURN(
        const Answer answer,
        Call({.type = RequestType::kList, .number = directory, .second = cookie}, {}));
    SILTFS_RETURN_IF_ERROR(transfer::StatusOfAnswer(answer));
    SILTFS_ASSIGN_OR_RETURN(
        const auto present,
        transfer::DecodeListedNames(lane_.slot(2).first(answer.bytes), answer.count));
    names.insert(names.end(), present.begin(), present.end());
    cookie = answer.second;
    if (answer.count == 0 || cookie == 0) return names;
  }
}

Status ImportWorker::RemoveOthers(const DirectoryNode& node,
                                  const std::vector<SourceDirectory::Name>& names) {
  std::unordered_set<std::string> kept;
  for (const SourceDirectory::Name& name : names) kept.insert(name.name);
  const auto present = ListTarget(node.target);
  if (!present.ok()) {
    if (present.status().Is(StatusCode::kAborted)) return present.status();
    job_.AddError(node.path, "the directory in the store cannot be listed: " +
                                 std::string(present.status().cause()));
    return Status::Ok();
  }
  for (const transfer::ListedName& name : *present) {
    if (job_.stopped()) break;
    if (kept.contains(name.name)) continue;
    const std::string relative =
        node.relative.empty() ? name.name : node.relative + "/" + name.name;
    const auto removed = RemoveOther(node.target, name, relative, PathIn(node, name.name));
    if (removed.ok()) continue;
    if (removed.status().Is(StatusCode::kAborted)) return removed.status();
    job_.AddError(PathIn(node, name.name),
                  "cannot be removed from the store: " + std::string(removed.status().cause()));
  }
  return Status::Ok();
}

Result<bool> ImportWorker::RemoveOther(InodeNumber parent, const transfer::ListedName& name,
                                       const std::string& relative, const std::string& path) {
  const bool directory = (name.mode & 0170000) == kDirectoryType;
  if (job_.exclude().Matches(relative, directory)) return false;
  if (directory && !job_.exclude().empty()) {
    // A pattern may protect names in the directory.
    SILTFS_ASSIGN_OR_RETURN(const InodeNumber inode, OpenTarget(parent, name.name, false));
    SILTFS_ASSIGN_OR_RETURN(const auto present, ListTarget(inode));
    bool all = true;
    for (const transfer::ListedName& below : present) {
      if (job_.stopped()) return false;
      SILTFS_ASSIGN_OR_RETURN(
          const bool removed,
          RemoveOther(inode, below, relative + "/" + below.name, path + "/" + below.name));
      all = all && removed;
    }
    if (!all) return false;
  }
  if (job_.options().dry_run) {
    job_.TellChange("remove " + path);
    return true;
  }
  transfer::EntryRecord record;
  record.parent = parent;
  record.name = name.name;
  SILTFS_ASSIGN_OR_RETURN(const Answer answer,
                          Call({.type = RequestType::kRemove}, transfer::EncodeRecord(record)));
  SILTFS_RETURN_IF_ERROR(transfer::StatusOfAnswer(answer));
  job_.totals().removed += answer.number;
  return true;
}

}  // namespace siltfs
