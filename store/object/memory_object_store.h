// An ObjectStore in memory, for tests and tools: it acts like a remote service with latency and
// faults.
//
// Durability: an object lasts as long as this store. So it survives a power cut of a SimEnv, as an
// object of a remote service would.
//
// Faults: a call that is to fail does nothing, unless the fault says that the answer is lost after
// the call took effect, or that the answer is damaged. Latency: `wait` is called, without a lock,
// before each call takes effect; it gets the time that the call would take, and may sleep, advance
// a clock, or block. No call is retried.
//
// Thread-safety: every call from any thread. Memory: the objects. Errors: object_store.h; kNoSpace
// beyond the capacity; kInvalidArgument for a key that IsObjectKey refuses.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/base/thread_annotations.h"
#include "store/object/object_store.h"

namespace siltfs {

// kGet stands for Get and Read, kPut for Put and PutFile.
enum class ObjectCall : uint8_t { kPut, kGet, kStat, kRemove, kList };
inline constexpr size_t kObjectCalls = 5;

struct ObjectFault {
  enum class Effect : uint8_t {
    kNone,        // the call does nothing and returns `code`
    kAnswerLost,  // the call takes effect, and then returns `code`; for kPut and kRemove
    kTruncated,   // Read returns half of the bytes; Get returns kCorruption, as its checksum fails
    kWrongBody,   // Read returns bytes with a changed bit; Get returns kCorruption
  };

  ObjectCall call = ObjectCall::kGet;
  uint64_t nth = 1;  // counted from now on, among the calls of this kind that match `key_part`
  StatusCode code = StatusCode::kIoError;
  Effect effect = Effect::kNone;
  bool permanent = false;     // all later matching calls fail, too
  std::string key_part = {};  // only calls with this text in their key (or prefix) match
};

struct MemoryObjectOptions {
  std::string name = "memory:";
  uint64_t capacity_bytes = std::numeric_limits<uint64_t>::max();
  // `wait` is called with the time that a call is to take: `latency`, plus `nanoseconds_per_byte`
  // for each byte of the body.
  std::chrono::nanoseconds latency{0};
  double nanoseconds_per_byte = 0;
  // May be empty. `key` is the key, or the prefix for List.
  std::function<void(ObjectCall call, const std::string& key, std::chrono::nanoseconds)> wait;
};

class MemoryObjectStore final : public ObjectStore {
 public:
  explicit MemoryObjectStore(MemoryObjectOptions options = {});

  const std::string& name() const override { return options_.name; }
  Result<std::string> PutFile(const std::string& key, const ReadableFile& content,
                              const PutCondition& condition) override;
  Result<std::string> Put(const std::string& key, ByteView content,
                          const PutCondition& condition) override;
  Result<Bytes> Get(const std::string& key, uint64_t limit, std::string* version) override;
  Result<size_t> Read(const std::string& key, std::string_view version, uint64_t offset,
                      MutableByteView out) override;
  Result<ObjectInfo> Stat(const std::string& key) override;
  Status Remove(const std::string& key) override;
  Result<ObjectPage> List(const std::string& prefix, const std::string& after,
                          size_t limit) override;
  void Interrupt() override { interrupted_ = true; }
  void InterruptReads() override { reads_interrupted_ = true; }
  ObjectStoreCounters Counters() const override;

  // --- Faults, latency and damage.
  void FailCall(const ObjectFault& fault);
  void ClearFaults();
  // Calls so far, including failed ones.
  uint64_t Calls(ObjectCall call) const;
  void SetCapacity(uint64_t bytes);
  // The keys of all objects, in order.
  std::vector<std::string> Keys() const;
  // The content of an object. kNotFound.
  Result<std::string> Content(const std::string& key) const;
  // Gives an object another content without any check, as damage would. Its version stays.
  void SetContent(const std::string& key, std::string content);
  // A store with the same objects and options, and without faults. It is not interrupted.
  std::unique_ptr<MemoryObjectStore> Fork() const;

 private:
  struct Object {
    std::shared_ptr<const std::string> content;
    std::string version;
  };

  // Called before a call takes effect: checks the key, waits, and counts the call.
  Status Begin(ObjectCall call, const std::string& key, uint64_t bytes) const
      SILTFS_EXCLUDES(mutex_);
  std::optional<ObjectFault> FaultOf(ObjectCall call, const std::string& key)
      SILTFS_REQUIRES(mutex_);
  Status FailureOf(const ObjectFault& fault, const std::string& key) SILTFS_REQUIRES(mutex_);
  // Whether the condition lets a content of this size take effect.
  Status Admit(const std::string& key, uint64_t size, const PutCondition& condition)
      SILTFS_REQUIRES(mutex_);
  static Status NotFound(const std::string& key);

  const MemoryObjectOptions options_;
  std::atomic<bool> interrupted_ = false;
  std::atomic<bool> reads_interrupted_ = false;
  mutable Mutex mutex_;
  std::map<std::string, Object> objects_ SILTFS_GUARDED_BY(mutex_);
  std::vector<ObjectFault> faults_ SILTFS_GUARDED_BY(mutex_);
  std::array<uint64_t, kObjectCalls> calls_ SILTFS_GUARDED_BY(mutex_) = {};
  uint64_t capacity_ SILTFS_GUARDED_BY(mutex_);
  uint64_t used_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t failures_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t sent_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t received_ SILTFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace siltfs
