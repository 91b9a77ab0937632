#include "hook_env.h"

namespace siltfs::testing {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

class HookFile : public File {
 public:
  HookFile(const HookEnv& env, std::unique_ptr<File> base) : env_(env), base_(std::move(base)) {}

  const std::string& path() const override { return base_->path(); }
  Result<size_t> Read(uint64_t offset, MutableByteView out) const override {
    env_.on_read(path());
    return base_->Read(offset, out);
  }
  Status Write(uint64_t offset, ByteView data) override { return base_->Write(offset, data); }
  Status Sync() override {
    env_.on_sync(path());
    return base_->Sync();
  }
  void BeginSync(uint64_t offset, uint64_t size) override {
    env_.on_begin_sync(path());
    base_->BeginSync(offset, size);
  }
  Status Truncate(uint64_t size) override { return base_->Truncate(size); }
  Status Preallocate(uint64_t size) override { return base_->Preallocate(size); }
  Result<uint64_t> Size() const override { return base_->Size(); }
  Status Close() override { return base_->Close(); }

 private:
  const HookEnv& env_;
  const std::unique_ptr<File> base_;
};

class HookQueue : public ReadQueue {
 public:
  std::string_view mechanism() const override { return "last first"; }

 private:
  void DoReadAll(std::span<ReadRequest> requests, const Again* again) override {
    for (size_t i = requests.size(); i-- > 0;) {
      ReadRequest& request = requests[i];
      do {
        request.status.IgnoreError("left from an earlier use");
        auto got = request.file->Read(request.offset, request.out);
        request.bytes_read = got.ok() ? *got : 0;
        request.status = got.ok() ? Status::Ok() : std::move(got).status();
      } while (IsAgain(again, request));
    }
  }
};

}  // namespace

Result<std::unique_ptr<File>> HookEnv::OpenFile(const std::string& path, OpenOptions options) {
  on_open(path);
  SILTFS_ASSIGN_OR_RETURN(auto file, base_.OpenFile(path, options));
  return std::unique_ptr<File>(std::make_unique<HookFile>(*this, std::move(file)));
}

Result<std::unique_ptr<ReadQueue>> HookEnv::NewReadQueue(unsigned /*depth*/) {
  on_queue();
  return std::unique_ptr<ReadQueue>(std::make_unique<HookQueue>());
}

void Gate::Wait() {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  MutexLock lock(mutex_);
  while (!open_ && !gave_up_) {
    changed_.WaitFor(mutex_, kPatience);
    if (!open_ && std::chrono::steady_clock::now() >= until) gave_up_ = true;
  }
}

void Gate::Open() {
  MutexLock lock(mutex_);
  open_ = true;
  changed_.NotifyAll();
}

bool Gate::gave_up() const {
  MutexLock lock(mutex_);
  return gave_up_;
}

void Gathering::Come() {
  {
    MutexLock lock(mutex_);
    if (++here_ >= wanted_) {
      complete_ = complete_ || !gate_.gave_up();
      gate_.Open();
    }
  }
  gate_.Wait();
  MutexLock lock(mutex_);
  --here_;
}

bool Gathering::complete() const {
  MutexLock lock(mutex_);
  return complete_;
}

}  // namespace siltfs::testing
