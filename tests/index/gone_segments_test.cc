// The next merge removes entries that lead into gone segments, and no others.
#include <set>
#include <string>
#include <vector>

#include "silt_fixture.h"

namespace siltfs::testing {
namespace {

// NumberedEntry(number) lies in segment number + 1.
bool IsEvenNumber(SegmentId segment) { return (segment - 1) % 2 == 0; }

std::set<uint64_t> Listed(ChunkIndex& index) {
  std::set<uint64_t> numbers;
  REQUIRE_OK(index.ForEach([&](const OrderedEntry& entry) {
    numbers.insert(entry.location.segment - 1);
    return Status::Ok();
  }));
  return numbers;
}

uint64_t EntriesOf(const ChunkIndex& index, const std::string& kind) {
  uint64_t entries = 0;
  for (const auto& store : index.stats().stores) entries += store.kind == kind ? store.entries : 0;
  return entries;
}

void RequireVerifies(ChunkIndex& index) {
  REQUIRE_OK(index.Verify([](const IndexFinding& finding) { FAIL(finding.text); }));
}

}  // namespace

TEST_CASE("entries of gone segments disappear with the next merge, no others do") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  fixture.options.partition_bits = GENERATE(0U, 2U);
  auto index = fixture.Open();
  PutNumbers(*index, 0, 4000, 1);
  REQUIRE(Listed(*index).size() == 4000);
  const uint64_t merges = index->stats().merges;
  REQUIRE(merges > 0);
  index->SetGone(IsEvenNumber);
  CHECK(Listed(*index).size() == 4000);  // SetGone alone removes no entry
  // Puts only odd numbers, until every partition has been merged again.
  uint64_t next = 10'001;
  for (uint64_t sequence = 2; index->stats().merges < merges + 10; ++sequence) {
    std::vector<IndexEntry> entries;
    for (int i = 0; i < 50; ++i, next += 2) entries.push_back(NumberedEntry(next));
    REQUIRE_OK(index->Put(entries, sequence));
  }
  const auto numbers = Listed(*index);
  for (uint64_t i = 1; i < 4000; i += 2) REQUIRE(numbers.contains(i));
  for (uint64_t i = 10'001; i < next; i += 2) REQUIRE(numbers.contains(i));
  CHECK(numbers.size() == 2000 + (next - 10'001) / 2);
  for (uint64_t i = 0; i < 4000; ++i) {
    REQUIRE(GetNumber(*index, i).has_value() == (i % 2 == 1));
  }
  RequireVerifies(*index);
  REQUIRE_OK(index->Close());
  index = fixture.Open();
  CHECK(Listed(*index) == numbers);
  RequireVerifies(*index);
}

TEST_CASE("entries that were not merged stay, and verify") {
  FilledFixture fixture;
  auto index = fixture.Fill();
  index->SetGone([](SegmentId) { return true; });
  REQUIRE(EntriesOf(*index, "hash_store") > 0);
  CHECK(Listed(*index).size() == FilledFixture::kNames);
  CheckNumbers(*index, 0, FilledFixture::kNames);
  RequireVerifies(*index);
}

TEST_CASE("a merge without remaining entries leaves no SortedStore") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  auto index = fixture.Open();
  PutNumbers(*index, 0, 1000, 1);
  REQUIRE(StoresOfKind(index->stats(), "sorted_store") == 1);
  index->SetGone([](SegmentId) { return true; });
  const uint64_t merges = index->stats().merges;
  for (uint64_t i = 1000; index->stats().merges == merges; i += 20) PutNumbers(*index, i, 20, i);
  CHECK(StoresOfKind(index->stats(), "sorted_store") == 0);
  CHECK_FALSE(GetNumber(*index, 0).has_value());
  RequireVerifies(*index);
  index->SetGone({});
  PutNumbers(*index, 20'000, 1000, 20'000);
  CheckNumbers(*index, 20'000, 1000);
  CHECK(StoresOfKind(index->stats(), "sorted_store") == 1);
  RequireVerifies(*index);
}

TEST_CASE("the newest entry of a name counts, even if its segment is gone") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  auto index = fixture.Open();
  // Names 0 to 1999 are in segments 1 to 2000; the first 1000 segments become gone. The even names
  // among the first 1000 get a newer entry in a segment that stays. All other names get one in a
  // segment that becomes gone.
  PutNumbers(*index, 0, 2000, 1);
  constexpr SegmentId kStays = 70'000;
  constexpr SegmentId kGoes = 80'000;
  std::vector<IndexEntry> moved;
  const auto stays = [](uint64_t i) { return i < 1000 && i % 2 == 0; };
  for (uint64_t i = 0; i < 2000; ++i) {
    moved.push_back({NameOf(i), {.segment = stays(i) ? kStays : kGoes, .ordinal = 1}});
  }
  REQUIRE_OK(index->Put(moved, 2));
  index->SetGone([](SegmentId segment) { return segment <= 1000 || segment == kGoes; });
  PutNumbers(*index, 30'000, 4000, 3);
  for (uint64_t i = 0; i < 2000; ++i) {
    const Answer answer = GetNumber(*index, i);
    REQUIRE(answer.has_value() == stays(i));
    if (answer) REQUIRE(answer->segment == kStays);
  }
  CheckNumbers(*index, 30'000, 4000);
}

TEST_CASE("DropGone drops entries of gone segments and no others") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 8;
  fixture.options.partition_bits = GENERATE(0U, 3U);
  fixture.options.background = GENERATE(false, true);
  auto index = fixture.Open();
  PutNumbers(*index, 0, 20'000, 1);
  index->SetGone([](SegmentId segment) { return segment > 1000 && IsEvenNumber(segment); });
  const auto before = index->stats();
  const uint64_t durable = index->durable_sequence();
  uint64_t paces = 0;
  REQUIRE_OK(index->DropGone([&paces] {
    ++paces;
    return Status::Ok();
  }));
  CHECK(paces == (uint64_t{1} << fixture.options.partition_bits) - 1);
  CHECK(index->durable_sequence() == durable);
  const auto there = [](uint64_t i) { return i < 1000 || i % 2 == 1; };
  const auto check = [&there](ChunkIndex& at) {
    const auto numbers = Listed(at);
    CHECK(numbers.size() == 1000 + 19'000 / 2);
    for (uint64_t i = 0; i < 20'000; ++i) {
      REQUIRE(numbers.contains(i) == there(i));
      REQUIRE(GetNumber(at, i).has_value() == there(i));
    }
    RequireVerifies(at);
  };
  check(*index);
  CHECK(index->stats().entries == 1000 + 19'000 / 2);
  CHECK(index->stats().flash_bytes < before.flash_bytes * 2 / 3);
  PutNumbers(*index, 30'000, 100, 2);  // the index works as before
  REQUIRE_OK(index->Flush());
  CHECK(index->durable_sequence() >= 1);
  // A finished merge is durable.
  index.reset();
  fixture.env.PowerCut({.unsynced = CrashPolicy::Unsynced::kDrop, .seed = 1});
  index = fixture.Open();
  CHECK(index->durable_sequence() >= 1);
  for (uint64_t i = 0; i < 20'000; ++i) REQUIRE(GetNumber(*index, i).has_value() == there(i));
  RequireVerifies(*index);
}

TEST_CASE("an empty index has nothing to drop, and one without gone segments drops nothing") {
  SiltFixture fixture;
  fixture.options.partition_bits = 2;
  auto index = fixture.Open();
  REQUIRE_OK(index->DropGone());
  PutNumbers(*index, 0, 1000, 1);
  REQUIRE_OK(index->DropGone());
  REQUIRE_OK(index->DropGone());
  CheckNumbers(*index, 0, 1000);
  index->SetGone([](SegmentId) { return true; });
  REQUIRE_OK(index->DropGone());
  CHECK(Listed(*index).empty());
  CHECK(index->stats().entries == 0);
  RequireVerifies(*index);
}

TEST_CASE("DropGone fails on a full disk and may be repeated") {
  SiltFixture fixture;
  fixture.options.partition_bits = 2;
  fixture.options.background = GENERATE(false, true);
  auto index = fixture.Open();
  PutNumbers(*index, 0, 4000, 1);
  index->SetGone(IsEvenNumber);
  for (uint64_t call = 1;; ++call) {
    CAPTURE(call);
    REQUIRE(call < 1000);
    fixture.env.FailCall(
        {.calls = SimCall::kCreate | SimCall::kWrite, .nth = call, .code = StatusCode::kNoSpace});
    const Status dropped = index->DropGone();
    fixture.env.ClearFaults();
    for (uint64_t i = 1; i < 4000; i += 2) REQUIRE(GetNumber(*index, i).has_value());
    if (dropped.ok()) break;
    REQUIRE_CODE(dropped, kNoSpace);
  }
  CHECK(Listed(*index).size() == 2000);
  PutNumbers(*index, 30'000, 100, 2);
  CheckNumbers(*index, 30'000, 100);
  RequireVerifies(*index);
}

TEST_CASE("a power cut at any step of DropGone loses no other entries") {
  SiltFixture fixture;
  fixture.options.partition_bits = 1;
  auto index = fixture.Open();
  PutNumbers(*index, 0, 3000, 1);
  PutNumbers(*index, 3000, 1, 2);  // completes sequence 1
  REQUIRE_OK(index->Flush());
  REQUIRE(index->durable_sequence() == 1);
  index->SetGone(IsEvenNumber);
  const auto device = fixture.env.Fork();
  fixture.env.StartTrace();
  REQUIRE_OK(index->DropGone());
  const SimTrace trace = fixture.env.TakeTrace();
  REQUIRE(trace.size() > 10);
  for (size_t cut = 0; cut <= trace.size(); ++cut) {
    CAPTURE(cut);
    const auto left = device->Fork();
    left->PowerCut({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = cut});
    auto opened = OpenSiltIndex(*left, fixture.options);
    REQUIRE_OK(opened);
    CHECK((*opened)->durable_sequence() >= 1);
    for (uint64_t i = 1; i < 3000; i += 2) REQUIRE(GetNumber(**opened, i).has_value());
    RequireVerifies(**opened);
    if (cut < trace.size()) REQUIRE_OK(device->Replay(trace[cut]));
  }
}

TEST_CASE("segments may be removed while the index merges in the background") {
  SiltFixture fixture;
  fixture.options.bucket_bits = 4;
  fixture.options.background = true;
  auto index = fixture.Open();
  for (uint64_t round = 0; round < 40; ++round) {
    PutNumbers(*index, round * 200, 200, round + 1);
    const auto end = static_cast<SegmentId>(round * 100);
    index->SetGone([end](SegmentId segment) { return segment <= end; });
  }
  CHECK(index->stats().merges > 0);
  CheckNumbers(*index, 3900, 8000 - 3900);
  CHECK(Listed(*index).size() < 8000);
  RequireVerifies(*index);
  REQUIRE_OK(index->Close());
}

}  // namespace siltfs::testing
