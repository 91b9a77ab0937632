#include "tools/import/import_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "store/env/mountpoint.h"

namespace siltfs {
namespace {

// A source as the user has named it.
struct SourcePlace {
  std::string directory;  // that has the entry, or whose contents are imported
  std::string name;       // empty: the contents of the directory
};

Result<SourcePlace> PlaceOf(const std::string& source) {
  const size_t end = source.find_last_not_of('/');
  if (end == std::string::npos) return SourcePlace{"/", ""};
  const std::string trimmed = source.substr(0, end + 1);
  const size_t slash = trimmed.rfind('/');
  std::string name = slash == std::string::npos ? trimmed : trimmed.substr(slash + 1);
  const bool contents = end + 1 < source.size() || name == "." || name == "..";
  if (contents) return SourcePlace{source, ""};
  return SourcePlace{slash == std::string::npos ? "." : trimmed.substr(0, slash + 1),
                     std::move(name)};
}

Status StopReason() { return {StatusCode::kInterrupted, "was interrupted"}; }

}  // namespace

Result<MountedDirectory> ImportRun::FindDirectory(const std::string& path) const {
  MountedDirectory found;
  SILTFS_ASSIGN_OR_RETURN(found.address, arguments_.find_daemon(path));
  if (found.address.mountpoint.empty()) {
    return Status(StatusCode::kNotFound, "is not in a mounted siltfs file system").At(path);
  }
  SILTFS_RETURN_IF_ERROR(control::Identify(found.address).status());
  const auto directory = SourceDirectory::OpenForNames(path);
  // A missing directory is no missing store, which has its own exit code.
  if (directory.status().Is(StatusCode::kNotFound))
    return Status(StatusCode::kStale, "there is no such directory").At(path);
  SILTFS_RETURN_IF_ERROR(directory.status());
  SILTFS_ASSIGN_OR_RETURN(const SourceAttributes attributes, (*directory)->Attributes());
  found.device = attributes.file_system;
  found.inode = attributes.inode;
  return found;
}

ImportRun::ImportRun(ImportArguments arguments, ImportJob::Report report, ImportJob::Tell tell)
    : arguments_(std::move(arguments)),
      report_(std::move(report)),
      tell_(std::move(tell)),
      job_(std::make_unique<ImportJob>(arguments_.options, report_, tell_)) {}

void ImportRun::Interrupt() {
  const MutexLock lock(mutex_);
  job_->Stop(StopReason());
  if (connection_ != nullptr) connection_->Abort();
}

Status ImportRun::CheckSources() const {
  std::set<std::string> names;
  for (const std::string& source : arguments_.sources) {
    SILTFS_ASSIGN_OR_RETURN(const SourcePlace place, PlaceOf(source));
    if (!names.insert(place.name).second && arguments_.options.remove) {
      return Status(StatusCode::kInvalidArgument,
                    "with --delete, two sources must not go into the same directory")
          .At(source);
    }
  }
  if (names.size() > 1 && names.contains("") && arguments_.options.remove) {
    return {StatusCode::kInvalidArgument,
            "with --delete, the contents of a directory must be the only source"};
  }
  return Status::Ok();
}

Result<ImportRun::Target> ImportRun::FindTarget() const {
  auto found = FindDirectory(arguments_.target);
  if (found.ok()) return Target{*std::move(found), {}};
  if (!found.status().Is(StatusCode::kNotFound) && !found.status().Is(StatusCode::kStale))
    return found.status();
  // Only the last directory of the path may be missing.
  SILTFS_ASSIGN_OR_RETURN(
      const SourcePlace place,
      PlaceOf(arguments_.target.substr(0, arguments_.target.find_last_not_of('/') + 1)));
  if (place.name.empty()) return found.status();
  auto parent = FindDirectory(place.directory);
  if (parent.status().Is(StatusCode::kNotFound)) return found.status();
  SILTFS_RETURN_IF_ERROR(parent.status());
  return Target{*std::move(parent), place.name};
}

Result<std::vector<ImportItem>> ImportRun::OpenSources(InodeNumber target, InodeNumber reference) {
  std::vector<ImportItem> items;
  for (const std::string& source : arguments_.sources) {
    SILTFS_ASSIGN_OR_RETURN(const SourcePlace place, PlaceOf(source));
    const auto node = std::make_shared<DirectoryNode>();
    auto opened = place.name.empty() ? SourceDirectory::Open(place.directory)
                                     : SourceDirectory::OpenForNames(place.directory);
    if (!opened.ok()) {
      job_->AddError(source, std::string(opened.status().cause()));
      continue;
    }
    node->source = *std::move(opened);
    SILTFS_ASSIGN_OR_RETURN(node->attributes, node->source->Attributes());
    node->path = place.directory;
    node->target = target;
    node->reference = reference;
    node->existed = true;
    node->root_file_system = node->attributes.file_system;
    if (!place.name.empty()) {
      node->path = place.directory == "." ? std::string() : place.directory;
      items.push_back({.parent = node, .name = place.name, .is_source = true});
      continue;
    }
    if (node->attributes.file_system == job_->options().target_device &&
        node->attributes.inode == job_->options().target_inode) {
      return Status(StatusCode::kInvalidArgument, "is the directory that the import goes into")
          .At(source);
    }
    SILTFS_ASSIGN_OR_RETURN(node->xattrs, node->source->Xattrs());
    node->finish = target != 0;
    items.push_back({.parent = nullptr, .name = {}, .is_source = true, .opened = node});
  }
  return items;
}

Result<uint64_t> ImportRun::Run() {
  SILTFS_RETURN_IF_ERROR(CheckSources());
  SILTFS_ASSIGN_OR_RETURN(const Target target, FindTarget());
  InodeNumber reference = 0;
  if (!arguments_.reference.empty()) {
    SILTFS_ASSIGN_OR_RETURN(const MountedDirectory found, FindDirectory(arguments_.reference));
    if (found.address.store != target.directory.address.store) {
      return Status(StatusCode::kInvalidArgument, "is in another store than the target")
          .At(arguments_.reference);
    }
    reference = found.inode;
  }
  // Written data that the kernel still holds would otherwise change files after their import.
  SILTFS_RETURN_IF_ERROR(SendWrites(target.directory.address.mountpoint));
  return RunWorkers(target, reference);
}

Result<uint64_t> ImportRun::RunWorkers(const Target& target, InodeNumber reference) {
  ImportOptions options = arguments_.options;
  if (target.missing.empty()) {
    options.target_device = target.directory.device;
    options.target_inode = target.directory.inode;
  }
  SILTFS_ASSIGN_OR_RETURN(const auto connection,
                          TransferConnection::Open(target.directory.address, "import"));
  {
    const MutexLock lock(mutex_);
    if (job_->stopped()) return StopReason();
    connection_ = connection.get();
  }
  // Ends the use of the connection by Interrupt.
  const std::shared_ptr<void> end(nullptr, [this](void*) {
    const MutexLock lock(mutex_);
    connection_ = nullptr;
  });
  job_->SetTarget(options.target_device, options.target_inode);
  const size_t count =
      std::clamp<size_t>(std::thread::hardware_concurrency() + 1, 2, transfer::kMaxLanes);
  std::vector<std::unique_ptr<ImportWorker>> workers;
  for (size_t i = 0; i < count; ++i) {
    SILTFS_ASSIGN_OR_RETURN(LaneClient* const lane, connection->NewLane());
    workers.push_back(std::make_unique<ImportWorker>(*job_, *lane));
  }
  const auto prepare = [&]() -> Status {
    SILTFS_RETURN_IF_ERROR(workers[0]->Attach(target.directory.inode));
    InodeNumber into = target.directory.inode;
    if (!target.missing.empty()) {
      SILTFS_ASSIGN_OR_RETURN(
          into, workers[0]->OpenTarget(into, target.missing, !job_->options().dry_run));
      // The new directory may lie in a source, which must not be copied into itself.
      if (into != 0) job_->SetTarget(target.directory.device, into);
    }
    if (reference != 0) SILTFS_RETURN_IF_ERROR(workers[0]->Attach(reference));
    SILTFS_ASSIGN_OR_RETURN(auto items, OpenSources(into, reference));
    job_->Push(std::move(items));
    return Status::Ok();
  };
  if (Status prepared = prepare(); !prepared.ok())
    return connection->ReasonFor(std::move(prepared));
  std::vector<std::thread> threads;
  for (const auto& worker : workers) {
    threads.emplace_back([this, raw = worker.get()] {
      Status outcome = raw->Run();
      if (!outcome.ok()) job_->Stop(std::move(outcome));
    });
  }
  for (std::thread& thread : threads) thread.join();
  Status outcome = job_->outcome();
  if (!outcome.ok()) {
    if (outcome.Is(StatusCode::kInterrupted)) return outcome;
    return connection->ReasonFor(std::move(outcome));
  }
  SILTFS_ASSIGN_OR_RETURN(const nlohmann::json totals, connection->Finish());
  const auto bytes_new = totals.find("bytes_new");
  return bytes_new != totals.end() && bytes_new->is_number_unsigned() ? bytes_new->get<uint64_t>()
                                                                      : 0;
}

}  // namespace siltfs
