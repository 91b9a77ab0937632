#include "store/env/reserve_env.h"

#include <utility>

namespace siltfs {
namespace {

// Repeats the call until it does not fail with kNoSpace, or the reserve has no more to give up.
template <typename Call>
auto WithReserve(SpaceReserve& reserve, SpaceReserve::Use use, const Call& call) {
  for (;;) {
    auto outcome = call();
    if (!StatusOf(outcome).Is(StatusCode::kNoSpace) || !reserve.GiveUpPiece(use)) return outcome;
  }
}

class ReserveFile : public File {
 public:
  ReserveFile(std::unique_ptr<File> base, SpaceReserve& reserve, SpaceReserve::Use use)
      : base_(std::move(base)), reserve_(reserve), use_(use) {}

  const std::string& path() const override { return base_->path(); }
  const File& underlying() const override { return base_->underlying(); }
  Result<size_t> Read(uint64_t offset, MutableByteView out) const override {
    return base_->Read(offset, out);
  }
  Status Write(uint64_t offset, ByteView data) override {
    return WithReserve(reserve_, use_, [&] { return base_->Write(offset, data); });
  }
  Status Sync() override { return base_->Sync(); }
  void BeginSync(uint64_t offset, uint64_t size) override { base_->BeginSync(offset, size); }
  void BeginRead(uint64_t offset, uint64_t size) const override { base_->BeginRead(offset, size); }
  Status Truncate(uint64_t size) override {
    return WithReserve(reserve_, use_, [&] { return base_->Truncate(size); });
  }
  // Preallocation never takes space from the reserve, which is kept for writes.
  Status Preallocate(uint64_t size) override { return base_->Preallocate(size); }
  Result<uint64_t> Size() const override { return base_->Size(); }
  Status Close() override { return base_->Close(); }

 private:
  const std::unique_ptr<File> base_;
  SpaceReserve& reserve_;
  const SpaceReserve::Use use_;
};

}  // namespace

Result<std::unique_ptr<File>> ReserveEnv::OpenFile(const std::string& path, OpenOptions options) {
  auto opened = WithReserve(reserve_, use_, [&] { return base_.OpenFile(path, options); });
  if (!opened.ok() || options.mode == OpenMode::kRead) return opened;
  return std::unique_ptr<File>(
      std::make_unique<ReserveFile>(std::move(opened).value(), reserve_, use_));
}

Status ReserveEnv::CreateDirectory(const std::string& path) {
  return WithReserve(reserve_, use_, [&] { return base_.CreateDirectory(path); });
}

Result<std::vector<DirectoryEntry>> ReserveEnv::ListDirectory(const std::string& path) {
  return base_.ListDirectory(path);
}

Status ReserveEnv::RemoveFile(const std::string& path) {
  SILTFS_RETURN_IF_ERROR(WithReserve(reserve_, use_, [&] { return base_.RemoveFile(path); }));
  reserve_.Restore();
  return Status::Ok();
}

Status ReserveEnv::RemoveDirectory(const std::string& path) {
  return WithReserve(reserve_, use_, [&] { return base_.RemoveDirectory(path); });
}

Status ReserveEnv::Rename(const std::string& from, const std::string& to) {
  return WithReserve(reserve_, use_, [&] { return base_.Rename(from, to); });
}

Status ReserveEnv::SyncDirectory(const std::string& path) { return base_.SyncDirectory(path); }

Result<FileInfo> ReserveEnv::GetFileInfo(const std::string& path) {
  return base_.GetFileInfo(path);
}

Result<DiskSpace> ReserveEnv::GetDiskSpace(const std::string& path) {
  SILTFS_ASSIGN_OR_RETURN(DiskSpace space, base_.GetDiskSpace(path));
  if (use_ == SpaceReserve::Use::kMetadata) space.available_bytes += reserve_.bytes_to_give(use_);
  return space;
}

Result<std::unique_ptr<FileLock>> ReserveEnv::LockFile(const std::string& path) {
  return WithReserve(reserve_, use_, [&] { return base_.LockFile(path); });
}

Result<std::unique_ptr<ReadQueue>> ReserveEnv::NewReadQueue(unsigned depth) {
  return base_.NewReadQueue(depth);
}

int64_t ReserveEnv::NowNanoseconds() { return base_.NowNanoseconds(); }
int64_t ReserveEnv::MonotonicNanoseconds() { return base_.MonotonicNanoseconds(); }
Status ReserveEnv::FillRandom(MutableByteView out) { return base_.FillRandom(out); }

}  // namespace siltfs
