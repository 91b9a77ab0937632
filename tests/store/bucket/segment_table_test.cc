// The current contents of all segments in memory (store/bucket/segment_table.h).
#include "store/bucket/segment_table.h"

#include <map>

#include "store/base/random.h"
#include "tests/support/catch.h"

using namespace siltfs;

TEST_CASE("SegmentTable: does what a map does") {
  SegmentTable table;
  std::map<SegmentId, SegmentContent> model;
  Random random(7);
  uint64_t bytes = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto id = static_cast<SegmentId>(1 + random.Below(random.OneIn(3) ? 100'000'000 : 2000));
    bytes -= model.contains(id) ? model[id].size : 0;
    if (random.OneIn(3)) {
      table.Erase(id);
      model.erase(id);
    } else {
      const SegmentContent content{{id, random.Next()}, static_cast<uint32_t>(random.Next())};
      table.Set(content);
      model[id] = content;
    }
    const auto found = table.Find(id);
    REQUIRE(found.has_value() == model.contains(id));
    if (found) REQUIRE(*found == model[id]);
    REQUIRE(table.size() == model.size());
    bytes += model.contains(id) ? model[id].size : 0;
    REQUIRE(table.bytes() == bytes);
  }
  auto expected = model.begin();
  table.Visit([&](const SegmentContent& content) {
    REQUIRE(expected != model.end());
    REQUIRE(content == expected->second);
    ++expected;
  });
  CHECK(expected == model.end());
  CHECK_FALSE(table.Find(3'000'000'000).has_value());
}
