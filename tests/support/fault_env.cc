#include "tests/support/fault_env.h"

#include <algorithm>

namespace siltfs::testing {
namespace {

class FaultFile : public File {
 public:
  FaultFile(const FaultEnv& env, std::unique_ptr<File> base) : env_(env), base_(std::move(base)) {}

  const std::string& path() const override { return base_->path(); }
  const File* base() const { return base_.get(); }
  Result<size_t> Read(uint64_t offset, MutableByteView out) const override {
    SILTFS_RETURN_IF_ERROR(env_.Note(FaultEnv::Call::kRead, path()));
    return base_->Read(offset, out);
  }
  Status Write(uint64_t offset, ByteView data) override {
    bool half = false;
    Status failed = env_.NoteWrite(path(), half);
    if (failed.ok()) return base_->Write(offset, data);
    if (half) SILTFS_RETURN_IF_ERROR(base_->Write(offset, data.first(data.size() / 2)));
    return failed;
  }
  Status Sync() override {
    SILTFS_RETURN_IF_ERROR(env_.Note(FaultEnv::Call::kSync, path()));
    return base_->Sync();
  }
  Status Truncate(uint64_t size) override {
    SILTFS_RETURN_IF_ERROR(env_.Note(FaultEnv::Call::kWrite, path()));
    return base_->Truncate(size);
  }
  Status Preallocate(uint64_t size) override {
    SILTFS_RETURN_IF_ERROR(env_.Note(FaultEnv::Call::kWrite, path()));
    return base_->Preallocate(size);
  }
  Result<uint64_t> Size() const override { return base_->Size(); }
  Status Close() override { return base_->Close(); }

 private:
  const FaultEnv& env_;
  const std::unique_ptr<File> base_;
};

class FaultReadQueue : public ReadQueue {
 public:
  FaultReadQueue(const FaultEnv& env, std::unique_ptr<ReadQueue> base)
      : env_(env), base_(std::move(base)) {}

  void DoReadAll(std::span<ReadRequest> requests, const Again* again) override {
    std::vector<ReadRequest> passed_on;
    std::vector<ReadRequest*> places;
    for (ReadRequest& request : requests) {
      ReadRequest passed;
      if (!PassOn(request, again, passed)) continue;
      passed_on.push_back(std::move(passed));
      places.push_back(&request);
    }
    base_->ReadAll(passed_on, [&](ReadRequest& passed) {
      ReadRequest& request = *places[static_cast<size_t>(&passed - passed_on.data())];
      request.bytes_read = passed.bytes_read;
      request.status = std::move(passed.status);
      return IsAgain(again, request) && PassOn(request, again, passed);
    });
  }

  // Prepares `passed`, the request for the base queue. False if the request has failed and is done.
  bool PassOn(ReadRequest& request, const Again* again, ReadRequest& passed) {
    do {
      const auto* file = dynamic_cast<const FaultFile*>(
          request.file == nullptr ? nullptr : &request.file->underlying());
      request.bytes_read = 0;
      request.status.IgnoreError("of an earlier use");
      request.status =
          file == nullptr ? Status::Ok() : env_.Note(FaultEnv::Call::kRead, file->path());
      if (!request.status.ok()) continue;
      // A file of another Env becomes null, so the base queue refuses the request.
      passed.file = file == nullptr ? nullptr : file->base();
      passed.offset = request.offset;
      passed.out = request.out;
      return true;
    } while (IsAgain(again, request));
    return false;
  }

  std::string_view mechanism() const override { return base_->mechanism(); }

 private:
  const FaultEnv& env_;
  const std::unique_ptr<ReadQueue> base_;
};

bool Changes(FaultEnv::Call call) {
  return call == FaultEnv::Call::kWrite || call == FaultEnv::Call::kSync ||
         call == FaultEnv::Call::kSyncDirectory || call == FaultEnv::Call::kChange;
}

bool Matches(FaultEnv::Call wanted, FaultEnv::Call call) {
  return wanted == call || (wanted == FaultEnv::Call::kChange && Changes(call));
}

}  // namespace

FaultEnv::FaultEnv(std::unique_ptr<Env> base) : base_(std::move(base)) {}
FaultEnv::~FaultEnv() = default;

void FaultEnv::Fail(Call call, std::string part, StatusCode code) {
  MutexLock lock(mutex_);
  faults_.push_back({call, std::move(part), code});
}

void FaultEnv::FailHalfWay(std::string part, StatusCode code) {
  MutexLock lock(mutex_);
  faults_.push_back({Call::kWrite, std::move(part), code, /*half=*/true});
}

void FaultEnv::Heal() {
  MutexLock lock(mutex_);
  faults_.clear();
}

void FaultEnv::SetAvailable(std::optional<uint64_t> bytes) {
  MutexLock lock(mutex_);
  available_ = bytes;
}

void FaultEnv::SetClock(std::optional<int64_t> nanoseconds) {
  MutexLock lock(mutex_);
  clock_ = nanoseconds;
}

uint64_t FaultEnv::Count(Call call, std::string_view part) const {
  MutexLock lock(mutex_);
  uint64_t count = 0;
  for (const Counted& counted : counted_) {
    if (Matches(call, counted.call) && counted.path.find(part) != std::string::npos)
      count += counted.count;
  }
  return count;
}

Status FaultEnv::Note(Call call, const std::string& path) const {
  bool half = false;
  return Note(call, path, half);
}

Status FaultEnv::NoteWrite(const std::string& path, bool& half) const {
  return Note(Call::kWrite, path, half);
}

Status FaultEnv::Note(Call call, const std::string& path, bool& half) const {
  MutexLock lock(mutex_);
  auto counted = std::find_if(counted_.begin(), counted_.end(),
                              [&](const Counted& c) { return c.call == call && c.path == path; });
  if (counted == counted_.end()) counted = counted_.insert(counted_.end(), {call, path, 0});
  ++counted->count;
  for (const Fault& fault : faults_) {
    if (!Matches(fault.call, call) || path.find(fault.part) == std::string::npos) continue;
    half = fault.half;
    return Status(fault.code, "a failure that the test asked for").At(path);
  }
  return Status::Ok();
}

Result<std::unique_ptr<File>> FaultEnv::OpenFile(const std::string& path, OpenOptions options) {
  SILTFS_RETURN_IF_ERROR(
      Note(options.mode == OpenMode::kCreate ? Call::kChange : Call::kOpen, path));
  SILTFS_ASSIGN_OR_RETURN(auto file, base_->OpenFile(path, options));
  return std::unique_ptr<File>(std::make_unique<FaultFile>(*this, std::move(file)));
}

Status FaultEnv::CreateDirectory(const std::string& path) {
  SILTFS_RETURN_IF_ERROR(Note(Call::kChange, path));
  return base_->CreateDirectory(path);
}

Result<std::vector<DirectoryEntry>> FaultEnv::ListDirectory(const std::string& path) {
  return base_->ListDirectory(path);
}

Status FaultEnv::RemoveFile(const std::string& path) {
  SILTFS_RETURN_IF_ERROR(Note(Call::kChange, path));
  return base_->RemoveFile(path);
}

Status FaultEnv::RemoveDirectory(const std::string& path) {
  SILTFS_RETURN_IF_ERROR(Note(Call::kChange, path));
  return base_->RemoveDirectory(path);
}

Status FaultEnv::Rename(const std::string& from, const std::string& to) {
  SILTFS_RETURN_IF_ERROR(Note(Call::kChange, from));
  return base_->Rename(from, to);
}

Status FaultEnv::SyncDirectory(const std::string& path) {
  SILTFS_RETURN_IF_ERROR(Note(Call::kSyncDirectory, path));
  return base_->SyncDirectory(path);
}

Result<FileInfo> FaultEnv::GetFileInfo(const std::string& path) { return base_->GetFileInfo(path); }

Result<DiskSpace> FaultEnv::GetDiskSpace(const std::string& path) {
  SILTFS_ASSIGN_OR_RETURN(DiskSpace space, base_->GetDiskSpace(path));
  MutexLock lock(mutex_);
  if (available_) space.available_bytes = *available_;
  return space;
}

Result<std::unique_ptr<FileLock>> FaultEnv::LockFile(const std::string& path) {
  return base_->LockFile(path);
}

Result<std::unique_ptr<ReadQueue>> FaultEnv::NewReadQueue(unsigned depth) {
  SILTFS_ASSIGN_OR_RETURN(auto queue, base_->NewReadQueue(depth));
  return std::unique_ptr<ReadQueue>(std::make_unique<FaultReadQueue>(*this, std::move(queue)));
}

int64_t FaultEnv::NowNanoseconds() {
  MutexLock lock(mutex_);
  return clock_ ? *clock_ : base_->NowNanoseconds();
}
int64_t FaultEnv::MonotonicNanoseconds() { return base_->MonotonicNanoseconds(); }
Status FaultEnv::FillRandom(MutableByteView out) { return base_->FillRandom(out); }

}  // namespace siltfs::testing
