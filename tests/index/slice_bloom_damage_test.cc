// SliceBloom: after power cuts, failing calls, damage and forged files, no name of a covered
// segment is ruled out.
#include <limits>
#include <set>
#include <utility>

#include "hook_env.h"
#include "index/flash/page_address.h"
#include "index/flash/state_map.h"
#include "index/slice_bloom/slice_bloom_state.h"
#include "slice_bloom_fixture.h"
#include "store/base/coding.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kNames = 30;

SliceBloomShape TinyGroups(unsigned partition_bits) {
  SliceBloomShape shape = kSmallBloom;
  shape.partition_bits = partition_bits;
  shape.names_per_group = 100;
  return shape;
}

// The segments that survive a power cut now. A removal may be forgotten.
struct Durable {
  std::set<SegmentId> segments;
  std::set<SegmentId> added;
};

// Adds 40 segments, removes some, adds some again, and opens the files again after half of them.
// Ends at the first error.
void Live(SliceBloomFixture& fixture, Durable& durable) {
  uint64_t groups = 0;
  const auto add = [&](SegmentId segment) {
    fixture.counts[segment] = kNames;
    // One that leaves its group is as durable as the present group.
    durable.segments.erase(segment);
    durable.added.insert(segment);
    if (!fixture.bloom->Add(segment, NamesOf(segment, kNames)).ok()) return false;
    if (fixture.bloom->stats().groups != groups) durable.segments = durable.added;
    groups = fixture.bloom->stats().groups;
    return true;
  };
  for (SegmentId segment = 1; segment <= 40; ++segment) {
    if (!add(segment)) return;
    if (segment % 7 == 0) {
      durable.segments.erase(segment - 5);
      durable.added.erase(segment - 5);
      if (!fixture.bloom->Remove(segment - 5).ok()) return;
    }
    if (segment % 9 == 0 && !add(segment - 8)) return;
    if (segment == 20) {
      if (!fixture.bloom->Close().ok()) return;
      durable.segments = durable.added;
      auto opened = SliceBloom::Open(fixture.env, fixture.options);
      if (!opened.ok()) return opened.status().IgnoreError("the power may have been cut");
      fixture.bloom = std::move(*opened);
    }
  }
  if (!fixture.bloom->Close().ok()) return;
  durable.segments = durable.added;
}

uint64_t CallsOfLive(const SliceBloomShape& shape) {
  SliceBloomFixture fixture(shape);
  const uint64_t first = fixture.env.Calls(SimCall::kMutating);
  Durable durable;
  Live(fixture, durable);
  REQUIRE(durable.segments.size() > 30);
  return fixture.env.Calls(SimCall::kMutating) - first;
}

// The files go on: segments that are not covered are added again.
void GoOn(SliceBloomFixture& fixture) {
  fixture.Check();
  for (SegmentId segment = 1; segment <= 50; ++segment) {
    if (!fixture.bloom->Covers(segment)) fixture.Add(segment, kNames);
  }
  REQUIRE(fixture.Check() == 50);
}

// Lets the end of the present group fail after some of its columns were written.
void FailHalfWay(SliceBloomFixture& fixture) {
  fixture.env.FailCall(
      {.calls = SimCall::kCreate, .nth = 3, .code = StatusCode::kNoSpace, .sticky = true});
  REQUIRE_CODE(fixture.bloom->EndGroup(), kNoSpace);
  fixture.env.ClearFaults();
}

// Changes records of the manifest, and opens the files.
Status OpenForged(SliceBloomFixture& fixture, const StateMap::Changes& changes) {
  fixture.bloom.reset();
  const auto env = fixture.env.Fork();
  StateMap manifest(*env, kBloomDirectory);
  REQUIRE(*manifest.Read());
  REQUIRE_OK(manifest.FinishRead());
  REQUIRE_OK(manifest.Commit(changes));
  return SliceBloom::Open(*env, fixture.options).status();
}

}  // namespace

TEST_CASE("after a power cut at any call, names of covered segments are found") {
  // With 32 partitions, a group ends with two commits.
  const SliceBloomShape shape = TinyGroups(GENERATE(2U, 5U));
  const uint64_t calls = CallsOfLive(shape);
  const auto unsynced = GENERATE(CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                                 CrashPolicy::Unsynced::kPrefix, CrashPolicy::Unsynced::kSubset);
  for (uint64_t nth = FirstCall(static_cast<uint64_t>(unsynced)); nth <= calls; nth += CallStep()) {
    INFO("call " << nth << " of " << calls);
    SliceBloomFixture fixture(shape);
    fixture.env.CutAtCall(nth);
    Durable durable;
    Live(fixture, durable);
    fixture.bloom.reset();
    fixture.env.Reboot({.unsynced = unsynced, .seed = nth});
    fixture.Open();
    for (const SegmentId segment : durable.segments) {
      INFO("segment " << segment);
      REQUIRE(fixture.bloom->Covers(segment));
    }
    REQUIRE(fixture.Damaged() == 0);
    REQUIRE(fixture.bloom->stats().damaged_pages == 0);
    REQUIRE(fixture.FileBytes(".pages") == fixture.bloom->stats().flash_bytes);
    GoOn(fixture);
  }
}

TEST_CASE("after a power cut while it is made, an empty one is made") {
  for (uint64_t nth = 1; nth < 20; ++nth) {
    SimEnv env;
    REQUIRE_OK(env.CreateDirectory(kBloomDirectory));
    REQUIRE_OK(env.SyncDirectory("/"));
    const SliceBloomOptions options{.directory = kBloomDirectory, .shape = kSmallBloom};
    env.CutAtCall(nth);
    SliceBloom::Open(env, options).status().IgnoreError("the power may have been cut");
    env.Reboot({.unsynced = CrashPolicy::Unsynced::kPrefix, .seed = nth});
    auto opened = SliceBloom::Open(env, options);
    REQUIRE_OK(opened);
    CHECK((*opened)->stats().groups == 0);
  }
}

TEST_CASE("after a failing call, names of covered segments are found, also after another opening") {
  const StatusCode code = GENERATE(StatusCode::kIoError, StatusCode::kNoSpace);
  const SliceBloomShape shape = TinyGroups(5);
  const uint64_t calls = CallsOfLive(shape);
  for (uint64_t nth = FirstCall(0); nth <= calls; nth += CallStep()) {
    INFO("call " << nth << " of " << calls);
    SliceBloomFixture fixture(shape);
    fixture.env.FailCall({.calls = SimCall::kMutating, .nth = nth, .code = code});
    Durable durable;
    Live(fixture, durable);
    fixture.env.ClearFaults();
    fixture.Check();
    fixture.bloom.reset();
    fixture.env.PowerCut({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = nth});
    fixture.Open();
    for (const SegmentId segment : durable.segments) REQUIRE(fixture.bloom->Covers(segment));
    GoOn(fixture);
  }
}

TEST_CASE("after an error of the device, calls that write fail until the next opening") {
  SliceBloomFixture fixture(kSmallBloom);
  for (SegmentId segment = 1; segment <= 9; ++segment) fixture.Add(segment, 50);
  fixture.env.FailCall({.calls = SimCall::kSync});
  REQUIRE_CODE(fixture.bloom->EndGroup(), kIoError);
  REQUIRE_CODE(fixture.bloom->EndGroup(), kIoError);
  REQUIRE_CODE(fixture.bloom->Add(10, NamesOf(10, 50)), kIoError);
  REQUIRE_CODE(fixture.bloom->Close(), kIoError);
  CHECK(fixture.Check() == 9);
  fixture.Open();
  CHECK(fixture.Check() == 8);
}

TEST_CASE("a group whose end is repeated after kNoSpace is durable") {
  const bool by_add = GENERATE(false, true);
  SliceBloomShape shape = kSmallBloom;
  shape.partition_bits = 5;
  for (uint64_t nth = 1, failed = 1; failed > 0; ++nth) {
    INFO("call " << nth);
    SliceBloomFixture fixture(shape);
    for (SegmentId segment = 1; segment <= 9; ++segment) fixture.Add(segment, 50);
    const auto end = [&] {
      if (!by_add) return fixture.bloom->EndGroup();
      fixture.counts[10] = 200;
      return fixture.bloom->Add(10, NamesOf(10, 200));
    };
    fixture.env.FailCall({.calls = SimCall::kWrite | SimCall::kCreate,
                          .nth = nth,
                          .code = StatusCode::kNoSpace,
                          .sticky = true});
    const Status status = end();
    failed = status.ok() ? 0 : 1;
    fixture.env.ClearFaults();
    if (failed > 0) {
      REQUIRE_CODE(status, kNoSpace);
      fixture.Check();
      REQUIRE_OK(end());
    }
    CHECK(fixture.bloom->stats().groups == 3);
    fixture.bloom.reset();
    fixture.env.PowerCut();
    fixture.Open();
    CHECK(fixture.Check() == (by_add ? 10 : 9));
    CHECK(fixture.bloom->stats().groups == 3);
  }
}

TEST_CASE("a segment that is added after the end of its group has failed is found") {
  SliceBloomFixture fixture(kSmallBloom);
  for (SegmentId segment = 1; segment <= 5; ++segment) fixture.Add(segment, 50);
  FailHalfWay(fixture);
  fixture.Add(6, 50);
  FailHalfWay(fixture);
  CHECK(fixture.Check() == 6);
  REQUIRE_OK(fixture.bloom->EndGroup());
  CHECK(fixture.Check() == 6);
}

TEST_CASE("a group that ends while a name is looked up is reported once") {
  const bool moved = GENERATE(false, true);
  SliceBloomFixture fixture(kSmallBloom);
  HookEnv hooks(fixture.env);
  fixture.bloom.reset();
  auto opened = SliceBloom::Open(hooks, fixture.options);
  REQUIRE_OK(opened);
  fixture.bloom = std::move(*opened);
  for (SegmentId segment = 1; segment <= 5; ++segment) fixture.Add(segment, 50);
  FailHalfWay(fixture);
  bool ended = false;
  hooks.on_read = [&](const std::string&) {
    if (std::exchange(ended, true)) return;
    if (moved) fixture.Add(1, 50);
    REQUIRE_OK(fixture.bloom->EndGroup());
  };
  for (const auto& found : fixture.Find(NamesOf(5, 50))) {
    REQUIRE(std::ranges::count(found, 5U) == 1);
  }
  CHECK(ended);
  fixture.bloom.reset();  // before its Env
}

TEST_CASE("a group ends with little free space, because replaced slicefilters are removed") {
  // Three pages for each of 32 partitions.
  SliceBloomFixture fixture({.partition_bits = 5, .names_per_group = 20'000, .bits_per_name = 16});
  fixture.Add(1, 20'000);
  fixture.Add(2, 10'000);
  const auto space = fixture.env.GetDiskSpace(kBloomDirectory);
  REQUIRE_OK(space);
  fixture.env.SetCapacity(space->total_bytes - space->free_bytes + 11 * 4096);
  REQUIRE_OK(fixture.bloom->EndGroup());
  CHECK(fixture.Check() == 2);
}

TEST_CASE("damaged pages rule nothing out, and are counted") {
  SliceBloomFixture fixture(kSmallBloom);
  for (SegmentId segment = 1; segment <= 100; ++segment) fixture.Add(segment, 100);
  REQUIRE_OK(fixture.bloom->Close());
  fixture.bloom.reset();
  Random random(4);
  auto names = fixture.env.ListDirectory(kBloomDirectory);
  REQUIRE_OK(names);
  size_t damaged = 0;
  for (const auto& name : *names) {
    if (!name.name.ends_with(".pages") || random.OneIn(2)) continue;
    auto file =
        fixture.env.OpenFile(JoinPath(kBloomDirectory, name.name), {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    uint8_t byte = 0;
    const uint64_t at = random.Below(4096);
    REQUIRE_OK((*file)->Read(at, {&byte, 1}));
    byte ^= 1;
    REQUIRE_OK((*file)->Write(at, {&byte, 1}));
    ++damaged;
  }
  REQUIRE(damaged > 3);
  fixture.Open();
  CHECK(fixture.Damaged() == damaged);
  CHECK(fixture.Check() == 100);
  CHECK(fixture.bloom->stats().damaged_pages > 0);
  // The next groups keep the damage as columns that rule nothing out.
  const uint64_t before = fixture.bloom->stats().damaged_pages;
  for (SegmentId segment = 101; segment <= 110; ++segment) fixture.Add(segment, 100);
  CHECK(fixture.bloom->stats().damaged_pages > before);
  CHECK(fixture.Check() == 110);
}

TEST_CASE("after an error on a full disk a call may be repeated") {
  SliceBloomFixture fixture(kSmallBloom);
  for (SegmentId segment = 1; segment <= 30; ++segment) fixture.Add(segment, 60);
  for (uint64_t pages = 0; pages < 8; ++pages) {
    const auto space = fixture.env.GetDiskSpace(kBloomDirectory);
    REQUIRE_OK(space);
    fixture.env.SetCapacity(space->total_bytes - space->free_bytes + pages * 4096);
    const auto segment = static_cast<SegmentId>(100 + 10 * pages);
    Status status;
    SegmentId last = segment;
    for (; last < segment + 10 && status.ok(); ++last) {
      status = fixture.bloom->Add(last, NamesOf(last, 60));
      fixture.counts[last] = 60;
    }
    REQUIRE((status.ok() || status.Is(StatusCode::kNoSpace)));
    fixture.Check();
    fixture.env.SetCapacity(SimEnv::kUnlimited);
    if (!status.ok()) fixture.Add(last - 1, 60);
    CHECK(fixture.bloom->Covers(last - 1));
    fixture.Check();
  }
  REQUIRE_OK(fixture.bloom->Close());
  fixture.Open();
  CHECK(fixture.Check() == fixture.counts.size());
}

TEST_CASE("a damaged or forged manifest is refused") {
  SliceBloomFixture fixture(kSmallBloom);
  for (SegmentId segment = 1; segment <= 60; ++segment) fixture.Add(segment, 60);
  REQUIRE_OK(fixture.bloom->Close());
  fixture.bloom.reset();
  const std::string path = JoinPath(kBloomDirectory, "manifest");
  auto whole = ReadWholeFile(fixture.env, path, 1U << 20);
  REQUIRE_OK(whole);
  Random random(9);
  for (int i = 0; i < 200; ++i) {
    std::string wrong = *whole;
    wrong[random.Below(wrong.size())] ^= static_cast<char>(1 + random.Below(255));
    auto file = fixture.env.OpenFile(path, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(0, AsBytes(wrong)));
    REQUIRE_CODE(SliceBloom::Open(fixture.env, fixture.options), kCorruption);
  }
}

TEST_CASE("forged records of the manifest are refused") {
  SliceBloomShape shape = kSmallBloom;
  shape.groups_per_filter = 4;
  SliceBloomFixture fixture(shape);
  for (SegmentId segment = 1; segment <= 26; ++segment) fixture.Add(segment, 100);
  fixture.Add(27, 50);
  REQUIRE_OK(fixture.bloom->Close());  // 13 groups, of which one is in the fourth slicefilter
  fixture.bloom.reset();
  StateMap manifest(fixture.env, kBloomDirectory);
  REQUIRE(*manifest.Read());
  const auto& records = manifest.records();
  PageFiles files(fixture.env, {{.directory = kBloomDirectory}, {.directory = kBloomDirectory}},
                  true);
  auto decoded = DecodeSliceBloomState(records, files);
  REQUIRE_OK(decoded);
  const SliceBloomState& state = *decoded;
  REQUIRE(state.groups.size() == 13);
  REQUIRE(state.saved);
  const auto refused = [&](const StateMap::Changes& changes) {
    REQUIRE_CODE(OpenForged(fixture, changes), kCorruption);
  };
  REQUIRE_OK(OpenForged(fixture, {}));

  SECTION("shapes that need too much memory") {
    const auto header = [&](const SliceBloomShape& forged) {
      SliceBloomHeader wrong = state.header;
      wrong.shape = forged;
      refused({{kSliceBloomHeaderRecord, EncodeSliceBloomHeader(wrong)}});
    };
    header({.partition_bits = 2, .names_per_group = uint64_t{1} << 32, .bits_per_name = 64});
    header({.partition_bits = 16, .names_per_group = uint64_t{1} << 31, .bits_per_name = 64});
    header({.partition_bits = 63, .names_per_group = 200, .bits_per_name = 16});
    header({.partition_bits = 2, .names_per_group = UINT64_MAX / 2, .bits_per_name = 16});
    header({.partition_bits = 2, .names_per_group = 200, .bits_per_name = 0});
    header({.partition_bits = 2, .names_per_group = 200, .bits_per_name = 16, .probes = 0});
    header({.partition_bits = 2, .names_per_group = 200, .groups_per_filter = 0});
    header(
        {.partition_bits = 3, .names_per_group = 200, .bits_per_name = 16, .groups_per_filter = 4});
    header(
        {.partition_bits = 2, .names_per_group = 200, .bits_per_name = 16, .groups_per_filter = 5});
  }
  SECTION("numbers of groups that the records do not have") {
    for (const uint64_t groups : {uint64_t{0}, uint64_t{12}, uint64_t{14}, UINT64_MAX}) {
      SliceBloomHeader wrong = state.header;
      wrong.groups = groups;
      refused({{kSliceBloomHeaderRecord, EncodeSliceBloomHeader(wrong)}});
    }
    refused({{GroupRecordOf(5), std::nullopt}});
    refused({{GroupRecordOf(13), EncodeGroup({})}});
    refused({{GroupRecordOf(1000), EncodeGroup({})}});
    refused({{FiltersRecordOf(3), std::nullopt}});
    refused({{FiltersRecordOf(4), EncodeSliceFilters(state.partitions[0])}});
    refused({{kSliceBloomHeaderRecord, std::nullopt}});
    refused({{7, "x"}});
  }
  SECTION("segments in two groups, or no segments") {
    SliceBloomGroup group = state.groups[1];
    group.members[0].segment = state.groups[8].members[0].segment;
    refused({{GroupRecordOf(1), EncodeGroup(group)}});
    group.members[0].segment = group.members[1].segment;
    refused({{GroupRecordOf(1), EncodeGroup(group)}});
    group.members[0].segment = kNoSegment;
    refused({{GroupRecordOf(1), EncodeGroup(group)}});
    group = state.groups[1];
    group.names = 199;
    refused({{GroupRecordOf(1), EncodeGroup(group)}});
    refused({{GroupRecordOf(1), EncodeGroup(state.groups[1]) + "x"}});
    SavedGroup saved = *state.saved;
    saved.group.members.push_back(state.groups[8].members[0]);
    saved.group.names += 100;
    refused({{kSavedGroupRecord, EncodeSavedGroup(saved)}});
  }
  SECTION("columns that do not fit the groups") {
    const auto filters = [&](size_t filter, const SliceFilter& forged) {
      SliceFilters wrong = state.partitions[2];
      wrong.resize(std::max(wrong.size(), filter + 1));
      wrong[filter] = forged;
      refused({{FiltersRecordOf(2), EncodeSliceFilters(wrong)}});
    };
    const SliceFilters& right = state.partitions[2];
    REQUIRE(right.size() == 4);
    REQUIRE(right[3].columns == 1);
    filters(0, {right[0].first, 3});
    filters(0, {right[0].first, 0});
    filters(0, {right[0].first, 5});
    filters(3, {right[3].first, 3});
    filters(3, {right[3].first, std::numeric_limits<uint32_t>::max()});
    filters(4, {right[3].first, 1});
    refused({{FiltersRecordOf(2), EncodeSliceFilters(right) + "x"}});
    refused({{FiltersRecordOf(2), ""}});
    // Released, although groups need them.
    filters(0, {{}, 4});
    filters(3, {{}, 1});
    filters(3, {{}, 2});
    // The third slicefilter has the column of a group that has not ended.
    StateMap::Changes changes;
    SliceBloomHeader header = state.header;
    header.groups = 11;
    changes.emplace_back(kSliceBloomHeaderRecord, EncodeSliceBloomHeader(header));
    for (const uint64_t group : {11U, 12U})
      changes.emplace_back(GroupRecordOf(group), std::nullopt);
    for (const uint64_t group : {8U, 9U, 10U}) {
      changes.emplace_back(GroupRecordOf(group), EncodeGroup({}));
    }
    for (size_t partition = 0; partition < 4; ++partition) {
      SliceFilters wrong = state.partitions[partition];
      wrong.pop_back();
      changes.emplace_back(FiltersRecordOf(partition), EncodeSliceFilters(wrong));
    }
    REQUIRE_OK(OpenForged(fixture, changes));
    for (size_t partition = 0; partition < 4; ++partition) {
      SliceFilters wrong = state.partitions[partition];
      wrong.pop_back();
      wrong[2].first = {};
      changes.emplace_back(FiltersRecordOf(partition), EncodeSliceFilters(wrong));
    }
    refused(changes);
  }
  SECTION("pages that others use, or that do not exist") {
    const auto address = [&](PageAddress forged) {
      SliceFilters wrong = state.partitions[2];
      wrong[1].first = forged;
      refused({{FiltersRecordOf(2), EncodeSliceFilters(wrong)}});
    };
    const PageAddress right = state.partitions[2][1].first;
    address(state.partitions[2][0].first);
    address(state.partitions[1][1].first);
    address(state.saved->first);
    address(right + 1);
    address(right + (PageAddress::kMostPages - 1));
    address(PageAddress::Of(PageAddress::kMostFile, 0));
    SavedGroup saved = *state.saved;
    for (const PageAddress forged : {right, PageAddress{}, PageAddress::Of(5000, 0)}) {
      saved.first = forged;
      refused({{kSavedGroupRecord, EncodeSavedGroup(saved)}});
    }
    refused({{kSavedGroupRecord, "short"}});
  }
}

TEST_CASE("a damaged saved group is dropped by the next Close") {
  SliceBloomFixture fixture(kSmallBloom);
  for (SegmentId segment = 1; segment <= 5; ++segment) fixture.Add(segment, 50);
  REQUIRE_OK(fixture.bloom->Close());
  const auto names = fixture.env.ListDirectory(kBloomDirectory);
  REQUIRE_OK(names);
  for (const auto& name : *names) {
    if (!name.name.starts_with("00001-")) continue;
    auto file =
        fixture.env.OpenFile(JoinPath(kBloomDirectory, name.name), {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(100, AsBytes(std::string_view("damage"))));
  }
  for (const uint64_t damaged : {1U, 0U}) {
    fixture.Open();
    CHECK(fixture.bloom->stats().damaged_pages == damaged);
    CHECK_FALSE(fixture.bloom->Covers(5));
    CHECK(fixture.Check() == 4);
    REQUIRE_OK(fixture.bloom->Close());
  }
}

TEST_CASE("pages of another kind rule nothing out") {
  // A slicefilter and the saved group have one page each.
  SliceBloomFixture fixture({.partition_bits = 0, .names_per_group = 200, .bits_per_name = 16});
  for (SegmentId segment = 1; segment <= 2; ++segment) fixture.Add(segment, 150);
  fixture.Add(3, 100);
  REQUIRE_OK(fixture.bloom->Close());
  fixture.bloom.reset();
  StateMap manifest(fixture.env, kBloomDirectory);
  REQUIRE(*manifest.Read());
  PageFiles files(fixture.env, {{.directory = kBloomDirectory}, {.directory = kBloomDirectory}},
                  true);
  auto state = DecodeSliceBloomState(manifest.records(), files);
  REQUIRE_OK(state);
  REQUIRE(state->saved);
  std::swap(state->saved->first, state->partitions[0][0].first);
  REQUIRE_OK(manifest.FinishRead());
  REQUIRE_OK(manifest.Commit({{kSavedGroupRecord, EncodeSavedGroup(*state->saved)},
                              {FiltersRecordOf(0), EncodeSliceFilters(state->partitions[0])}}));
  fixture.Open();
  CHECK(fixture.bloom->stats().damaged_pages == 1);  // of the saved group
  CHECK_FALSE(fixture.bloom->Covers(3));
  CHECK(fixture.Check() == 2);
  CHECK(fixture.bloom->stats().damaged_pages > 1);
  // Its columns get all bits.
  fixture.Add(4, 300);
  CHECK(fixture.Check() == 3);
  for (const auto& found : fixture.Find(NamesOf(77, 50))) CHECK(found.size() >= 2);
  REQUIRE_OK(fixture.bloom->Close());
  fixture.Open();
  CHECK(fixture.bloom->stats().damaged_pages == 0);
  CHECK(fixture.Check() == 3);
}

TEST_CASE("a missing page file is refused, and so are page files without a manifest") {
  SliceBloomFixture fixture(kSmallBloom);
  for (SegmentId segment = 1; segment <= 9; ++segment) fixture.Add(segment, 50);
  REQUIRE_OK(fixture.bloom->Close());
  fixture.bloom.reset();
  const auto names = fixture.env.ListDirectory(kBloomDirectory);
  REQUIRE_OK(names);
  for (const auto& name : *names) {
    const auto env = fixture.env.Fork();
    REQUIRE_OK(env->RemoveFile(JoinPath(kBloomDirectory, name.name)));
    INFO(name.name);
    REQUIRE_CODE(SliceBloom::Open(*env, fixture.options), kCorruption);
  }
}

}  // namespace siltfs::testing
