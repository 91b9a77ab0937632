#include "tests/fs/meta/memory_kv_store.h"

#include <thread>
#include <utility>

#include "tests/fs/meta/versioned_map.h"

namespace siltfs::testing {

class MemoryKvStore final : public KvStore {
 public:
  explicit MemoryKvStore(MemoryDisk& disk) : disk_(disk) {
    std::lock_guard<std::mutex> lock(disk_.mutex_);
    disk_.closed_cleanly_ = false;
    disk_.failed_for_good_ = false;
    for (const auto& [key, value] : disk_.contents_) map_->Add(0, {key, value});
  }

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return map_->Get(key, sequence_);
  }

  std::shared_ptr<const KvSnapshot> Snapshot() const override {
    std::unique_lock<std::mutex> lock(mutex_);
    auto snapshot = SnapshotOf(map_, sequence_);
    lock.unlock();
    std::this_thread::yield();  // let concurrent writers run here
    return snapshot;
  }

  Status WriteFrom(const std::function<void(MutationSink&)>& fill) override {
    MutationCollector collector;
    fill(collector);
    std::lock_guard<std::mutex> lock(mutex_);
    SILTFS_RETURN_IF_ERROR(disk_.Take(collector.mutations));
    // No reader uses the new number before it is published.
    for (const Mutation& mutation : collector.mutations) map_->Add(sequence_ + 1, mutation);
    ++sequence_;
    return Status::Ok();
  }

  uint64_t DiskBytes() const override {
    uint64_t bytes = 0;
    for (const auto& [key, value] : disk_.contents()) bytes += key.size() + value.size();
    return bytes;
  }

  Status CloseCleanly() override {
    std::lock_guard<std::mutex> lock(disk_.mutex_);
    disk_.closed_cleanly_ = true;
    return Status::Ok();
  }

 private:
  MemoryDisk& disk_;
  mutable std::mutex mutex_;
  const std::shared_ptr<VersionedMap> map_ = std::make_shared<VersionedMap>();
  uint64_t sequence_ = 0;
};

void MemoryDisk::FailWrite(uint64_t number, WriteFailure failure) {
  std::lock_guard<std::mutex> lock(mutex_);
  failures_[number] = failure;
}

void MemoryDisk::FailAllWrites(WriteFailure failure) {
  std::lock_guard<std::mutex> lock(mutex_);
  fail_all_ = failure;
}

void MemoryDisk::Mend() {
  std::lock_guard<std::mutex> lock(mutex_);
  fail_all_.reset();
  failures_.clear();
}

void MemoryDisk::HoldWrites() {
  std::lock_guard<std::mutex> lock(mutex_);
  held_ = true;
}

void MemoryDisk::ReleaseWrites() {
  std::lock_guard<std::mutex> lock(mutex_);
  held_ = false;
  released_.notify_all();
}

uint64_t MemoryDisk::writes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return writes_;
}

void MemoryDisk::WaitForWrites(uint64_t count) const {
  std::unique_lock<std::mutex> lock(mutex_);
  written_.wait(lock, [&] { return writes_ >= count; });
}

bool MemoryDisk::closed_cleanly() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return closed_cleanly_;
}

uint64_t MemoryDisk::writes_after_failure() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return writes_after_failure_;
}

std::map<std::string, std::string> MemoryDisk::contents() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return contents_;
}

Status MemoryDisk::Take(const std::vector<Mutation>& mutations) {
  std::unique_lock<std::mutex> lock(mutex_);
  released_.wait(lock, [this] { return !held_; });
  ++writes_;
  written_.notify_all();
  if (failed_for_good_) {
    ++writes_after_failure_;
    return Status(StatusCode::kIoError, "a write after one that failed");
  }
  std::optional<WriteFailure> failure = fail_all_;
  if (const auto planned = failures_.find(writes_); planned != failures_.end()) {
    failure = planned->second;
  }
  if (!failure || failure->reaches_disk) {
    for (const Mutation& mutation : mutations) {
      if (mutation.value) {
        contents_[mutation.key] = *mutation.value;
      } else {
        contents_.erase(mutation.key);
      }
    }
  }
  if (!failure) return Status::Ok();
  failed_for_good_ = failure->code != StatusCode::kNoSpace;
  return Status(failure->code, "the test made write " + std::to_string(writes_) + " fail");
}

std::unique_ptr<KvStore> OpenMemoryKvStore(MemoryDisk& disk) {
  return std::make_unique<MemoryKvStore>(disk);
}

}  // namespace siltfs::testing
