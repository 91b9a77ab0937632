#include "tests/fs/meta/versioned_map.h"

namespace siltfs::testing {
namespace {

class VersionedIterator final : public KvIterator {
 public:
  VersionedIterator(const VersionedMap& map, uint64_t sequence, std::string_view end)
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

class VersionedSnapshot final : public KvSnapshot {
 public:
  VersionedSnapshot(std::shared_ptr<const VersionedMap> map, uint64_t sequence)
      : map_(std::move(map)), sequence_(sequence) {}

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return map_->Get(key, sequence_);
  }
  std::unique_ptr<KvIterator> NewIteratorBelow(std::string_view end) const override {
    return std::make_unique<VersionedIterator>(*map_, sequence_, end);
  }

 private:
  const std::shared_ptr<const VersionedMap> map_;
  const uint64_t sequence_;
};

}  // namespace

void VersionedMap::Add(uint64_t sequence, const Mutation& mutation) {
  std::lock_guard<std::mutex> lock(mutex_);
  map_[mutation.key][sequence] = mutation.value;
}

std::optional<std::string> VersionedMap::Get(std::string_view key, uint64_t sequence) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = map_.find(key);
  return entry == map_.end() ? std::nullopt : At(entry->second, sequence);
}

std::optional<std::pair<std::string, std::string>> VersionedMap::Find(std::string_view key,
                                                                      bool after,
                                                                      uint64_t sequence) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto entry = after ? map_.upper_bound(key) : map_.lower_bound(key);
  for (; entry != map_.end(); ++entry) {
    if (auto value = At(entry->second, sequence)) return std::pair(entry->first, *value);
  }
  return std::nullopt;
}

std::optional<std::string> VersionedMap::At(const Versions& versions, uint64_t sequence) {
  const auto next = versions.upper_bound(sequence);
  return next == versions.begin() ? std::nullopt : std::prev(next)->second;
}

std::shared_ptr<const KvSnapshot> SnapshotOf(std::shared_ptr<const VersionedMap> map,
                                             uint64_t sequence) {
  return std::make_shared<VersionedSnapshot>(std::move(map), sequence);
}

}  // namespace siltfs::testing
