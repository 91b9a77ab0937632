// An ordered map that keeps all values of each key, for snapshots of key-value stores in tests.
// Thread-safety: all calls from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fs/kv/kv_store.h"

namespace siltfs::testing {

// All values that each key ever had, by the sequence number of the write.
class VersionedMap {
 public:
  void Add(uint64_t sequence, const Mutation& mutation);
  std::optional<std::string> Get(std::string_view key, uint64_t sequence) const;
  // Returns the first entry of the map, as of `sequence`, that is at `key` or later. With `after`,
  // the entry must be later than `key`.
  std::optional<std::pair<std::string, std::string>> Find(std::string_view key, bool after,
                                                          uint64_t sequence) const;

 private:
  using Versions = std::map<uint64_t, std::optional<std::string>>;
  static std::optional<std::string> At(const Versions& versions, uint64_t sequence);

  mutable std::mutex mutex_;
  std::map<std::string, Versions, std::less<>> map_;
};

// The map as of a sequence number.
std::shared_ptr<const KvSnapshot> SnapshotOf(std::shared_ptr<const VersionedMap> map,
                                             uint64_t sequence);

// Copies mutations into a list.
class MutationCollector final : public MutationSink {
 public:
  void Put(std::string_view key, std::string_view value) override {
    mutations.push_back({std::string(key), std::string(value)});
  }
  void Remove(std::string_view key) override {
    mutations.push_back({std::string(key), std::nullopt});
  }

  std::vector<Mutation> mutations;
};

}  // namespace siltfs::testing
