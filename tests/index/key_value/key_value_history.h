// The oracle of a key-value store: it records the puts and deletions in order, and knows which
// answers the store may give, now and after a crash. It also knows which operations failed (these
// may or may not have had their effect) and which must be durable.
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
  // Notes a put; a deletion if there is no value.
  void Note(const std::string& key, Value value, bool certain);
  // All operations noted so far are durable.
  void NoteFlushed();

  bool MayAnswerNow(const std::string& key, const Value& answer) const;
  bool MayAnswerAfterCrash(const std::string& key, const Value& answer) const;
  // From now on the store must give exactly this answer. If `durable` is set, this also holds after
  // a crash.
  void Settle(const std::string& key, const Value& answer, bool durable);
  std::vector<std::string> Keys() const;

 private:
  struct Operation {
    uint64_t number;
    Value state;  // after the operation
    bool certain;
  };
  bool MayAnswer(const std::string& key, const Value& answer, uint64_t certain_until) const;

  std::map<std::string, std::vector<Operation>> operations_;
  uint64_t next_number_ = 1;
  uint64_t flushed_number_ = 0;
};

// Keys of 0 to 300 bytes.
std::string KeyOf(uint64_t number);
// Values of all sizes: some fit into small slots, some into large ones, some are larger than a
// block of the value log.
Bytes RandomValue(Random& random);

// Options for stores so small that background work runs all the time.
KeyValueOptions TinyKeyValueOptions(size_t slot_size);

struct KeyValueWorkload {
  uint64_t seed = 1;
  int steps = 60;
  uint64_t keys = 40;
  bool reclaim = true;
};
// Runs random operations and notes each. Failures do not end the run; answers are REQUIREd to be
// right. Returns the number of failures.
int RunWorkload(KeyValueStore& store, KeyValueHistory& history, const KeyValueWorkload& workload);

// REQUIREs right answers of Get, batched Get and ForEach; returns the answers.
std::map<std::string, Value> CheckNow(KeyValueStore& store, const KeyValueHistory& history);
std::map<std::string, Value> CheckAfterCrash(KeyValueStore& store, const KeyValueHistory& history);
// REQUIREs that Verify finds no fault.
void CheckVerifies(KeyValueStore& store);

}  // namespace siltfs::testing
