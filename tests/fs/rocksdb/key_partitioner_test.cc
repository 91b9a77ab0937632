#include "fs/rocksdb/key_partitioner.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace siltfs {

TEST_CASE("A table ends where a group of keys begins or ends, and nowhere else") {
  const auto factory = NewKeyPartitioner("ki\xf0");
  const auto partitioner = factory->CreatePartitioner({});
  const std::vector<std::vector<std::string>> groups = {
      {"", "a", "h\xff"}, {"i", "i1", "i\xff"}, {"j"},           {"k", "k2"},
      {"l", "z", "\xef"}, {"\xf0", "\xf0z"},    {"\xf1", "\xff"}};
  std::vector<std::pair<std::string, size_t>> keys;
  for (size_t group = 0; group < groups.size(); ++group) {
    for (const std::string& key : groups[group]) keys.emplace_back(key, group);
  }
  for (size_t at = 1; at < keys.size(); ++at) {
    const auto& [before, first] = keys[at - 1];
    const auto& [key, second] = keys[at];
    CAPTURE(before, key);
    const rocksdb::Slice left(before);
    const rocksdb::Slice right(key);
    const auto answer = partitioner->ShouldPartition({left, right, 0});
    CHECK((answer == rocksdb::kRequired) == (first != second));
    CHECK(partitioner->CanDoTrivialMove(left, right) == (first == second));
  }
}

}  // namespace siltfs
