#include "store/env/sim_env.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "store/env/read_request.h"
#include "store/env/sim_disk.h"

namespace siltfs {
namespace {

constexpr uint64_t kMaxFileSize = uint64_t{1} << 62;

bool Aligned(uint64_t number) { return number % SimImage::kPageSize == 0; }

Status NotOpenForWriting() {
  return Status(StatusCode::kInvalidArgument, "is not open for writing");
}

class SimFile : public File {
 public:
  SimFile(const std::shared_ptr<SimDisk>& disk, std::string path, SimNodePtr node,
          OpenOptions options) SILTFS_REQUIRES(disk->mutex)
      : disk_(disk),
        path_(std::move(path)),
        node_(std::move(node)),
        options_(options),
        generation_(disk_->generation()) {
    ++node_->open_files;
  }

  ~SimFile() override {
    MutexLock lock(disk_->mutex);
    LetGo();
  }

  const std::string& path() const override { return path_; }
  bool LiesOn(const SimDisk& disk) const { return disk_.get() == &disk; }

  Result<size_t> Read(uint64_t offset, MutableByteView out) const override {
    MutexLock lock(disk_->mutex);
    Status checked = Begin(SimCall::kRead);
    if (checked.ok()) checked = CheckDirect(offset, out);
    if (!checked.ok()) return std::move(checked).At(path_, offset);
    return node_->content.current().Read(offset, out);
  }

  Status Write(uint64_t offset, ByteView data) override {
    MutexLock lock(disk_->mutex);
    Status begun = Begin(SimCall::kWrite);
    if (!begun.ok()) {
      const uint64_t bytes = std::min<uint64_t>(disk_->BytesOfFailedWrite(), data.size());
      if (bytes > 0)
        disk_->WriteWhatFits(*node_, offset, data.first(bytes)).IgnoreError("it fails already");
      return std::move(begun).At(path_, offset);
    }
    return disk_->End(WriteChecked(offset, data)).At(path_, offset);
  }

  Status Sync() override {
    MutexLock lock(disk_->mutex);
    const bool alive = Check().ok();
    Status begun = Begin(SimCall::kSync);
    if (!begun.ok()) {
      if (alive) {
        node_->content.LoseUnsynced();
        disk_->Record(SimRecord::Kind::kLoseUnsynced, *node_);
      }
      return std::move(begun).At(path_);
    }
    if (!disk_->Cutting()) {
      node_->content.Sync();
      disk_->Record(SimRecord::Kind::kSync, *node_);
    }
    return disk_->End(Status::Ok()).At(path_);
  }

  Status Truncate(uint64_t size) override {
    MutexLock lock(disk_->mutex);
    Status begun = Begin(SimCall::kTruncate);
    if (!begun.ok()) return std::move(begun).At(path_, size);
    return disk_->End(TruncateChecked(size)).At(path_, size);
  }

  Status Preallocate(uint64_t size) override {
    MutexLock lock(disk_->mutex);
    Status begun = Begin(SimCall::kPreallocate);
    if (!begun.ok()) return std::move(begun).At(path_);
    return disk_->End(Claim(size)).At(path_);
  }

  Result<uint64_t> Size() const override {
    MutexLock lock(disk_->mutex);
    Status begun = Begin(SimCall::kInfo);
    if (!begun.ok()) return std::move(begun).At(path_);
    return node_->content.current().size();
  }

  Status Close() override {
    MutexLock lock(disk_->mutex);
    Status checked = Check();
    LetGo();
    return std::move(checked).At(path_);
  }

 private:
  Status Begin(SimCall call) const SILTFS_REQUIRES(disk_->mutex) {
    if (closed_) return Status(StatusCode::kInvalidArgument, "is closed");
    return disk_->Begin(call, path_, generation_);
  }

  Status Check() const SILTFS_REQUIRES(disk_->mutex) {
    if (closed_) return Status(StatusCode::kInvalidArgument, "is closed");
    return disk_->CheckPower(generation_);
  }

  void LetGo() SILTFS_REQUIRES(disk_->mutex) {
    if (std::exchange(closed_, true) || generation_ != disk_->generation()) return;
    --node_->open_files;
    disk_->ReleaseIfGone(*node_);
  }

  bool Writable() const { return options_.mode != OpenMode::kRead; }

  Status CheckDirect(uint64_t offset, ByteView run) const {
    if (!options_.direct) return Status::Ok();
    if (Aligned(offset) && Aligned(run.size()) && Aligned(std::bit_cast<uintptr_t>(run.data()))) {
      return Status::Ok();
    }
    return Status(StatusCode::kInvalidArgument, "direct access is not aligned to 4096 bytes");
  }

  Status WriteChecked(uint64_t offset, ByteView data) SILTFS_REQUIRES(disk_->mutex) {
    if (!Writable()) return NotOpenForWriting();
    SILTFS_RETURN_IF_ERROR(CheckDirect(offset, data));
    if (offset > kMaxFileSize || data.size() > kMaxFileSize - offset) {
      return Status(StatusCode::kFileTooLarge, "beyond the largest file size");
    }
    return disk_->WriteWhatFits(*node_, offset, data);
  }

  Status TruncateChecked(uint64_t size) SILTFS_REQUIRES(disk_->mutex) {
    if (!Writable()) return NotOpenForWriting();
    if (size > kMaxFileSize) {
      return Status(StatusCode::kFileTooLarge, "beyond the largest file size");
    }
    disk_->used_pages -= node_->content.ChargedPages();
    node_->content.Truncate(size);
    disk_->used_pages += node_->content.ChargedPages();
    disk_->Record(SimRecord::Kind::kTruncate, *node_, size);
    return Status::Ok();
  }

  Status Claim(uint64_t size) SILTFS_REQUIRES(disk_->mutex) {
    if (!Writable()) return NotOpenForWriting();
    const uint64_t pages =
        size > SimEnv::kUnlimited ? SimEnv::kUnlimited : node_->content.PagesToClaim(size);
    if (pages > disk_->capacity_pages - std::min(disk_->capacity_pages, disk_->used_pages)) {
      return Status(StatusCode::kNoSpace, "no space left on the device");
    }
    node_->content.Claim(size);
    disk_->used_pages += pages;
    disk_->Record(SimRecord::Kind::kPreallocate, *node_, size);
    return Status::Ok();
  }

  const std::shared_ptr<SimDisk> disk_;
  const std::string path_;
  const SimNodePtr node_;
  const OpenOptions options_;
  const uint64_t generation_;
  bool closed_ SILTFS_GUARDED_BY(disk_->mutex) = false;
};

class SimFileLock : public FileLock {
 public:
  SimFileLock(const std::shared_ptr<SimDisk>& disk, SimNodePtr node) SILTFS_REQUIRES(disk->mutex)
      : disk_(disk), node_(std::move(node)), generation_(disk_->generation()) {
    node_->locked = true;
  }
  ~SimFileLock() override {
    MutexLock lock(disk_->mutex);
    if (generation_ == disk_->generation()) node_->locked = false;
  }

 private:
  const std::shared_ptr<SimDisk> disk_;
  const SimNodePtr node_;
  const uint64_t generation_;
};

class SimReadQueue : public ReadQueue {
 public:
  explicit SimReadQueue(std::shared_ptr<SimDisk> disk) : disk_(std::move(disk)) {}

  void DoReadAll(std::span<ReadRequest> requests, const Again* again) override {
    for (ReadRequest& request : requests) {
      do {
        const auto* file = dynamic_cast<const SimFile*>(Underlying(request));
        if (file != nullptr && !file->LiesOn(*disk_)) file = nullptr;
        request.status = BeginRequest(request, file);
        if (request.status.ok()) ReadRest(request);
      } while (IsAgain(again, request));
    }
  }

  std::string_view mechanism() const override { return "simulated"; }

 private:
  const std::shared_ptr<SimDisk> disk_;
};

}  // namespace

SimEnv::SimEnv(uint64_t seed) : disk_(std::make_shared<SimDisk>(seed)) {}
SimEnv::~SimEnv() = default;

void SimEnv::PowerCut(CrashPolicy policy) { Reboot(policy); }

void SimEnv::CutAtCall(uint64_t nth) {
  MutexLock lock(disk_->mutex);
  disk_->calls_until_cut = nth;
}

uint64_t SimEnv::PowerCuts() const {
  MutexLock lock(disk_->mutex);
  return disk_->generation();
}

bool SimEnv::PowerIsOn() const {
  MutexLock lock(disk_->mutex);
  return disk_->power_is_on;
}

void SimEnv::Reboot(CrashPolicy policy) {
  MutexLock lock(disk_->mutex);
  disk_->Reboot(policy);
}

void SimEnv::FailCall(SimFault fault) {
  MutexLock lock(disk_->mutex);
  disk_->faults.push_back(std::move(fault));
}

void SimEnv::ClearFaults() {
  MutexLock lock(disk_->mutex);
  disk_->faults.clear();
}

uint64_t SimEnv::Calls(SimCall mask) const {
  MutexLock lock(disk_->mutex);
  uint64_t sum = 0;
  for (size_t bit = 0; bit < disk_->counters.size(); ++bit) {
    if (Includes(mask, static_cast<SimCall>(uint32_t{1} << bit))) sum += disk_->counters[bit];
  }
  return sum;
}

void SimEnv::SetCapacity(uint64_t bytes) {
  MutexLock lock(disk_->mutex);
  disk_->capacity_pages = bytes / SimImage::kPageSize;
}

void SimEnv::SetClock(int64_t nanoseconds) {
  MutexLock lock(disk_->mutex);
  disk_->clock = nanoseconds;
}

void SimEnv::AdvanceClock(int64_t nanoseconds) {
  MutexLock lock(disk_->mutex);
  disk_->clock += nanoseconds;
  disk_->monotonic_clock += nanoseconds;
}

Result<std::unique_ptr<File>> SimEnv::OpenFile(const std::string& path, OpenOptions options) {
  MutexLock lock(disk_->mutex);
  const bool creates = options.mode == OpenMode::kCreate;
  Status begun = disk_->Begin(creates ? SimCall::kCreate : SimCall::kOpen, path);
  if (!begun.ok()) return std::move(begun).At(path);
  if (creates) {
    auto node = std::make_shared<SimNode>(FileType::kRegular);
    Status created = disk_->AddName(path, node);
    if (!created.ok()) return std::move(created).At(path);
    return std::unique_ptr<File>(new SimFile(disk_, path, std::move(node), options));
  }
  Result<SimNodePtr> node = disk_->names.Find(path);
  if (!node.ok()) return std::move(node).status().At(path);
  if ((*node)->type != FileType::kRegular) {
    return Status(StatusCode::kIsADirectory, "is a directory").At(path);
  }
  return std::unique_ptr<File>(new SimFile(disk_, path, *std::move(node), options));
}

Status SimEnv::CreateDirectory(const std::string& path) {
  MutexLock lock(disk_->mutex);
  Status begun = disk_->Begin(SimCall::kCreate, path);
  if (!begun.ok()) return std::move(begun).At(path);
  return disk_->AddName(path, std::make_shared<SimNode>(FileType::kDirectory)).At(path);
}

Result<std::vector<DirectoryEntry>> SimEnv::ListDirectory(const std::string& path) {
  MutexLock lock(disk_->mutex);
  Status begun = disk_->Begin(SimCall::kList, path);
  if (!begun.ok()) return std::move(begun).At(path);
  Result<SimNodePtr> node = disk_->names.Find(path);
  if (!node.ok()) return std::move(node).status().At(path);
  if ((*node)->type != FileType::kDirectory) {
    return Status(StatusCode::kNotADirectory, "not a directory").At(path);
  }
  std::vector<DirectoryEntry> list;
  // In reverse order, so that no caller relies on a sorted list.
  const SimNode::Entries& entries = (*node)->entries;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    list.push_back({entry->first, entry->second->type});
  }
  return list;
}

Status SimEnv::RemoveFile(const std::string& path) {
  MutexLock lock(disk_->mutex);
  Status begun = disk_->Begin(SimCall::kRemove, path);
  if (!begun.ok()) return std::move(begun).At(path);
  Result<SimNodePtr> removed = disk_->names.RemoveFile(path);
  if (removed.ok()) {
    disk_->ReleaseIfGone(**removed);
    disk_->Record(SimRecord::Kind::kRemoveFile, path);
  }
  return disk_->End(removed.status()).At(path);
}

Status SimEnv::RemoveDirectory(const std::string& path) {
  MutexLock lock(disk_->mutex);
  Status begun = disk_->Begin(SimCall::kRemove, path);
  if (!begun.ok()) return std::move(begun).At(path);
  Status removed = disk_->names.RemoveDirectory(path);
  if (removed.ok()) disk_->Record(SimRecord::Kind::kRemoveDirectory, path);
  return disk_->End(std::move(removed)).At(path);
}

Status SimEnv::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(disk_->mutex);
  Status begun = disk_->Begin(SimCall::kRename, from);
  if (!begun.ok()) return std::move(begun).At(from);
  Result<SimNodePtr> replaced = disk_->names.Rename(from, to);
  if (replaced.ok() && *replaced != nullptr) disk_->ReleaseIfGone(**replaced);
  if (replaced.ok()) disk_->Record(SimRecord::Kind::kRename, from, to);
  return disk_->End(replaced.status()).At(from);
}

Status SimEnv::SyncDirectory(const std::string& path) {
  MutexLock lock(disk_->mutex);
  Status begun = disk_->Begin(SimCall::kSyncDirectory, path);
  if (!begun.ok()) return std::move(begun).At(path);
  const bool commits = !disk_->Cutting();
  Status synced = disk_->names.SyncDirectory(path, commits);
  if (synced.ok() && commits) disk_->Record(SimRecord::Kind::kSyncDirectory, path);
  return disk_->End(std::move(synced)).At(path);
}

Result<FileInfo> SimEnv::GetFileInfo(const std::string& path) {
  MutexLock lock(disk_->mutex);
  Status begun = disk_->Begin(SimCall::kInfo, path);
  if (!begun.ok()) return std::move(begun).At(path);
  Result<SimNodePtr> node = disk_->names.Find(path);
  if (!node.ok()) return std::move(node).status().At(path);
  const SimContent& content = (*node)->content;
  return FileInfo{(*node)->type, content.current().size(),
                  content.ChargedPages() * SimImage::kPageSize};
}

Result<DiskSpace> SimEnv::GetDiskSpace(const std::string& path) {
  MutexLock lock(disk_->mutex);
  Status begun = disk_->Begin(SimCall::kInfo, path);
  if (!begun.ok()) return std::move(begun).At(path);
  Result<SimNodePtr> node = disk_->names.Find(path);
  if (!node.ok()) return std::move(node).status().At(path);
  const uint64_t total = disk_->capacity_pages;
  const uint64_t free = total - std::min(total, disk_->used_pages);
  return DiskSpace{total * SimImage::kPageSize, free * SimImage::kPageSize,
                   free * SimImage::kPageSize};
}

Result<std::unique_ptr<FileLock>> SimEnv::LockFile(const std::string& path) {
  MutexLock lock(disk_->mutex);
  Result<SimNodePtr> found = disk_->names.Find(path);
  const bool creates = found.status().Is(StatusCode::kNotFound);
  Status begun = disk_->Begin(creates ? SimCall::kCreate : SimCall::kOpen, path);
  if (!begun.ok()) return std::move(begun).At(path);
  if (creates) {
    auto node = std::make_shared<SimNode>(FileType::kRegular);
    Status created = disk_->AddName(path, node);
    if (!created.ok()) return std::move(created).At(path);
    return std::unique_ptr<FileLock>(new SimFileLock(disk_, std::move(node)));
  }
  if (!found.ok()) return std::move(found).status().At(path);
  if ((*found)->type != FileType::kRegular) {
    return Status(StatusCode::kIsADirectory, "is a directory").At(path);
  }
  if ((*found)->locked) return Status(StatusCode::kInUse, "is locked by another holder").At(path);
  return std::unique_ptr<FileLock>(new SimFileLock(disk_, *std::move(found)));
}

Result<std::unique_ptr<ReadQueue>> SimEnv::NewReadQueue(unsigned depth) {
  SILTFS_RETURN_IF_ERROR(CheckReadQueueDepth(depth));
  return std::unique_ptr<ReadQueue>(std::make_unique<SimReadQueue>(disk_));
}

void SimEnv::StartTrace() {
  MutexLock lock(disk_->mutex);
  disk_->trace.emplace();
}

SimTrace SimEnv::TakeTrace() {
  MutexLock lock(disk_->mutex);
  SimTrace trace = std::move(disk_->trace).value_or(SimTrace());
  disk_->trace.reset();
  return trace;
}

void SimEnv::Mark(ByteView note) {
  MutexLock lock(disk_->mutex);
  disk_->Record({SimRecord::Kind::kMark, 0, 0, {}, {}, Bytes(note.begin(), note.end())});
}

Status SimEnv::Replay(const SimRecord& record) {
  MutexLock lock(disk_->mutex);
  return disk_->Replay(record);
}

std::unique_ptr<SimEnv> SimEnv::Fork() const {
  auto copy = std::make_unique<SimEnv>();
  MutexLock lock(disk_->mutex);
  MutexLock copy_lock(copy->disk_->mutex);
  copy->disk_->CopyFrom(*disk_);
  return copy;
}

std::unique_ptr<SimEnv> SimEnv::ForkAndTrace() {
  auto copy = std::make_unique<SimEnv>();
  MutexLock lock(disk_->mutex);
  MutexLock copy_lock(copy->disk_->mutex);
  copy->disk_->CopyFrom(*disk_);
  disk_->trace.emplace();
  return copy;
}

int64_t SimEnv::NowNanoseconds() {
  MutexLock lock(disk_->mutex);
  return disk_->clock;
}

int64_t SimEnv::MonotonicNanoseconds() {
  MutexLock lock(disk_->mutex);
  return disk_->monotonic_clock;
}

Status SimEnv::FillRandom(MutableByteView out) {
  MutexLock lock(disk_->mutex);
  SILTFS_RETURN_IF_ERROR(disk_->CheckPower(disk_->generation()));
  disk_->random.Fill(out);
  return Status::Ok();
}

}  // namespace siltfs
