#include "tests/fs/meta/memory_kv_store.h"

#include <thread>
#include <utility>

namespace siltfs::testing {

namespace {

// All values that each key ever had, by the sequence number of the write.
class VersionedMap {
 public:
  using Versions = std::map<uint64_t, std::optional<std::string>>;

  void Add(uint64_t sequence, const Mutation& mutation) {
    std::lock_guard<std::mutex> lock(mutex_);
    map_[mutation.key][sequence] = mutation.value;
  }

  std::optional<std::string> Get(std::string_view key, uint64_t sequence) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto entry = map_.find(key);
    return entry == map_.end() ? std::nullopt : At(entry->second, sequence);
  }

  // Returns the first key with a value: `key` or a later key, or only later keys if `after`.
  std::optional<std::pair<std::string, std::string>> Find(std::string_view key, bool after,
                                                          uint64_t sequence) const {
    std::lock_guard<std::mutex> lock(mutex_);
    auto entry = after ? map_.upper_bound(key) : map_.lower_bound(key);
    for (; entry != map_.end(); ++entry) {
      if (auto value = At(entry->second, sequence)) return std::pair(entry->first, *value);
    }
    return std::nullopt;
  }

 private:
  static std::optional<std::string> At(const Versions& versions, uint64_t sequence) {
    const auto next = versions.upper_bound(sequence);
    return next == versions.begin() ? std::nullopt : std::prev(next)->second;
  }

  mutable std::mutex mutex_;
  std::map<std::string, Versions, std::less<>> map_;
};

class MemoryIterator final : public KvIterator {
 public:
  MemoryIterator(const VersionedMap& map, uint64_t sequence, std::string_view end)
      : map_(map), sequence_(sequence), end_(end) {}

  void Seek(std::string_view key) override { Stop(map_.Find(key, false, sequence_)); }
  void Next() override { Stop(map_.Find(entry_->first, true, sequence_)); }
  bool Valid() const override { return entry_.has_value(); }
  std::string_view key() const override { return entry_->first; }
  std::string_view value() const override { return entry_->second; }
  Status status() const override { return Status::Ok(); }

 private:
  void Stop(std::optional<std::pair<std::string, std::string>> entry) {
    entry_ = std::move(entry);
    if (entry_ && !end_.empty() && entry_->first >= end_) entry_.reset();
  }

  const VersionedMap& map_;
  const uint64_t sequence_;
  const std::string end_;
  std::optional<std::pair<std::string, std::string>> entry_;
};

class MemorySnapshot final : public KvSnapshot {
 public:
  MemorySnapshot(std::shared_ptr<const VersionedMap> map, uint64_t sequence)
      : map_(std::move(map)), sequence_(sequence) {}

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return map_->Get(key, sequence_);
  }
  std::unique_ptr<KvIterator> NewIteratorBelow(std::string_view end) const override {
    return std::make_unique<MemoryIterator>(*map_, sequence_, end);
  }

 private:
  const std::shared_ptr<const VersionedMap> map_;
  const uint64_t sequence_;
};

class Collector final : public MutationSink {
 public:
  void Put(std::string_view key, std::string_view value) override {
    mutations.push_back({std::string(key), std::string(value)});
  }
  void Remove(std::string_view key) override {
    mutations.push_back({std::string(key), std::nullopt});
  }

  std::vector<Mutation> mutations;
};

}  // namespace

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
    auto snapshot = std::make_shared<MemorySnapshot>(map_, sequence_);
    lock.unlock();
    std::this_thread::yield();  // let concurrent writers run here
    return snapshot;
  }

  Status WriteFrom(const std::function<void(MutationSink&)>& fill) override {
    Collector collector;
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
