// The way between a machine and a bucket in memory, for the campaign of bucket_sequence.h. Requests
// fail on the way there and back, and may arrive late.
//
// A call makes several attempts, as the client of a real service does. Each attempt may
//   - get no answer, without or with its effect;
//   - be answered with wrong or too few bytes, which the call reports as the client would;
//   - be delayed: it takes effect at some later time, even after the machine was lost. Its
//   condition
//     is looked at then. A delayed attempt may also be the double of one that has succeeded.
//
// All choices follow from the seed and the order of the calls.
//
// Thread-safety: every call from any thread. Ownership: the network must outlive its clients.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fs/shipping/log_object.h"
#include "store/base/random.h"
#include "store/base/thread_annotations.h"
#include "store/object/memory_object_store.h"

namespace siltfs::testing {

struct NetworkFaults {
  // Of a thousand attempts. The rest succeeds.
  uint64_t lost_requests = 0;  // no effect, no answer
  uint64_t lost_answers = 0;   // an effect, but no answer
  uint64_t delayed = 0;        // a later effect, no answer
  uint64_t doubled = 0;        // an effect now and another one later
  uint64_t wrong_bodies = 0;   // of reads
  unsigned attempts = 1;       // that a call makes
};

class BucketNetwork {
 public:
  explicit BucketNetwork(uint64_t seed) : random_(seed) {}

  // A client of the bucket. It can be cut off from the bucket.
  class Client;
  std::unique_ptr<Client> Connect();

  void SetFaults(const NetworkFaults& faults);
  // Lets all delayed requests arrive.
  void Settle();
  MemoryObjectStore& objects() { return objects_; }
  // Sentences about writers that share an epoch, or about a log object that was replaced.
  std::string violations() const;
  uint64_t delayed_effects() const;

 private:
  struct Delayed {
    uint64_t due;  // counted in attempts
    bool removes;
    std::string key;
    std::string content;
    PutCondition condition;
  };
  enum class Fate : uint8_t { kNormal, kLostRequest, kLostAnswer, kDelayed, kDoubled, kWrongBody };

  Fate Draw();
  unsigned attempts() const;
  Result<std::string> PutOnce(const std::string& key, const std::string& content,
                              const PutCondition& condition, Fate fate);
  Status RemoveOnce(const std::string& key, Fate fate);
  Result<std::string> Apply(const std::string& key, const std::string& content,
                            const PutCondition& condition);
  void Delay(Delayed request) SILTFS_REQUIRES(mutex_);
  void NoteLog(const std::string& key, const std::string& content);

  MemoryObjectStore objects_;
  mutable Mutex mutex_;
  Random random_ SILTFS_GUARDED_BY(mutex_);
  NetworkFaults faults_ SILTFS_GUARDED_BY(mutex_);
  uint64_t attempts_made_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t delayed_effects_ SILTFS_GUARDED_BY(mutex_) = 0;
  std::vector<Delayed> delayed_ SILTFS_GUARDED_BY(mutex_);
  std::map<uint32_t, WriterIdentity> writers_ SILTFS_GUARDED_BY(mutex_);
  std::string violations_ SILTFS_GUARDED_BY(mutex_);
};

class BucketNetwork::Client final : public ObjectStore {
 public:
  explicit Client(BucketNetwork& network) : network_(network) {}

  // While cut off, each call fails without effect.
  void SetCut(bool cut) { cut_ = cut; }

  const std::string& name() const override { return network_.objects_.name(); }
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
  ObjectStoreCounters Counters() const override { return network_.objects_.Counters(); }

 private:
  // Makes attempts until one of them is no failure of the network.
  template <typename Answer, typename Attempt>
  Answer Try(const std::string& key, const Attempt& attempt);

  BucketNetwork& network_;
  std::atomic<bool> cut_ = false;
  std::atomic<bool> interrupted_ = false;
  std::atomic<bool> reads_interrupted_ = false;
};

}  // namespace siltfs::testing
