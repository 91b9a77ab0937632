#include "tests/fs/meta/numbered_operations.h"

#include <map>

#include "store/base/random.h"
#include "tests/fs/meta/metadata_test_support.h"

namespace siltfs::testing {

namespace {

constexpr char kNumberKey[] = "number";

}  // namespace

Operation NumberedOperations::Make(uint64_t number) const {
  Random random(seed_ * 1000003 + number);
  Operation operation;
  for (uint64_t n = random.Below(6); n > 0; --n) {
    Mutation mutation = Put("key " + std::to_string(random.Below(keys_)), std::to_string(number));
    mutation.value->append(random.Below(value_bytes_), static_cast<char>(random.Next()));
    if (random.OneIn(3)) mutation.value.reset();
    operation.mutations.push_back(std::move(mutation));
  }
  operation.mutations.push_back(Put(kNumberKey, std::to_string(number)));
  operation.differences[0] = 1;
  operation.differences[1] = static_cast<int64_t>(random.Below(100)) - 50;
  return operation;
}

uint64_t NumberedOperations::CheckPrefix(const MetadataStore& store) const {
  const uint64_t prefix = LastIn(store);
  std::map<std::string, std::string> model;
  Counters counters{};
  for (uint64_t number = 1; number <= prefix; ++number) {
    Operation operation = Make(number);
    for (Mutation& mutation : operation.mutations) {
      if (mutation.value) {
        model[mutation.key] = std::move(*mutation.value);
      } else {
        model.erase(mutation.key);
      }
    }
    for (size_t i = 0; i < counters.size(); ++i) counters[i] += operation.differences[i];
  }
  const bool exact = ScanAll(store.Pin()) == Entries(model.begin(), model.end());
  CAPTURE(prefix);
  REQUIRE(exact);
  REQUIRE(store.counters() == counters);
  REQUIRE((store.last_commit() == 0) == (prefix == 0));
  return prefix;
}

uint64_t NumberedOperations::LastIn(const MetadataStore& store) {
  const std::string number = Read(store, kNumberKey);
  return number == "(none)" ? 0 : std::stoull(number);
}

}  // namespace siltfs::testing
