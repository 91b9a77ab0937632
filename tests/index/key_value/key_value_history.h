// The oracle of a key-value store: what was put and deleted, in order, and what it may therefore
// answer, now and after a crash. It knows which operations failed (they may have happened or not)
// and which must be durable.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "index/key_value/key_value_store.h"
#include "store/base/random.h"

namespace siltfs::testing {

using Value = std::optional<Bytes>;

class KeyValueHistory {
 public:
  // A put, or a deletion: no value.
  void Note(const std::string& key, Value value, bool certain);
  // All noted so far is durable.
  void NoteFlushed();

  bool MayAnswerNow(const std::string& key, const Value& answer) const;
  bool MayAnswerAfterCrash(const std::string& key, const Value& answer) const;
  // From now on the store is known to answer just this, durably or not.
  void Settle(const std::string& key, const Value& answer, bool durable);
  std::vector<std::string> Keys() const;

 private:
  struct Operation {
    uint64_t number;
    Value state;  // after it
    bool certain;
  };
  bool MayAnswer(const std::string& key, const Value& answer, uint64_t certain_until) const;

  std::map<std::string, std::vector<Operation>> operations_;
  uint64_t next_number_ = 1;
  uint64_t flushed_number_ = 0;
};

// Keys of 0 to 300 bytes.
std::string KeyOf(uint64_t number);
// Of all sizes: some fit into small slots, some into large ones, some are larger than a block of
// the value log.
Bytes RandomValue(Random& random);

// Options for stores so small that everything they do goes on all the time.
KeyValueOptions TinyKeyValueOptions(size_t slot_size);

struct KeyValueWorkload {
  uint64_t seed = 1;
  int steps = 60;
  uint64_t keys = 40;
  bool reclaim = true;
};
// Runs a random life and notes each operation; failures are survived, answers REQUIREd to be right.
// How many failed.
int RunWorkload(KeyValueStore& store, KeyValueHistory& history, const KeyValueWorkload& workload);

// REQUIREs that Get, the Get of many, and ForEach answer what they may; returns the answers.
std::map<std::string, Value> CheckNow(KeyValueStore& store, const KeyValueHistory& history);
std::map<std::string, Value> CheckAfterCrash(KeyValueStore& store, const KeyValueHistory& history);
// REQUIREs that nothing is wrong with it.
void CheckVerifies(KeyValueStore& store);

}  // namespace siltfs::testing
