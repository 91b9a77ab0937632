#include "store/env/sim_names.h"

#include <algorithm>
#include <functional>
#include <set>

namespace siltfs {
namespace {

constexpr size_t kMaxNameLength = 255;

// The components of the path from the root.
std::vector<std::string> SplitPath(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    std::string_view name = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (name == "..") {
      if (!names.empty()) names.pop_back();
    } else if (!name.empty() && name != ".") {
      names.emplace_back(name);
    }
  }
  return names;
}

Status NotFound() { return Status(StatusCode::kNotFound, "no such file or directory"); }
Status NotADirectory() { return Status(StatusCode::kNotADirectory, "not a directory"); }
Status IsADirectory() { return Status(StatusCode::kIsADirectory, "is a directory"); }

// Visits every node below `directory` that users see.
template <typename Visit>
void ForEachNode(const SimNodePtr& directory, const Visit& visit) {
  for (const auto& [name, node] : directory->entries) {
    visit(*node);
    if (node->type == FileType::kDirectory) ForEachNode(node, visit);
  }
}

}  // namespace

SimNames::SimNames() : root_(std::make_shared<SimNode>(FileType::kDirectory)) {}

Result<SimNames::Place> SimNames::Locate(std::string_view path) const {
  if (path.empty()) return NotFound();
  Place place{nullptr, "", root_};
  for (std::string& name : SplitPath(path)) {
    if (name.size() > kMaxNameLength) return Status(StatusCode::kNameTooLong, "a name is too long");
    if (place.node == nullptr) return NotFound();
    if (place.node->type != FileType::kDirectory) return NotADirectory();
    place.directory = place.node;
    auto found = place.directory->entries.find(name);
    place.node = found == place.directory->entries.end() ? nullptr : found->second;
    place.name = std::move(name);
  }
  return place;
}

Result<SimNodePtr> SimNames::Find(std::string_view path) const {
  SILTFS_ASSIGN_OR_RETURN(Place place, Locate(path));
  if (place.node == nullptr) return NotFound();
  return place.node;
}

Status SimNames::Add(std::string_view path, SimNodePtr node) {
  SILTFS_ASSIGN_OR_RETURN(Place place, Locate(path));
  if (place.node != nullptr) return Status(StatusCode::kAlreadyExists, "the name is taken");
  node->named = true;
  if (node->type == FileType::kRegular) files_[node->id] = node;
  Do({{place.directory, place.name, std::move(node)}});
  return Status::Ok();
}

Result<SimNodePtr> SimNames::RemoveFile(std::string_view path) {
  SILTFS_ASSIGN_OR_RETURN(Place place, Locate(path));
  if (place.node == nullptr) return NotFound();
  if (place.node->type == FileType::kDirectory) return IsADirectory();
  place.node->named = false;
  Do({{place.directory, place.name, nullptr}});
  return place.node;
}

Status SimNames::RemoveDirectory(std::string_view path) {
  SILTFS_ASSIGN_OR_RETURN(Place place, Locate(path));
  if (place.node == nullptr) return NotFound();
  if (place.node->type != FileType::kDirectory) return NotADirectory();
  if (place.node == root_) return Status(StatusCode::kInUse, "is the root directory");
  if (!place.node->entries.empty()) return Status(StatusCode::kNotEmpty, "directory not empty");
  Do({{place.directory, place.name, nullptr}});
  return Status::Ok();
}

Result<SimNodePtr> SimNames::Rename(std::string_view from, std::string_view to) {
  SILTFS_ASSIGN_OR_RETURN(Place source, Locate(from));
  SILTFS_ASSIGN_OR_RETURN(Place target, Locate(to));
  if (source.node == nullptr) return NotFound();
  if (source.node == root_ || target.node == root_) {
    return Status(StatusCode::kInUse, "is the root directory");
  }
  if (source.node == target.node) return SimNodePtr();
  const bool moves_directory = source.node->type == FileType::kDirectory;
  if (moves_directory && source.directory != target.directory) {
    return Status(StatusCode::kUnsupported, "the simulation moves no directory to another");
  }
  if (target.node != nullptr) {
    const bool replaces_directory = target.node->type == FileType::kDirectory;
    if (replaces_directory && !moves_directory) return IsADirectory();
    if (!replaces_directory && moves_directory) return NotADirectory();
    if (!target.node->entries.empty()) {
      return Status(StatusCode::kNotEmpty, "directory not empty");
    }
    target.node->named = false;
  }
  Do({{source.directory, source.name, nullptr}, {target.directory, target.name, source.node}});
  return target.node;
}

Status SimNames::SyncDirectory(std::string_view path, bool commit) {
  SILTFS_ASSIGN_OR_RETURN(SimNodePtr directory, Find(path));
  if (directory->type != FileType::kDirectory) return NotADirectory();
  if (!commit) return Status::Ok();
  for (Operation& operation : pending_) {
    for (Change& change : operation) {
      if (change.directory == directory) change.synced = true;
    }
  }
  CommitWhatCan();
  return Status::Ok();
}

void SimNames::Do(Operation operation) {
  for (const Change& change : operation) {
    if (change.node == nullptr) {
      change.directory->entries.erase(change.name);
    } else {
      change.directory->entries[change.name] = change.node;
    }
  }
  pending_.push_back(std::move(operation));
}

void SimNames::Apply(const Operation& operation) {
  for (const Change& change : operation) {
    if (change.node == nullptr) {
      change.directory->durable_entries.erase(change.name);
    } else {
      change.directory->durable_entries[change.name] = change.node;
    }
  }
}

void SimNames::CommitWhatCan() {
  std::set<std::pair<SimNode*, std::string>>
      waiting;  // names with an older change that is not durable
  std::vector<Operation> still_pending;
  for (Operation& operation : pending_) {
    const bool durable = std::all_of(operation.begin(), operation.end(), [&](const Change& change) {
      return change.synced && !waiting.contains({change.directory.get(), change.name});
    });
    if (durable) {
      Apply(operation);
    } else {
      for (const Change& change : operation) waiting.insert({change.directory.get(), change.name});
      still_pending.push_back(std::move(operation));
    }
  }
  pending_ = std::move(still_pending);
}

SimNames SimNames::Copy() const {
  std::map<const SimNode*, SimNodePtr> copies;
  const std::function<SimNodePtr(const SimNodePtr&)> copy_of = [&](const SimNodePtr& node) {
    if (node == nullptr) return SimNodePtr();
    SimNodePtr& copy = copies[node.get()];
    if (copy != nullptr) return copy;
    const SimNodePtr made = std::make_shared<SimNode>(node->type);
    copy = made;
    made->id = node->id;
    made->content = node->content;
    made->named = node->named;
    for (const auto& [name, child] : node->entries) made->entries[name] = copy_of(child);
    for (const auto& [name, child] : node->durable_entries) {
      made->durable_entries[name] = copy_of(child);
    }
    return made;
  };
  SimNames other;
  other.root_ = copy_of(root_);
  for (const Operation& operation : pending_) {
    Operation& its_copy = other.pending_.emplace_back();
    for (const Change& change : operation) {
      its_copy.push_back(
          {copy_of(change.directory), change.name, copy_of(change.node), change.synced});
    }
  }
  for (const auto& [original, copy] : copies) {
    if (copy->type == FileType::kRegular) other.files_[copy->id] = copy;
  }
  return other;
}

SimNodePtr SimNames::FindFile(uint64_t id) const {
  auto found = files_.find(id);
  return found == files_.end() ? nullptr : found->second.lock();
}

void SimNames::ApplySome(Random& random) {
  std::set<std::pair<SimNode*, std::string>> missing;  // names with a change that did not survive
  for (const Operation& operation : pending_) {
    const bool possible =
        std::none_of(operation.begin(), operation.end(), [&](const Change& change) {
          return missing.contains({change.directory.get(), change.name});
        });
    if (possible && random.OneIn(2)) {
      Apply(operation);
    } else {
      for (const Change& change : operation) missing.insert({change.directory.get(), change.name});
    }
  }
}

void SimNames::Crash(const CrashPolicy& policy, Random& random) {
  const bool drops_all = policy.unsynced == CrashPolicy::Unsynced::kDrop;
  const bool keeps_all = policy.unsynced == CrashPolicy::Unsynced::kKeep;
  if (policy.names_in_any_order && !drops_all && !keeps_all) {
    ApplySome(random);
  } else if (!drops_all) {
    const size_t surviving = keeps_all ? pending_.size() : random.Below(pending_.size() + 1);
    for (size_t i = 0; i < surviving; ++i) Apply(pending_[i]);
  }
  pending_.clear();

  root_->entries = root_->durable_entries;
  ForEachNode(root_, [&](SimNode& node) {
    node.entries = node.durable_entries;
    node.named = true;
    node.open_files = 0;
    node.locked = false;
    node.content.Crash(policy, random);
  });
}

uint64_t SimNames::ChargedPages() const {
  uint64_t pages = 0;
  ForEachNode(root_, [&](const SimNode& node) { pages += node.content.ChargedPages(); });
  return pages;
}

}  // namespace siltfs
