// SliceLSH: after power cuts, failing calls, damage and forged files, it gives no wrong candidates,
// and goes on.
#include <limits>
#include <set>
#include <utility>

#include "index/flash/page_address.h"
#include "index/flash/state_map.h"
#include "index/slice_lsh/slice_lsh_state.h"
#include "slice_lsh_fixture.h"
#include "store/base/coding.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kChunks = 700;

SliceLshShape TinyShape(unsigned directories = 0) {
  return {.tables = 2, .growth = 2, .most_levels = 3, .directories = directories};
}

// Adds chunks, flushes after some of them, and opens the files again after half of them. Ends at
// the first error. Returns how many chunks are durable.
uint64_t Live(SliceLshFixture& fixture) {
  uint64_t durable = 0;
  for (uint64_t chunk = 0; chunk < kChunks; ++chunk) {
    if (!fixture.lsh->Add(FeaturesOf(chunk, 2), PlaceOf(chunk)).ok()) return durable;
    if (chunk % 90 == 50) {
      if (!fixture.lsh->Flush().ok()) return durable;
      durable = chunk + 1;
    }
    if (chunk == kChunks / 2) {
      if (!fixture.lsh->Close().ok()) return durable;
      durable = chunk + 1;
      auto opened = SliceLsh::Open(fixture.env, fixture.options);
      if (!opened.ok()) {
        opened.status().IgnoreError("the power may have been cut");
        return durable;
      }
      fixture.lsh = std::move(*opened);
    }
  }
  return fixture.lsh->Close().ok() ? kChunks : durable;
}

uint64_t CallsOfLive(const SliceLshShape& shape) {
  SliceLshFixture fixture(shape);
  const uint64_t first = fixture.env.Calls(SimCall::kMutating);
  REQUIRE(Live(fixture) == kChunks);
  return fixture.env.Calls(SimCall::kMutating) - first;
}

// The files go on: all chunks are added, those that are there for a second time.
void GoOn(SliceLshFixture& fixture) {
  fixture.AddAll(0, kChunks + 100);
  REQUIRE(fixture.CountFound(0, kChunks + 100) == kChunks + 100);
  REQUIRE_OK(fixture.lsh->Close());
  REQUIRE(fixture.FileBytes(".pages") <= fixture.lsh->stats().flash_bytes);
  fixture.Open();
  REQUIRE(fixture.CountFound(0, kChunks + 100) == kChunks + 100);
  REQUIRE(fixture.Faults() == 0);
}

// Every candidate of a chunk is its place.
void CheckCandidates(SliceLshFixture& fixture) {
  for (uint64_t chunk = 0; chunk < kChunks; ++chunk) {
    const auto found = fixture.Find(FeaturesOf(chunk, 2));
    for (const auto& candidate : found[0]) {
      REQUIRE(candidate.place == PlaceOf(chunk));
    }
  }
}

std::vector<std::string> FilesIn(Env& env, const std::string& suffix = "") {
  std::vector<std::string> paths;
  const auto names = env.ListDirectory(kLshDirectory);
  REQUIRE_OK(names);
  for (const auto& name : *names) {
    if (name.type != FileType::kRegular || !name.name.ends_with(suffix)) continue;
    paths.push_back(JoinPath(kLshDirectory, name.name));
  }
  return paths;
}

void Overwrite(Env& env, const std::string& path, uint64_t offset, std::string_view bytes) {
  auto file = env.OpenFile(path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->Write(offset, AsBytes(bytes)));
  REQUIRE_OK((*file)->Sync());
}

}  // namespace

TEST_CASE("after a power cut at any call, chunks that were flushed are found") {
  const SliceLshShape shape = TinyShape(GENERATE(0U, 2U));
  const uint64_t calls = CallsOfLive(shape);
  const auto unsynced = GENERATE(CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                                 CrashPolicy::Unsynced::kPrefix, CrashPolicy::Unsynced::kSubset);
  for (uint64_t nth = FirstCall(static_cast<uint64_t>(unsynced)); nth <= calls; nth += CallStep()) {
    INFO("call " << nth << " of " << calls);
    SliceLshFixture fixture(shape);
    fixture.env.CutAtCall(nth);
    const uint64_t durable = Live(fixture);
    fixture.lsh.reset();
    fixture.env.Reboot({.unsynced = unsynced, .seed = nth});
    fixture.Open();
    REQUIRE(fixture.CountFound(0, durable) == durable);
    REQUIRE(fixture.Faults() == 0);
    REQUIRE(fixture.lsh->stats().damaged_pages == 0);
    if (shape.directories == 0) {
      REQUIRE(fixture.FileBytes(".pages") == fixture.lsh->stats().flash_bytes);
    }
    GoOn(fixture);
  }
}

TEST_CASE("after a power cut while a SliceLSH is made or renewed, an empty one is made") {
  const bool renewed = GENERATE(false, true);
  for (uint64_t nth = 1; nth < 40; ++nth) {
    SliceLshFixture fixture(TinyShape(2));
    fixture.options.renew_if_damaged = true;
    if (renewed) {
      fixture.AddAll(0, 200);
      REQUIRE_OK(fixture.lsh->Close());
      Overwrite(fixture.env, JoinPath(kLshDirectory, "manifest"), 20, "damage");
    } else {
      for (const std::string& path : FilesIn(fixture.env)) {
        REQUIRE_OK(fixture.env.RemoveFile(path));
      }
    }
    fixture.lsh.reset();
    fixture.env.CutAtCall(nth);
    SliceLsh::Open(fixture.env, fixture.options)
        .status()
        .IgnoreError("the power may have been cut");
    fixture.env.Reboot({.unsynced = CrashPolicy::Unsynced::kPrefix, .seed = nth});
    fixture.Open();
    CHECK(fixture.lsh->stats().entries == 0);
    GoOn(fixture);
  }
}

TEST_CASE("after a failing call, chunks are found, also after another opening") {
  const StatusCode code = GENERATE(StatusCode::kIoError, StatusCode::kNoSpace);
  const SliceLshShape shape = TinyShape();
  const uint64_t calls = CallsOfLive(shape);
  for (uint64_t nth = FirstCall(0); nth <= calls; nth += CallStep()) {
    INFO("call " << nth << " of " << calls);
    SliceLshFixture fixture(shape);
    fixture.env.FailCall({.calls = SimCall::kMutating, .nth = nth, .code = code});
    const uint64_t durable = Live(fixture);
    fixture.env.ClearFaults();
    REQUIRE(fixture.CountFound(0, durable) == durable);
    CheckCandidates(fixture);
    fixture.lsh.reset();
    fixture.env.PowerCut({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = nth});
    fixture.Open();
    REQUIRE(fixture.CountFound(0, durable) == durable);
    GoOn(fixture);
  }
}

TEST_CASE("after an error of the device, calls of SliceLSH that write fail until it is opened") {
  SliceLshFixture fixture(TinyShape());
  fixture.AddAll(0, 50);
  REQUIRE_OK(fixture.lsh->Flush());
  fixture.AddAll(50, 60);
  fixture.env.FailCall({.calls = SimCall::kSync});
  REQUIRE_CODE(fixture.lsh->Flush(), kIoError);
  REQUIRE_CODE(fixture.lsh->Flush(), kIoError);
  REQUIRE_CODE(fixture.lsh->Add(FeaturesOf(60, 2), PlaceOf(60)), kIoError);
  REQUIRE_CODE(fixture.lsh->Close(), kIoError);
  CHECK(fixture.CountFound(0, 60) == 60);
  fixture.Open();
  CHECK(fixture.CountFound(0, 50) == 50);
}

TEST_CASE("a merge that is repeated after kNoSpace loses nothing and repeats nothing") {
  const bool by_add = GENERATE(false, true);
  for (uint64_t nth = 1, failed = 1; failed > 0; ++nth) {
    INFO("call " << nth);
    SliceLshFixture fixture(TinyShape());
    fixture.AddAll(0, 102);  // that is the capacity of the buffer
    REQUIRE_OK(fixture.lsh->Flush());
    fixture.AddAll(102, 204);
    const auto merge = [&] {
      return by_add ? fixture.lsh->Add(FeaturesOf(204, 2), PlaceOf(204)) : fixture.lsh->Flush();
    };
    fixture.env.FailCall({.calls = SimCall::kWrite | SimCall::kCreate,
                          .nth = nth,
                          .code = StatusCode::kNoSpace,
                          .sticky = true});
    const Status status = merge();
    failed = status.ok() ? 0 : 1;
    fixture.env.ClearFaults();
    if (failed > 0) {
      REQUIRE_CODE(status, kNoSpace);
      REQUIRE(fixture.CountFound(0, 204) == 204);
      REQUIRE_OK(merge());
    }
    CHECK(fixture.lsh->stats().entries == 2 * 204);
    CHECK(fixture.CountFound(0, 204) == 204);
    CHECK(fixture.FileBytes(".pages") == fixture.lsh->stats().flash_bytes);
    CHECK(fixture.lsh->stats().pages * 4096 == fixture.lsh->stats().flash_bytes);
    fixture.lsh.reset();
    fixture.env.PowerCut();
    fixture.Open();
    CHECK(fixture.CountFound(0, 204) == 204);
  }
}

TEST_CASE("a chunk that is added after a merge has failed is in all tables") {
  for (uint64_t nth = 1, failed = 1; failed > 0; ++nth) {
    INFO("call " << nth);
    SliceLshFixture fixture(TinyShape());
    fixture.AddAll(0, 50);
    fixture.env.FailCall({.calls = SimCall::kWrite | SimCall::kCreate,
                          .nth = nth,
                          .code = StatusCode::kNoSpace,
                          .sticky = true});
    const Status status = fixture.lsh->Flush();
    failed = status.ok() ? 0 : 1;
    status.IgnoreError("the device is full");
    fixture.env.ClearFaults();
    fixture.Add(50);
    REQUIRE_OK(fixture.lsh->Close());
    fixture.Open();
    CHECK(fixture.CountFound(0, 51) == 51);
  }
}

TEST_CASE("a damaged page costs only its own entries, and is counted") {
  SliceLshFixture fixture({.tables = 1, .most_levels = 1}, 1 << 16);
  fixture.AddAll(0, 2000);
  REQUIRE_OK(fixture.lsh->Close());
  const auto paths = FilesIn(fixture.env, ".pages");
  REQUIRE(paths.size() == 1);
  const uint64_t pages = fixture.lsh->stats().pages;
  REQUIRE(pages == 7);
  for (uint64_t page = 0; page < pages; ++page) {
    const auto env = fixture.env.Fork();
    Overwrite(*env, paths[0], page * 4096 + 100, "damage");
    auto opened = SliceLsh::Open(*env, fixture.options);
    REQUIRE_OK(opened);
    SliceLsh& lsh = **opened;
    const auto count = [&] {
      uint64_t found = 0;
      for (uint64_t chunk = 0; chunk < 2000; ++chunk) {
        std::vector<std::vector<SliceLshCandidate>> candidates;
        REQUIRE_OK(lsh.Find(FeaturesOf(chunk, 1), candidates));
        for (const auto& one : candidates[0]) REQUIRE(one.place == PlaceOf(chunk));
        found += candidates[0].size();
      }
      return found;
    };
    const uint64_t found = count();
    CHECK(found > 2000 - 340);
    CHECK(found < 2000 - 200);
    CHECK(lsh.stats().damaged_pages == 2000 - found);  // each lookup reads a page
    size_t faults = 0;
    REQUIRE_OK(lsh.Verify([&](const std::string& text) {
      CHECK(text.find("is damaged") != std::string::npos);
      ++faults;
    }));
    CHECK(faults == 1);
    // The next merge leaves the page out.
    const uint64_t before = lsh.stats().damaged_pages;
    REQUIRE_OK(lsh.Add(FeaturesOf(5000, 1), PlaceOf(5000)));
    REQUIRE_OK(lsh.Flush());
    CHECK(lsh.stats().damaged_pages == before + 1);
    CHECK(lsh.stats().entries == found + 1);
    CHECK(count() == found);
    CHECK(lsh.stats().damaged_pages == before + 1);
    REQUIRE_OK(lsh.Verify([&](const std::string& text) { FAIL(text); }));
  }
}

TEST_CASE("an unreadable page fails the lookup, and leaves the other candidates") {
  SliceLshFixture fixture;
  fixture.AddAll(0, 50);
  REQUIRE_OK(fixture.lsh->Flush());
  fixture.env.FailCall({.calls = SimCall::kRead, .nth = 2});
  std::vector<std::vector<SliceLshCandidate>> candidates;
  REQUIRE_CODE(fixture.lsh->Find(FeaturesOf(7, 3), candidates), kIoError);
  REQUIRE(candidates.size() == 1);
  CHECK(candidates[0] == std::vector<SliceLshCandidate>{{.place = PlaceOf(7), .tables = 2}});
  CHECK(fixture.lsh->stats().damaged_pages == 0);
  fixture.env.ClearFaults();
  CHECK(fixture.CountFound(0, 50) == 50);
}

TEST_CASE("damaged, forged and missing files are refused, or made again if that is wanted") {
  SliceLshFixture fixture(TinyShape());
  fixture.AddAll(0, 600);
  REQUIRE_OK(fixture.lsh->Close());
  fixture.lsh.reset();
  const auto refused = [&](SimEnv& env) {
    REQUIRE_CODE(SliceLsh::Open(env, fixture.options), kCorruption);
    SliceLshOptions options = fixture.options;
    options.read_only = true;
    options.renew_if_damaged = true;
    REQUIRE_CODE(SliceLsh::Open(env, options), kCorruption);
    options.read_only = false;
    auto renewed = SliceLsh::Open(env, options);
    REQUIRE_OK(renewed);
    CHECK((*renewed)->stats().renewed);
    CHECK((*renewed)->stats().entries == 0);
    CHECK((*renewed)->stats().flash_bytes == 0);
    REQUIRE_OK((*renewed)->Add(FeaturesOf(1, 2), PlaceOf(1)));
    REQUIRE_OK((*renewed)->Close());
    auto again = SliceLsh::Open(env, fixture.options);
    REQUIRE_OK(again);
    CHECK_FALSE((*again)->stats().renewed);
    CHECK((*again)->stats().entries == 2);
  };
  SECTION("a missing file") {
    for (const std::string& path : FilesIn(fixture.env)) {
      INFO(path);
      const auto env = fixture.env.Fork();
      REQUIRE_OK(env->RemoveFile(path));
      refused(*env);
    }
  }
  SECTION("a file that is too short") {
    for (const std::string& path : FilesIn(fixture.env, ".pages")) {
      const auto env = fixture.env.Fork();
      auto file = env->OpenFile(path, {.mode = OpenMode::kReadWrite});
      REQUIRE_OK(file);
      REQUIRE_OK((*file)->Truncate(100));
      refused(*env);
    }
  }
  SECTION("damage anywhere in the manifest") {
    const auto info = fixture.env.GetFileInfo(JoinPath(kLshDirectory, "manifest"));
    REQUIRE_OK(info);
    for (uint64_t offset = 0; offset < info->size; offset += 7) {
      const auto env = fixture.env.Fork();
      Overwrite(*env, JoinPath(kLshDirectory, "manifest"), offset, "\xA5");
      auto opened = SliceLsh::Open(*env, fixture.options);
      if (opened.status().Is(StatusCode::kNeedsNewer)) continue;
      REQUIRE_CODE(opened, kCorruption);
    }
    const auto env = fixture.env.Fork();
    Overwrite(*env, JoinPath(kLshDirectory, "manifest"), 30, "damage");
    refused(*env);
  }
}

TEST_CASE("a forged manifest of a SliceLSH is refused") {
  SliceLshFixture fixture(TinyShape());
  fixture.AddAll(0, 600);
  REQUIRE_OK(fixture.lsh->Close());
  fixture.lsh.reset();
  StateMap manifest(fixture.env, kLshDirectory);
  REQUIRE(*manifest.Read());
  PageFiles files(fixture.env, std::vector<PageLogSpec>(9, {.directory = kLshDirectory}), true);
  const auto state = DecodeSliceLshState(manifest.records(), files);
  REQUIRE_OK(state);
  REQUIRE(state->tables[0].size() >= 2);
  const auto open = [&](const StateMap::Changes& changes) {
    const auto env = fixture.env.Fork();
    StateMap forged(*env, kLshDirectory);
    REQUIRE(*forged.Read());
    REQUIRE_OK(forged.FinishRead());
    REQUIRE_OK(forged.Commit(changes));
    return SliceLsh::Open(*env, fixture.options).status();
  };
  REQUIRE_OK(open({}));
  SECTION("headers") {
    const auto header = [&](const std::function<void(SliceLshShape&)>& change) {
      SliceLshHeader forged = state->header;
      change(forged.shape);
      return open({{kSliceLshHeaderRecord, EncodeSliceLshHeader(forged)}});
    };
    REQUIRE_OK(header([](SliceLshShape& shape) { shape.growth = 9; }));
    CHECK(header([](auto& shape) { shape.tables = 0; }).Is(StatusCode::kCorruption));
    CHECK(header([](auto& shape) { shape.tables = 1; }).Is(StatusCode::kCorruption));
    CHECK(header([](auto& shape) { shape.tables = 3; }).Is(StatusCode::kCorruption));
    CHECK(header([](auto& shape) { shape.tables = 200; }).Is(StatusCode::kCorruption));
    CHECK(header([](auto& shape) { shape.growth = 0; }).Is(StatusCode::kCorruption));
    CHECK(header([](auto& shape) { shape.most_levels = 1; }).Is(StatusCode::kCorruption));
    CHECK(header([](auto& shape) { shape.most_entries = 0; }).Is(StatusCode::kCorruption));
    CHECK(header([](auto& shape) { shape.directories = 9; }).Is(StatusCode::kCorruption));
    const std::string right = EncodeSliceLshHeader(state->header);
    CHECK(open({{kSliceLshHeaderRecord, right + "x"}}).Is(StatusCode::kCorruption));
    CHECK(open({{kSliceLshHeaderRecord, ""}}).Is(StatusCode::kCorruption));
    CHECK(open({{kSliceLshHeaderRecord, std::nullopt}}).Is(StatusCode::kCorruption));
    std::string other = right;
    other[3] = 'X';
    CHECK(open({{kSliceLshHeaderRecord, other}}).Is(StatusCode::kCorruption));
  }
  SECTION("slicetables") {
    const auto table = [&](const std::function<void(LshTable&)>& change) {
      LshTables forged = state->tables[0];
      change(forged[1]);
      return open({{LshTablesRecordOf(0), EncodeLshTables(forged)}});
    };
    const LshTable other = state->tables[1][0];
    REQUIRE_OK(table([](LshTable& t) { --t.entries; }));
    CHECK(table([](LshTable& t) { t.entries = 0; }).Is(StatusCode::kCorruption));
    CHECK(table([](LshTable& t) {
            t.entries = uint64_t{t.pages} * 340 + 1;
          }).Is(StatusCode::kCorruption));
    CHECK(table([](LshTable& t) { t.pages = 0; }).Is(StatusCode::kCorruption));
    CHECK(table([](LshTable& t) { ++t.pages; }).Is(StatusCode::kCorruption));
    CHECK(table([](LshTable& t) { t.pages = UINT32_MAX; }).Is(StatusCode::kCorruption));
    CHECK(table([](LshTable& t) { t.pages = 1U << 24; }).Is(StatusCode::kCorruption));
    CHECK(table([](LshTable& t) { t.first = t.first + 1; }).Is(StatusCode::kCorruption));
    CHECK(table([](LshTable& t) { t.first = {}; }).Is(StatusCode::kCorruption));
    CHECK(
        table([](LshTable& t) { t.first = PageAddress::Of(5000, 0); }).Is(StatusCode::kCorruption));
    CHECK(table([&](LshTable& t) { t = other; }).Is(StatusCode::kCorruption));
    LshTables many(4, state->tables[0][0]);
    CHECK(open({{LshTablesRecordOf(0), EncodeLshTables(many)}}).Is(StatusCode::kCorruption));
    const std::string right = EncodeLshTables(state->tables[0]);
    CHECK(open({{LshTablesRecordOf(0), right + "x"}}).Is(StatusCode::kCorruption));
    CHECK(open({{LshTablesRecordOf(0), std::nullopt}}).Is(StatusCode::kCorruption));
    CHECK(open({{LshTablesRecordOf(2), right}}).Is(StatusCode::kCorruption));
    CHECK(open({{uint64_t{1} << 61, right}}).Is(StatusCode::kCorruption));
    CHECK(open({{SliceLshFileRecordOf(0), right}}).Is(StatusCode::kCorruption));
  }
}

TEST_CASE("pages of other keys, and of another kind, give no candidates") {
  SliceLshFixture fixture({.tables = 1, .most_levels = 1}, 1 << 16);
  fixture.AddAll(0, 2000);
  REQUIRE_OK(fixture.lsh->Close());
  fixture.lsh.reset();
  const auto paths = FilesIn(fixture.env, ".pages");
  REQUIRE(paths.size() == 1);
  StateMap manifest(fixture.env, kLshDirectory);
  REQUIRE(*manifest.Read());
  PageFiles files(fixture.env, std::vector<PageLogSpec>(9, {.directory = kLshDirectory}), true);
  auto state = DecodeSliceLshState(manifest.records(), files);
  REQUIRE_OK(state);
  REQUIRE_OK(manifest.FinishRead());
  // With fewer pages, most entries are in the slices of other keys.
  LshTable& table = state->tables[0][0];
  table.pages = 5;
  table.entries = 5 * 340;
  REQUIRE_OK(manifest.Commit({{LshTablesRecordOf(0), EncodeLshTables(state->tables[0])}}));
  fixture.Open();
  CHECK(fixture.Faults() == 2);  // the places, and the number of entries
  CHECK(fixture.CountFound(0, 2000) < 1000);
  CHECK(fixture.lsh->stats().damaged_pages == 0);
  fixture.Add(3000);
  REQUIRE_OK(fixture.lsh->Flush());
  CHECK(fixture.lsh->stats().damaged_pages >= 4);
  CHECK(fixture.Faults() == 0);
  CHECK(fixture.CountFound(3000, 3001) == 1);
}

TEST_CASE("a slicetable with more entries than its manifest says is merged in bounded memory") {
  // All entries would come into one slice.
  SliceLshFixture fixture({.tables = 1, .most_levels = 1}, 1 << 18);
  fixture.AddAll(0, 10'000);
  REQUIRE_OK(fixture.lsh->Close());
  fixture.lsh.reset();
  StateMap manifest(fixture.env, kLshDirectory);
  REQUIRE(*manifest.Read());
  PageFiles files(fixture.env, std::vector<PageLogSpec>(9, {.directory = kLshDirectory}), true);
  auto state = DecodeSliceLshState(manifest.records(), files);
  REQUIRE_OK(state);
  REQUIRE_OK(manifest.FinishRead());
  LshTable& table = state->tables[0][0];
  REQUIRE(table.pages == 34);
  table.entries = 1;
  REQUIRE_OK(manifest.Commit({{LshTablesRecordOf(0), EncodeLshTables(state->tables[0])}}));
  fixture.Open();
  fixture.Add(20'000);
  REQUIRE_OK(fixture.lsh->Flush());
  CHECK(fixture.lsh->stats().pages == 2);
  CHECK(fixture.lsh->stats().entries == 680);
  CHECK(fixture.lsh->stats().overwritten_entries > 9000);
  CHECK(fixture.CountFound(20'000, 20'001) == 1);
  CHECK(fixture.Faults() == 0);
}

}  // namespace siltfs::testing
