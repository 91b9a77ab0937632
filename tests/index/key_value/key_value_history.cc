#include "key_value_history.h"

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

void CheckForEach(KeyValueStore& store, const std::map<std::string, Value>& answers) {
  std::map<std::string, Bytes> seen;
  REQUIRE_OK(store.ForEach([&](const Item& item) {
    const bool is_new =
        seen.emplace(std::string(AsText(item.key)), Bytes(item.value.begin(), item.value.end()))
            .second;
    REQUIRE(is_new);
    return Status::Ok();
  }));
  for (const auto& [key, answer] : answers) {
    INFO("key of " << key.size() << " bytes");
    const auto there = seen.find(key);
    REQUIRE((there != seen.end()) == answer.has_value());
    if (answer) REQUIRE(there->second == *answer);
    seen.erase(key);
  }
  REQUIRE(seen.empty());
}

template <typename May>
std::map<std::string, Value> Check(KeyValueStore& store, const KeyValueHistory& history,
                                   const May& may) {
  const std::vector<std::string> keys = history.Keys();
  std::vector<ByteView> views;
  for (const std::string& key : keys) views.push_back(AsBytes(key));
  std::vector<Value> values(keys.size());
  REQUIRE_OK(store.Get(views, values));
  std::map<std::string, Value> answers;
  for (size_t i = 0; i < keys.size(); ++i) {
    INFO("key " << i);
    REQUIRE(may(keys[i], values[i]));
    auto one = store.Get(views[i]);
    REQUIRE_OK(one);
    REQUIRE(*one == values[i]);
    answers[keys[i]] = values[i];
  }
  CheckForEach(store, answers);
  return answers;
}

}  // namespace

void KeyValueHistory::Note(const std::string& key, Value value, bool certain) {
  operations_[key].push_back({next_number_++, std::move(value), certain});
}

void KeyValueHistory::NoteFlushed() { flushed_number_ = next_number_ - 1; }

// Whether `answer` is the state after the last certain operation up to number `certain_until`, or
// after any later operation.
bool KeyValueHistory::MayAnswer(const std::string& key, const Value& answer,
                                uint64_t certain_until) const {
  const auto found = operations_.find(key);
  if (found == operations_.end()) return !answer;
  bool may = !answer;
  for (const Operation& operation : found->second) {
    if (operation.certain && operation.number <= certain_until) may = false;
    may = may || operation.state == answer;
  }
  return may;
}

bool KeyValueHistory::MayAnswerNow(const std::string& key, const Value& answer) const {
  return MayAnswer(key, answer, UINT64_MAX);
}

bool KeyValueHistory::MayAnswerAfterCrash(const std::string& key, const Value& answer) const {
  return MayAnswer(key, answer, flushed_number_);
}

void KeyValueHistory::Settle(const std::string& key, const Value& answer, bool durable) {
  operations_[key] = {{durable ? 0 : next_number_++, answer, true}};
}

std::vector<std::string> KeyValueHistory::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, operations] : operations_) keys.push_back(key);
  return keys;
}

std::string KeyOf(uint64_t number) {
  if (number == 0) return {};
  const size_t size = number % 7 == 0 ? 300 : 1 + number % 40;
  std::string key = std::to_string(number) + "/";
  key.resize(std::max(size, key.size()), 'k');
  return key;
}

Bytes RandomValue(Random& random) {
  const uint64_t bounds[] = {1, 20, 100, 600, 3000, 9000};
  Bytes value(random.Below(bounds[random.Below(std::size(bounds))]));
  random.Fill(value);
  return value;
}

KeyValueOptions TinyKeyValueOptions(size_t slot_size) {
  KeyValueOptions options{.directory = "/store", .slot_size = slot_size, .index = {}, .values = {}};
  options.index.partition_bits = 1;
  options.index.bucket_bits = 3;
  options.index.max_log_pages = 8;
  options.index.write_batch_pages = 1;
  options.index.max_hash_stores = 3;
  options.index.sort_memory_bytes = 10'000;
  options.index.background = false;
  options.values.segment_bytes = 20'000;
  options.values.block_bytes = 2'000;
  options.values.open_files = 2;
  return options;
}

int RunWorkload(KeyValueStore& store, KeyValueHistory& history, const KeyValueWorkload& workload) {
  Random random(workload.seed);
  int failures = 0;
  for (int step = 0; step < workload.steps; ++step) {
    const uint64_t kind = random.Below(100);
    const std::string key = KeyOf(random.Below(workload.keys));
    Status status;
    if (kind < 65) {
      const Bytes value = RandomValue(random);
      status = store.Put(AsBytes(key), value);
      history.Note(key, value, status.ok());
    } else if (kind < 80) {
      status = store.Delete(AsBytes(key));
      history.Note(key, std::nullopt, status.ok());
    } else if (kind < 90) {
      status = store.Flush();
      if (status.ok()) history.NoteFlushed();
    } else if (kind < 94 && workload.reclaim) {
      const auto reclaimed = store.Reclaim({.most_in_use = 0.7});
      if (reclaimed.ok() && reclaimed->segments_removed > 0) history.NoteFlushed();
      status = reclaimed.status();
    } else {
      auto got = store.Get(AsBytes(key));
      if (got.ok()) REQUIRE(history.MayAnswerNow(key, *got));
      status = got.status();
    }
    if (!status.ok()) ++failures;
  }
  return failures;
}

std::map<std::string, Value> CheckNow(KeyValueStore& store, const KeyValueHistory& history) {
  return Check(store, history, [&](const std::string& key, const Value& answer) {
    return history.MayAnswerNow(key, answer);
  });
}

std::map<std::string, Value> CheckAfterCrash(KeyValueStore& store, const KeyValueHistory& history) {
  return Check(store, history, [&](const std::string& key, const Value& answer) {
    return history.MayAnswerAfterCrash(key, answer);
  });
}

void CheckVerifies(KeyValueStore& store) {
  REQUIRE_OK(store.Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
}

}  // namespace siltfs::testing
