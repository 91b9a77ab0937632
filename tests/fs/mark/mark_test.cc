// The mark of garbage collection never guesses that a chunk is dead.
#include "fs/mark/mark.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fs/records/schema.h"
#include "store/base/random.h"
#include "tests/fs/mark/mark_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

class Snatched final : public KvSnapshot {
 public:
  explicit Snatched(std::shared_ptr<const KvSnapshot> whole) : whole_(std::move(whole)) {}
  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return whole_->Get(key);
  }
  std::unique_ptr<KvIterator> NewIteratorBelow(std::string_view end) const override {
    return std::make_unique<Iterator>(whole_->NewIteratorBelow(end));
  }

 private:
  // An iterator that fails after the first few entries.
  class Iterator final : public KvIterator {
   public:
    explicit Iterator(std::unique_ptr<KvIterator> inner) : inner_(std::move(inner)) {}
    void Seek(std::string_view key) override { inner_->Seek(key); }
    void Next() override {
      ++moves_;
      inner_->Next();
    }
    bool Valid() const override { return moves_ < 3 && inner_->Valid(); }
    std::string_view key() const override { return inner_->key(); }
    std::string_view value() const override { return inner_->value(); }
    Status status() const override {
      return moves_ < 3 ? Status::Ok() : Status(StatusCode::kIoError, "cannot read on");
    }

   private:
    std::unique_ptr<KvIterator> inner_;
    int moves_ = 0;
  };
  std::shared_ptr<const KvSnapshot> whole_;
};

}  // namespace

TEST_CASE("unreadable or malformed metadata ends every mark, and nothing is called dead") {
  MarkStore store(IndexEngine::kMap);
  MarkMetadata& metadata = store.metadata;
  StatusCode expected = StatusCode::kCorruption;
  const int damage = GENERATE(range(0, 7));
  INFO("damage " << damage);
  const auto some_node = std::next(metadata.nodes.nodes.begin(), 7);
  std::shared_ptr<const KvSnapshot> snapshot;
  if (damage == 0) {
    metadata.nodes.nodes.erase(some_node);
    expected = StatusCode::kNotFound;
  } else if (damage == 1) {
    some_node->second = std::make_shared<const Bytes>(some_node->second->size(), 7);
  } else if (damage == 2) {
    some_node->second = std::next(some_node)->second;
  } else if (damage == 3) {
    std::string record = FileOf(Build(metadata.nodes, NumberedChunks(0, 20))).Encode();
    record.resize(record.size() - 1);
    metadata.Set(InodeKey(9), record);
  } else if (damage == 4) {
    metadata.Set(OverlayKey(3, 0), "\3" + std::string(28, 'x'));
  } else if (damage == 5) {
    metadata.nodes.ResetCounts();
    metadata.nodes.failing_get = 20;
    expected = StatusCode::kIoError;
  } else {
    expected = StatusCode::kIoError;
    snapshot = std::make_shared<Snatched>(metadata.Snapshot());
  }
  if (!snapshot) snapshot = metadata.Snapshot();
  const auto code = StatusCodeName(expected);
  const auto again = [&] { metadata.nodes.gets = 0; };
  CHECK(StatusCodeName(ForEachReference(*snapshot, metadata.nodes, {}, [](const ChunkName&) {
                         return Status::Ok();
                       }).code()) == code);
  again();
  CHECK(StatusCodeName(CountLive(store.env, *snapshot, metadata.nodes, *store.index,
                                 {.spill_directory = kSpill, .memory_bytes = 4096, .pace = {}})
                           .status()
                           .code()) == code);
  CHECK(store.SpillIsGone());
  again();
  SegmentMark mark;
  mark.Add(1, FooterOf({NumberedName(1), NumberedName(900'000)}));
  CHECK(StatusCodeName(mark.Mark(*snapshot, metadata.nodes, {}).code()) == code);
  CHECK(mark.IsLive(1, 0));
  CHECK(mark.IsLive(1, 1));
  CHECK(mark.LiveCount(1) == 2);
}

TEST_CASE("marks call their pace at intervals, and end when it fails") {
  MarkStore store(IndexEngine::kSilt);
  uint64_t calls = 0;
  uint64_t stop_at = UINT64_MAX;
  const MarkPace pace = [&] {
    if (++calls < stop_at) return Status::Ok();
    return Status(StatusCode::kInterrupted, "enough");
  };
  const auto count = [&] {
    calls = 0;
    return store.Count({.spill_directory = kSpill, .memory_bytes = 4096, .pace = pace});
  };
  SegmentMark mark;
  mark.Add(1, FooterOf({NumberedName(900'000)}));
  const auto mark_segment = [&] {
    calls = 0;
    return mark.Mark(*store.metadata.Snapshot(), store.metadata.nodes, pace);
  };
  const auto walk = [&] {
    calls = 0;
    return store.metadata.Walk(pace);
  };
  REQUIRE_OK(walk());
  const uint64_t of_walk = calls;
  CHECK(of_walk >= 3);
  REQUIRE_OK(mark_segment());
  CHECK(calls == of_walk);
  REQUIRE_OK(count());
  CHECK(calls >= of_walk + 2);  // the pace is called for index entries, too
  const uint64_t of_count = calls;
  for (stop_at = 1; stop_at <= of_count; ++stop_at) {
    REQUIRE_CODE(count(), kInterrupted);
    CHECK(store.SpillIsGone());
    if (stop_at > of_walk) continue;
    REQUIRE_CODE(walk(), kInterrupted);
    REQUIRE_CODE(mark_segment(), kInterrupted);
    CHECK(mark.IsLive(1, 0));
  }
  REQUIRE_OK(count());
}

TEST_CASE("a mark distinguishes the live chunks of segments from the dead ones") {
  MarkStore store(IndexEngine::kMap);
  SegmentMark mark;
  Random random(3);
  // For each segment: which of its chunks should be live. Segments are added in a mixed order.
  std::map<SegmentId, std::vector<bool>> expected;
  for (const SegmentId segment : {90U, 8U, 1U, 31U}) {
    std::vector<ChunkName> names;
    for (uint64_t i = 0; i < MarkStore::kSegmentChunks; ++i) {
      const uint64_t number = (segment - 1) * MarkStore::kSegmentChunks + i;
      names.push_back(NumberedName(number));
      expected[segment].push_back(!MarkStore::IsDead(number));
      // Some chunks are there twice, in different segments or in one.
      if (!random.OneIn(5)) continue;
      const uint64_t other = random.Below(2 * MarkStore::kSegmentChunks) * 45;  // often the same
      names.push_back(NumberedName(other));
      expected[segment].push_back(!MarkStore::IsDead(other));
    }
    mark.Add(segment, FooterOf(names));
  }
  for (const auto& [segment, live] : expected) {
    REQUIRE(mark.LiveCount(segment) == live.size());  // before the mark, all count as live
  }
  REQUIRE_OK(mark.Mark(*store.metadata.Snapshot(), store.metadata.nodes, {}));
  for (const auto& [segment, live] : expected) {
    INFO("segment " << segment);
    for (uint32_t i = 0; i < live.size(); ++i) REQUIRE(mark.IsLive(segment, i) == live[i]);
    CHECK(mark.LiveCount(segment) ==
          static_cast<uint32_t>(std::count(live.begin(), live.end(), true)));
  }
  CHECK(mark.LiveCount(8) ==
        expected[8].size() - std::count(expected[8].begin(), expected[8].end(), false));
  CHECK(mark.IsLive(90, 100'000));
  CHECK(mark.IsLive(91, 0));
  CHECK(mark.LiveCount(91) == UINT32_MAX);
}

TEST_CASE(
    "a chunk whose name is lost is live, but a chunk with a name prefix of zeros may be dead") {
  MarkMetadata metadata;
  metadata.AddFile(NumberedChunks(0, 10));
  SegmentMark mark;
  const std::vector<FooterChunk> chunks = {{}, {.name_prefix = 0, .tag = 1}, {.name_prefix = 5}};
  mark.Add(1, chunks);
  REQUIRE_OK(mark.Mark(*metadata.Snapshot(), metadata.nodes, {}));
  CHECK(mark.IsLive(1, 0));
  CHECK_FALSE(mark.IsLive(1, 1));
  CHECK_FALSE(mark.IsLive(1, 2));
  CHECK(mark.LiveCount(1) == 1);
}

TEST_CASE("a mark uses the snapshot that it was given, and can be made again from another") {
  MarkMetadata metadata;
  const auto before = metadata.Snapshot();
  metadata.AddFile(NumberedChunks(0, 10));
  const auto after = metadata.Snapshot();
  SegmentMark mark;
  mark.Add(1, FooterOf({NumberedName(3)}));
  REQUIRE_OK(mark.Mark(*before, metadata.nodes, {}));
  CHECK(mark.LiveCount(1) == 0);
  REQUIRE_OK(mark.Mark(*after, metadata.nodes, {}));
  CHECK(mark.LiveCount(1) == 1);
  REQUIRE_OK(mark.Mark(*before, metadata.nodes, {}));
  CHECK(mark.LiveCount(1) == 0);
  REQUIRE_OK(mark.Mark(*after, metadata.nodes, {}));
  mark.Add(2, FooterOf({NumberedName(4), NumberedName(40)}));
  CHECK(mark.LiveCount(2) == 2);
  REQUIRE_OK(mark.Mark(*after, metadata.nodes, {}));
  CHECK(mark.LiveCount(2) == 1);
}

TEST_CASE("chunks are distinguished if all names begin alike") {
  const uint8_t first = GENERATE(as<uint8_t>{}, 0x00, 0x80, 0xff);
  MarkMetadata metadata;
  Entries live;
  std::vector<ChunkName> names;
  for (uint64_t i = 0; i < 300; ++i) {
    names.push_back(NumberedName(i));
    std::fill_n(names.back().bytes.begin(), 4, first);
    if (i % 3 != 0) live.push_back(RecipeEntry::Chunk(names.back(), 8192));
  }
  metadata.AddFile(live);
  SegmentMark mark;
  mark.Add(1, FooterOf(names));
  REQUIRE_OK(mark.Mark(*metadata.Snapshot(), metadata.nodes, {}));
  for (uint32_t i = 0; i < 300; ++i) REQUIRE(mark.IsLive(1, i) == (i % 3 != 0));
}

TEST_CASE("a mark of no segments, or of empty ones, succeeds") {
  MarkMetadata metadata;
  metadata.AddFile(NumberedChunks(0, 10));
  SegmentMark mark;
  REQUIRE_OK(mark.Mark(*metadata.Snapshot(), metadata.nodes, {}));
  mark.Add(3, {});
  REQUIRE_OK(mark.Mark(*metadata.Snapshot(), metadata.nodes, {}));
  CHECK(mark.LiveCount(3) == 0);
}

}  // namespace siltfs::testing
