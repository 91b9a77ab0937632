// A key-value store in memory that is shipped to a bucket in memory, and a model of its history.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fs/records/schema.h"
#include "fs/shipping/restore_kv_store.h"
#include "fs/shipping/shipped_kv_store.h"
#include "store/base/random.h"
#include "store/env/sim_env.h"
#include "store/object/memory_object_store.h"
#include "tests/fs/meta/memory_kv_store.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

using Contents = std::map<std::string, std::string>;

// All records but the one of the position.
inline Contents ContentsOf(const KvStore& kv) {
  Contents contents;
  const auto snapshot = kv.Snapshot();
  const auto iterator = snapshot->NewIterator();
  for (iterator->Seek(""); iterator->Valid(); iterator->Next()) {
    if (iterator->key() != kBucketPositionKey) contents.emplace(iterator->key(), iterator->value());
  }
  REQUIRE_OK(iterator->status());
  return contents;
}

inline WriterIdentity Writer(uint8_t number) {
  WriterIdentity writer;
  writer.id[0] = number;
  writer.host = fmt::format("host{}", number);
  return writer;
}

// One machine with the store. `objects` must outlive it.
class Machine {
 public:
  Machine(ObjectStore& objects, uint8_t number) : objects_(objects) {
    options.writer = Writer(number);
    options.background = false;
    options.close_timeout = std::chrono::nanoseconds(0);
    options.fenced = [this](const Status& cause) {
      ++fenced;
      cause.IgnoreError("counted");
    };
  }
  ~Machine() { Crash(); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Status Open() {
    Crash();
    shipper = std::make_unique<Shipper>(env, objects_, options, data);
    auto opened = NewShippedKvStore(make_kv(*disk), *shipper, data, options);
    SILTFS_RETURN_IF_ERROR(opened.status());
    kv = std::move(opened).value();
    return Status::Ok();
  }
  // Writes, and then waits as an fsync does.
  Status Write(const std::vector<Mutation>& mutations) {
    SILTFS_RETURN_IF_ERROR(kv->Write(mutations));
    return kv->AwaitShipped();
  }
  void Crash() {
    kv = nullptr;
    shipper = nullptr;
  }
  // Replaces the disk by the state in the bucket.
  Result<RestoredState> Restore(const RestoreOptions& restore = {}) {
    Crash();
    const auto make_empty = [this](const Manifest&) {
      disk = std::make_unique<MemoryDisk>();
      return Result<std::unique_ptr<KvStore>>(OpenMemoryKvStore(*disk));
    };
    SILTFS_ASSIGN_OR_RETURN(auto restored, RestoreKvStore(objects_, make_empty, restore));
    contents = ContentsOf(*restored.kv);
    return restored.state;
  }

  SimEnv env;
  ShippingOptions options;
  ShippedData* data = nullptr;
  std::function<std::unique_ptr<KvStore>(MemoryDisk&)> make_kv = OpenMemoryKvStore;
  std::unique_ptr<MemoryDisk> disk = std::make_unique<MemoryDisk>();
  std::unique_ptr<Shipper> shipper;
  std::unique_ptr<KvStore> kv;
  Contents contents;  // of the last Restore
  std::atomic<int> fenced = 0;

 private:
  ObjectStore& objects_;
};

// Writes random commits, and remembers the contents after each of them.
class History {
 public:
  explicit History(uint64_t seed) : random_(seed) { states.push_back({}); }

  // Writes, and then waits as an fsync does. The state counts as possible even if this fails.
  Status Write(KvStore& kv) {
    std::vector<Mutation> mutations;
    Contents next = states.back();
    for (uint64_t i = 1 + random_.Below(4); i > 0; --i) {
      const std::string key = fmt::format("k{}", random_.Below(40));
      if (random_.Below(4) == 0) {
        mutations.push_back({key, std::nullopt});
        next.erase(key);
      } else {
        std::string value(random_.Below(60), 'v');
        value += fmt::format("{}", states.size());
        mutations.push_back({key, value});
        next[key] = value;
      }
    }
    states.push_back(std::move(next));
    SILTFS_RETURN_IF_ERROR(kv.Write(mutations));
    return kv.AwaitShipped();
  }
  // Whether these are the contents after some commit from `least` on.
  bool Has(const Contents& contents, size_t least) const {
    for (size_t i = least; i < states.size(); ++i) {
      if (states[i] == contents) return true;
    }
    return false;
  }
  size_t last() const { return states.size() - 1; }

  std::vector<Contents> states;

 private:
  Random random_;
};

inline std::vector<std::string> KeysBelow(const MemoryObjectStore& objects,
                                          std::string_view prefix) {
  std::vector<std::string> keys;
  for (const std::string& key : objects.Keys()) {
    if (key.starts_with(prefix)) keys.push_back(key);
  }
  return keys;
}

inline void Damage(MemoryObjectStore& objects, const std::string& key) {
  const auto there = objects.Content(key);
  REQUIRE_OK(there);
  std::string content = *there;
  content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
  objects.SetContent(key, content);
}

}  // namespace siltfs::testing
