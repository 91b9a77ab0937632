// Secondary copies, to which the index does not lead, and whether they make a new chunk a
// duplicate.
#include "fs/chunks/secondary_copies.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "fs/records/schema.h"
#include "index/open_index.h"
#include "store/env/sim_env.h"
#include "store/segment/segment_files.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

StoreSettings SiltSettings() {
  StoreSettings settings;
  settings.index = TestIndex::kSilt;
  return settings;
}

// 25 chunks in a sealed segment.
struct Sealed {
  Sealed() : store(SiltSettings()) {
    store.Open();
    all = PutMany(store.chunks(), 0, 25);
    store.Commit();
    store.Crash();
    store.Open();
    segment = Find(store, all.names[0])->segment;
  }
  // Puts a duplicate, which loads the segment's footer entries.
  void LoadWindow() {
    REQUIRE(PutOne(store.chunks(), all.chunks[0]) == all.names[0]);
    store.Commit();
    REQUIRE(CountCopies(store, all.names[0]) == 1);
  }

  StoreUnderTest store;
  PutChunks all;
  SegmentId segment = kNoSegment;
};

IndexEntry EntryAt(uint8_t number, SegmentId segment, uint32_t ordinal) {
  IndexEntry entry;
  entry.name.bytes.fill(number);
  entry.location = {segment, ordinal, 0};
  return entry;
}

SegmentRecord RecordOf(uint32_t chunks) {
  SegmentRecord record;
  record.chunks = chunks;
  return record;
}

// Takes the place of metadata. WriteThrough calls the test's function and returns its status.
class AnsweredWrites final : public CommitPort {
 public:
  using Answer = std::function<Status(const std::vector<Mutation>&)>;
  explicit AnsweredWrites(Answer answer) : answer_(std::move(answer)) {}

  Status CommitNow() override { return Status::Ok(); }
  std::shared_ptr<const KvSnapshot> CommittedSnapshot() const override { return nullptr; }
  Status WriteThrough(const std::vector<Mutation>& mutations) override {
    return answer_(mutations);
  }

 private:
  const Answer answer_;
};

}  // namespace

TEST_CASE("a note is written before it counts, and does not count if it cannot be written") {
  std::vector<std::vector<Mutation>> written;
  Status answer;
  const SecondaryCopies* in_use = nullptr;
  AnsweredWrites metadata([&](const std::vector<Mutation>& mutations) {
    written.push_back(mutations);
    if (in_use != nullptr) CHECK_FALSE(in_use->Contains(9));
    return answer;
  });
  SecondaryCopies copies({7}, &metadata);
  CHECK(copies.Contains(7));
  CHECK_FALSE(copies.Contains(9));
  in_use = &copies;
  answer = Status(StatusCode::kNoSpace, "full");
  REQUIRE_CODE(copies.Note(9), kNoSpace);
  CHECK_FALSE(copies.Contains(9));
  answer = Status::Ok();
  REQUIRE_OK(copies.Note(9));
  CHECK(copies.Contains(9));
  CHECK(copies.All() == std::vector<SegmentId>{7, 9});
  REQUIRE(written.size() == 2);
  REQUIRE(written.back().size() == 1);
  CHECK(written.back()[0].key == SecondaryKey(9));
  CHECK(written.back()[0].value == std::string());
  // The segment is noted already: nothing is written.
  REQUIRE_OK(copies.Note(7));
  CHECK(written.size() == 2);
}

TEST_CASE("a note that was made again since the check is not dropped") {
  std::vector<Mutation> written;
  Status answer;
  AnsweredWrites metadata([&](const std::vector<Mutation>& mutations) {
    written = mutations;
    return answer;
  });
  SecondaryCopies copies({1, 2, 3}, &metadata);
  const uint64_t checked = copies.Now();
  REQUIRE_OK(copies.Note(2));
  answer = Status(StatusCode::kNoSpace, "full");
  const std::vector<SegmentId> some{1, 2, 4};
  REQUIRE_CODE(copies.Forget(some, checked), kNoSpace);
  CHECK(copies.Contains(1));
  answer = Status::Ok();
  REQUIRE_OK(copies.Forget(some, checked));
  CHECK_FALSE(copies.Contains(1));
  CHECK(copies.Contains(2));
  CHECK(copies.Contains(3));
  REQUIRE(written.size() == 1);
  CHECK(written[0].key == SecondaryKey(1));
  CHECK_FALSE(written[0].value);
  copies.Removed(2);
  CHECK(copies.All() == std::vector<SegmentId>{3});
}

TEST_CASE("the footer cache does not decide for a noted segment: the index does") {
  Sealed at;
  const bool noted = GENERATE(true, false);
  at.store.Close();
  if (noted) at.store.committed().secondary = {at.segment};
  at.store.Open();
  at.LoadWindow();
  // Lose the chunk's entry, as if it had been removed with a segment that held the other copy.
  at.store.index().Say(at.all.names[3], std::nullopt);
  REQUIRE(PutOne(at.store.chunks(), at.all.chunks[3]) == at.all.names[3]);
  at.store.Commit();
  at.store.index().TellTruth(at.all.names[3]);
  CHECK(CountCopies(at.store, at.all.names[3]) == (noted ? 2 : 1));
  const auto place = at.store.index().Get(at.all.names[3]);
  REQUIRE_OK(place);
  REQUIRE(place->has_value());
  CHECK(((*place)->segment != at.segment) == noted);
  RequireAll(at.store.chunks(), at.all);
}

TEST_CASE("a segment is noted before one of its damaged chunks is stored again") {
  Sealed at;
  const auto place = Find(at.store, at.all.names[9]);
  REQUIRE(place);
  FlipByte(at.store, SegmentPath(at.store.path(), at.segment), place->block_offset + 2000);
  const bool window = GENERATE(true, false);
  if (window) at.LoadWindow();
  const auto got =
      at.store.chunks().Get(at.all.names[9], static_cast<uint32_t>(at.all.chunks[9].size()));
  REQUIRE_FALSE(got.ok());
  CHECK(at.store.committed().secondary.empty());
  const bool index_lost_it = GENERATE(true, false);
  if (index_lost_it) at.store.index().Say(at.all.names[9], std::nullopt);
  REQUIRE(PutOne(at.store.chunks(), at.all.chunks[9]) == at.all.names[9]);
  CHECK(at.store.committed().secondary == std::set<SegmentId>{at.segment});
  at.store.index().TellTruth(at.all.names[9]);
  at.store.Commit();
  REQUIRE(ComesBack(at.store.chunks(), at.all.names[9], at.all.chunks[9]));
}

// The power cut removes the block of the second copy, but the index leads there already. The replay
// skips the first copy, because the index had its entry long before.
TEST_CASE("after a crash the index leads to chunks of victims again") {
  Sealed at;
  at.store.Close();
  at.store.committed().secondary = {at.segment};
  at.store.Open();
  at.store.committed().victims = {at.segment};
  const bool same_segment = GENERATE(true, false);
  if (same_segment) {  // a part of the second copy's segment stays
    PutMany(at.store.chunks(), 100, 3);
    at.store.Commit();
  }
  at.store.index().Say(at.all.names[3], std::nullopt);  // as for a chunk in a victim
  REQUIRE(PutOne(at.store.chunks(), at.all.chunks[3]) == at.all.names[3]);
  at.store.chunks().WaitUntilSealed();  // appended, not synced
  PutMany(at.store.chunks(), 200, 3);   // ends the sequence of the block before
  at.store.chunks().WaitUntilSealed();
  REQUIRE_OK(at.store.index().Flush());
  at.store.index().TellTruth(at.all.names[3]);
  at.store.Crash();
  at.store.Open();
  const auto place = at.store.index().Get(at.all.names[3]);
  REQUIRE_OK(place);
  REQUIRE(place->has_value());
  CHECK((*place)->segment == at.segment);
  CHECK(at.store.committed().secondary == std::set<SegmentId>{at.segment});
  CHECK(at.store.committed().victims.empty());
  REQUIRE(ComesBack(at.store.chunks(), at.all.names[3], at.all.chunks[3]));
}

TEST_CASE("a note says that its segment was a victim, even if it was noted before") {
  std::vector<Mutation> written;
  AnsweredWrites metadata([&](const std::vector<Mutation>& mutations) {
    written = mutations;
    return Status::Ok();
  });
  SecondaryCopies copies({1}, &metadata);
  const std::vector<SegmentId> both{1, 2};
  REQUIRE_OK(copies.NoteVictims(both));
  REQUIRE(written.size() == 2);
  CHECK(written[0].value == kVictimNote);
  CHECK(written[1].value == kVictimNote);
  written.clear();
  REQUIRE_OK(copies.Note(both));  // changes nothing
  REQUIRE_OK(copies.NoteVictims(both));
  REQUIRE_OK(copies.CompareAfterCrash(1));
  REQUIRE_OK(copies.CompareAfterCrash(3));  // it is not noted
  REQUIRE_OK(copies.Compared(both));        // they became victims since
  CHECK(written.empty());
}

TEST_CASE("a mount makes the notes of compared segments plain, but not of those with new entries") {
  std::vector<Mutation> written;
  AnsweredWrites metadata([&](const std::vector<Mutation>& mutations) {
    written = mutations;
    return Status::Ok();
  });
  SecondaryCopies copies({1, 2}, &metadata);
  const uint64_t before = copies.Now();
  REQUIRE_OK(copies.CompareAfterCrash(1));
  REQUIRE(written.size() == 1);
  CHECK(written[0].key == SecondaryKey(1));
  CHECK(written[0].value == kVictimNote);
  REQUIRE_OK(copies.Compared(std::vector<SegmentId>{1, 2}));
  REQUIRE(written.size() == 1);
  CHECK(written[0].key == SecondaryKey(2));
  CHECK(written[0].value == kPlainNote);
  // The new entries do not keep the note.
  REQUIRE_OK(copies.Forget(std::vector<SegmentId>{1}, before));
  CHECK_FALSE(copies.Contains(1));
}

TEST_CASE("after a replay the index leads to a damaged chunk's healed copy in a noted segment") {
  Sealed at;
  at.store.Close();  // the index is durable: it leads to the first segment
  at.store.Open();
  const auto place = Find(at.store, at.all.names[9]);
  REQUIRE(place);
  FlipByte(at.store, SegmentPath(at.store.path(), at.segment), place->block_offset + 2000);
  const auto size = static_cast<uint32_t>(at.all.chunks[9].size());
  REQUIRE_FALSE(at.store.chunks().Get(at.all.names[9], size).ok());
  REQUIRE(PutOne(at.store.chunks(), at.all.chunks[9]) == at.all.names[9]);
  at.store.Commit();
  const SegmentId healed = Find(at.store, at.all.names[9])->segment;
  REQUIRE(healed != at.segment);
  at.store.committed().secondary.insert(healed);
  at.store.Crash();
  at.store.Open();
  const auto led = at.store.index().Get(at.all.names[9]);
  REQUIRE_OK(led);
  REQUIRE(led->has_value());
  CHECK((*led)->segment == healed);
  REQUIRE(ComesBack(at.store.chunks(), at.all.names[9], at.all.chunks[9]));
}

TEST_CASE("a replay prefers copies outside noted segments, whichever copy was put last") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/index"));
  auto index = OpenIndex(env, {.engine = IndexEngine::kMap, .directory = "/index"});
  REQUIRE_OK(index);
  const SegmentRecords records{{1, RecordOf(10)}, {2, RecordOf(10)}, {3, RecordOf(10)}};
  const DamageList damage({});
  ReplayedEntries replayed(**index, records, {2}, damage);
  const auto put = [&](std::vector<IndexEntry> entries, uint64_t sequence) {
    REQUIRE_OK(replayed.Put(entries, sequence));
  };
  const auto segment_of = [&](uint8_t number) {
    const auto place = (*index)->Get(EntryAt(number, 0, 0).name);
    REQUIRE_OK(place);
    REQUIRE(place->has_value());
    return (*place)->segment;
  };
  put({EntryAt(1, 1, 0), EntryAt(2, 9, 0), EntryAt(3, 1, 10), EntryAt(5, 2, 4)}, 1);
  put({EntryAt(1, 2, 0), EntryAt(2, 2, 1), EntryAt(3, 2, 2), EntryAt(4, 2, 3), EntryAt(5, 3, 0)},
      2);
  CHECK(segment_of(1) == 1);  // outside the noted segments
  CHECK(segment_of(2) == 2);  // segment 9 is gone
  CHECK(segment_of(3) == 2);  // the crash lost the end of segment 1
  CHECK(segment_of(4) == 2);  // there is no other copy
  CHECK(segment_of(5) == 3);
}

}  // namespace siltfs::testing
