#include "fs/meta/group.h"

#include <map>

#include "store/base/random.h"
#include "tests/fs/meta/metadata_test_support.h"

namespace siltfs {
namespace {

using testing::Put;
using testing::Remove;

std::vector<Mutation> Copy(const Group& group, std::string_view begin, std::string_view end,
                           size_t max_entries = 1000, size_t max_bytes = 1u << 20) {
  std::vector<Mutation> out;
  group.CopyRange(begin, end, max_entries, max_bytes, out);
  return out;
}

TEST_CASE("A group distinguishes set keys, removed keys and absent keys") {
  Group group;
  group.Add({Put("set", "value"), Remove("removed"), Put("empty", "")});
  std::string value = "untouched";
  REQUIRE(group.Find("unknown", &value) == Group::Presence::kAbsent);
  REQUIRE(group.Find("removed", &value) == Group::Presence::kRemoved);
  REQUIRE(value == "untouched");
  REQUIRE(group.Find("set", &value) == Group::Presence::kPresent);
  REQUIRE(value == "value");
  REQUIRE(group.Find("empty", &value) == Group::Presence::kPresent);
  REQUIRE(value.empty());
}

TEST_CASE("The last mutation of a key wins, within one Add and over several") {
  Group group;
  group.Add({Put("a", "1"), Put("a", "2"), Put("b", "1"), Remove("b"), Remove("c"), Put("c", "1")});
  std::string value;
  REQUIRE(group.Find("a", &value) == Group::Presence::kPresent);
  REQUIRE(value == "2");
  REQUIRE(group.Find("b", &value) == Group::Presence::kRemoved);
  REQUIRE(group.Find("c", &value) == Group::Presence::kPresent);
  group.Add({Remove("a"), Put("b", "3")});
  REQUIRE(group.Find("a", &value) == Group::Presence::kRemoved);
  REQUIRE(group.Find("b", &value) == Group::Presence::kPresent);
  REQUIRE(group.entries() == 3);
}

TEST_CASE("A range of a group comes in order, with tombstones, within its bounds and limits") {
  Group group;
  group.Add({Put("d", "4"), Put("b", "2"), Remove("c"), Put("a", "1"), Put("e", "5")});
  const auto middle = Copy(group, "b", "e");
  REQUIRE(middle.size() == 3);
  REQUIRE(middle[0].key == "b");
  REQUIRE(middle[1].key == "c");
  REQUIRE_FALSE(middle[1].value.has_value());
  REQUIRE(middle[2].key == "d");
  REQUIRE(Copy(group, "b", "").size() == 4);
  REQUIRE(Copy(group, "", "", 2).size() == 2);
  REQUIRE(Copy(group, "x", "").empty());
  // A limit below one entry still returns one, so that repeated calls make progress.
  REQUIRE(Copy(group, "", "", 1000, 1).size() == 1);
}

TEST_CASE("WriteTo passes a group's whole content in key order") {
  Group group;
  std::map<std::string, std::optional<std::string>> model;
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    Mutation mutation = Put("key " + std::to_string(random.Below(300)), std::to_string(i));
    if (random.OneIn(3)) mutation.value.reset();
    model[mutation.key] = mutation.value;
    group.Add({mutation});
  }
  class : public MutationSink {
   public:
    void Put(std::string_view key, std::string_view value) override {
      seen.push_back({std::string(key), std::string(value)});
    }
    void Remove(std::string_view key) override { seen.push_back({std::string(key), std::nullopt}); }
    std::vector<Mutation> seen;
  } sink;
  group.WriteTo(sink);
  REQUIRE(sink.seen.size() == model.size());
  size_t i = 0;
  for (const auto& [key, value] : model) {
    REQUIRE(sink.seen[i].key == key);
    REQUIRE(sink.seen[i].value == value);
    ++i;
  }
}

TEST_CASE("A group's size counts node overhead, and overwriting does not make it grow") {
  Group group;
  REQUIRE(group.bytes() == 0);
  group.Add({Put("k", "v")});
  const size_t one = group.bytes();
  REQUIRE(one > 100);  // two bytes of payload and a tree node
  group.Add({Put("k", "w")});
  REQUIRE(group.bytes() == one);
  group.Add({Put("k", std::string(1000, 'x'))});
  REQUIRE(group.bytes() >= one + 1000);
  group.Add({Remove("k")});
  REQUIRE(group.bytes() == one);
  group.Add({Put(std::string(200, 'k'), "v")});
  REQUIRE(group.bytes() >= 2 * one + 200);
}

}  // namespace
}  // namespace siltfs
