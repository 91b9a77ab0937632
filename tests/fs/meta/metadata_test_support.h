// Shared by the tests of metadata groups and commits: a participant that can be blocked, and short
// functions.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fs/meta/metadata_store.h"
#include "tests/fs/meta/memory_kv_store.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

// Records its calls. On request, blocks PrepareCommit or makes it fail.
class FakeParticipant final : public CommitParticipant {
 public:
  Status PrepareCommit(uint64_t number, std::vector<Mutation>& extra) override {
    std::unique_lock<std::mutex> lock(mutex_);
    prepared_.push_back(number);
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    extra.insert(extra.end(), extra_.begin(), extra_.end());
    if (failure_ != StatusCode::kOk) return Status(failure_, "the test made the data fail");
    return Status::Ok();
  }
  void CommitDone(uint64_t number) override {
    std::lock_guard<std::mutex> lock(mutex_);
    done_.push_back(number);
  }

  void Hold() {
    std::lock_guard<std::mutex> lock(mutex_);
    held_ = true;
  }
  void Release() {
    std::lock_guard<std::mutex> lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  void WaitForPrepared(size_t calls) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return prepared_.size() >= calls; });
  }
  void FailWith(StatusCode code) {
    std::lock_guard<std::mutex> lock(mutex_);
    failure_ = code;
  }
  void AddToEachBatch(Mutation mutation) {
    std::lock_guard<std::mutex> lock(mutex_);
    extra_.push_back(std::move(mutation));
  }
  std::vector<uint64_t> prepared() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return prepared_;
  }
  std::vector<uint64_t> done() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return done_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  StatusCode failure_ = StatusCode::kOk;
  std::vector<Mutation> extra_;
  std::vector<uint64_t> prepared_;
  std::vector<uint64_t> done_;
};

// Options like those of a mount.
inline MetadataOptions UsualOptions() {
  MetadataOptions options;
  options.group_bytes = 4u << 20;
  options.commit_interval = std::chrono::seconds(5);
  return options;
}

// Options without timed commits.
inline MetadataOptions Unhurried() {
  MetadataOptions options = UsualOptions();
  options.commit_interval = std::chrono::hours(1000);
  return options;
}

inline std::unique_ptr<MetadataStore> OpenOn(MemoryDisk& disk,
                                             MetadataOptions options = Unhurried(),
                                             CommitParticipant* participant = nullptr) {
  auto store = MetadataStore::Open(OpenMemoryKvStore(disk), options);
  REQUIRE_OK(store);
  (*store)->SetParticipant(participant);
  return std::move(store).value();
}

inline Mutation Put(std::string key, std::string value) {
  return {std::move(key), std::move(value)};
}
inline Mutation Remove(std::string key) { return {std::move(key), std::nullopt}; }

// Applies the mutations. Returns the number of their commit.
inline uint64_t Apply(MetadataStore& store, std::vector<Mutation> mutations,
                      const Counters& differences = {}) {
  auto number = store.Apply(std::move(mutations), differences);
  REQUIRE_OK(number);
  return *number;
}

// Returns the value, or "(none)".
template <typename Readable>
std::string Read(const Readable& from, std::string_view key) {
  const Result<std::optional<std::string>> value = from.Get(key);
  REQUIRE_OK(value);
  return value->value_or("(none)");
}

using Entries = std::vector<std::pair<std::string, std::string>>;

// Returns all entries except those that commits write themselves.
inline Entries ScanAll(const View& view, std::string_view begin = "", std::string_view end = "") {
  Entries entries;
  const Status status = view.Scan(begin, end, [&](std::string_view key, std::string_view value) {
    if (key != kCommitNumberKey && key != kCountersKey) entries.emplace_back(key, value);
    return true;
  });
  REQUIRE_OK(status);
  return entries;
}

}  // namespace siltfs::testing
