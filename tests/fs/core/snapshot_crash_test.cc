// Power cuts at every step of what changes many records of snapshots: the receipt of a snapshot,
// the removal of a received one, and a rollback.
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>

#include "fs/interface/store_maintenance.h"
#include "fs/open/make_store.h"
#include "store/env/sim_env.h"
#include "tests/fs/core/snapshot_history.h"
#include "tests/fs/core/snapshot_streams.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"
#include "tests/support/memory_segments.h"

namespace siltfs::testing {
namespace {

const std::string kPath = "/store";

std::unique_ptr<FileSystem> Open(SimEnv& env) {
  FileSystemOptions options;
  options.store = kPath;
  options.segments = SealedSegments(env);
  options.commit_interval = std::chrono::hours(1);
  auto opened = FileSystem::Open(env, options);
  REQUIRE_OK(opened);
  return std::move(opened).value();
}

// Two snapshots of a store, and the streams of both.
struct Source {
  Source() {
    FileSystem& fs = *f.fs;
    const InodeNumber dir = MakeDir(fs, kRootInode, "dir");
    const InodeNumber linked = MakeFile(fs, dir, "linked");
    REQUIRE_OK(fs.Link(linked, kRootInode, "link"));
    fs.Forget(linked, 1);
    f.Write("changed", "old");
    f.Write("removed", "1");
    WriteFile(fs, "large", RandomBytes(1, 900'000));
    f.Create("first");
    first = ReadState(f, std::nullopt);
    f.Append(f.At("changed"), "new");
    f.Append(f.At("large"), std::string(50'000, 'x'));
    REQUIRE_OK(fs.Unlink(kRootInode, "removed"));
    REQUIRE_OK(fs.Rename(kRootInode, "link", dir, "moved", RenameMode::kReplace));
    MakeFile(fs, MakeDir(fs, dir, "sub"), "new");
    f.Create("second");
    second = ReadState(f, std::nullopt);
    full = Send(fs, {.snapshot = "first"});
    increment = Send(fs, {.snapshot = "second", .base = "first"});
  }

  SnapshotFixture f;
  Paths first;
  Paths second;
  std::string full;
  std::string increment;
};

struct Target {
  Target() {
    MakeStoreOptions options;
    options.path = kPath;
    options.index_memory = 1u << 20;
    ForgetSegments(env, kPath);
    REQUIRE_OK(MakeStore(env, options));
  }
  // Changes the store, and closes it.
  void Prepare(const std::function<void(FileSystem&)>& change) {
    const auto fs = Open(env);
    change(*fs);
    REQUIRE_OK(fs->Close());
  }

  SimEnv env;
};

bool Has(FileSystem& fs, std::string_view name) { return fs.snapshots().Find(name).ok(); }

// Cuts the power at the steps of `change`. After each cut, `examine` gets the store, opened.
void CutEverywhere(Target& target, const std::function<void(FileSystem&)>& change,
                   const std::function<void(FileSystem&)>& examine) {
  auto fs = Open(target.env);
  const auto before = ForkAndTraceDevice(target.env);
  change(*fs);
  const SimTrace trace = target.env.TakeTrace();
  fs.reset();
  uint64_t cuts = 0;
  for (const auto unsynced : {CrashPolicy::Unsynced::kDrop, CrashPolicy::Unsynced::kKeep,
                              CrashPolicy::Unsynced::kGarble}) {
    const auto device = ForkDevice(*before);
    const uint64_t first = FirstCall(static_cast<uint64_t>(unsynced)) - 1;
    for (size_t cut = 0; cut <= trace.size(); ++cut) {
      INFO(fmt::format("cut before record {} of {}: {}", cut, trace.size(),
                       cut < trace.size() ? Describe(trace[cut]) : "the end"));
      if (cut % CallStep() == first || cut == trace.size()) {
        const auto left = ForkDevice(*device);
        left->PowerCut({.unsynced = unsynced, .seed = cut, .names_in_any_order = cut % 2 == 0});
        // A check before the next opening meets what the cut has left.
        RequireSound(*left, kPath);
        {
          const auto opened = Open(*left);
          examine(*opened);
          REQUIRE_OK(opened->Close());
        }
        RequireSound(*left, kPath);
        ++cuts;
      }
      if (cut < trace.size()) REQUIRE_OK(ReplayRecord(*device, trace[cut]));
    }
  }
  CHECK(cuts > 3);
}

TEST_CASE("a power cut while a snapshot is received leaves no snapshot or the whole one") {
  Source source;
  const bool incremental = GENERATE(false, true);
  CAPTURE(incremental);
  Target target;
  const std::string& stream = incremental ? source.increment : source.full;
  const std::string name = incremental ? "second" : "first";
  const Paths& wanted = incremental ? source.second : source.first;
  target.Prepare([&](FileSystem& fs) {
    WriteFile(fs, "live", RandomBytes(5, 10'000));
    if (incremental) REQUIRE_OK(Receive(fs, source.full));
  });
  CutEverywhere(
      target, [&](FileSystem& fs) { REQUIRE_OK(Receive(fs, stream)); },
      [&](FileSystem& fs) {
        if (incremental) RequireSame(ReadState(fs, "first"), source.first);
        const auto unfinished = fs.transfers().Unfinished();
        if (Has(fs, name)) {
          REQUIRE(unfinished.empty());
        } else if (!unfinished.empty() && unfinished.front().token.size() % 2 == 0) {
          const SendRequest request{
              .snapshot = name,
              .base = incremental ? std::optional<std::string>("first") : std::nullopt,
              .resume = unfinished.front().token};
          REQUIRE_OK(Receive(fs, Send(*source.f.fs, request)));
        } else {
          REQUIRE_OK(Receive(fs, stream));
        }
        REQUIRE_OK(fs.maintenance().CollectGarbage(false));
        RequireSame(ReadState(fs, name), wanted);
        REQUIRE(ReadState(fs, std::nullopt).size() == 1);
      });
}

TEST_CASE("a received snapshot without records does not survive without the changes before it") {
  SnapshotFixture source;
  source.Write("file", "content");
  source.Create("first");
  source.Create("same");
  const std::string full = Send(*source.fs, {.snapshot = "first"});
  const std::string nothing = Send(*source.fs, {.snapshot = "same", .base = "first"});
  Target target;
  target.Prepare([&](FileSystem& fs) { REQUIRE_OK(Receive(fs, full)); });
  CutEverywhere(
      target,
      [&](FileSystem& fs) {
        MakeFile(fs, kRootInode, "before");
        const auto received = Receive(fs, nothing);
        REQUIRE_OK(received);
        REQUIRE(received->records == 0);
      },
      [&](FileSystem& fs) {
        if (!Has(fs, "same")) return;
        REQUIRE(ReadState(fs, std::nullopt).contains("/before"));
        RequireSame(ReadState(fs, "same"), ReadState(fs, "first"));
      });
}

TEST_CASE("a power cut while the newest received snapshot is removed leaves the older one") {
  Source source;
  Target target;
  target.Prepare([&](FileSystem& fs) {
    REQUIRE_OK(Receive(fs, source.full));
    REQUIRE_OK(Receive(fs, source.increment));
  });
  CutEverywhere(
      target,
      [&](FileSystem& fs) {
        REQUIRE_OK(fs.snapshots().Remove("second"));
        REQUIRE_OK(fs.snapshots().AwaitRemovals());
      },
      [&](FileSystem& fs) {
        RequireSame(ReadState(fs, "first"), source.first);
        if (!Has(fs, "second")) {
          // Another stream is applied to the restored head.
          REQUIRE_OK(fs.snapshots().AwaitRemovals());
          REQUIRE_OK(Receive(fs, source.increment));
        }
        RequireSame(ReadState(fs, "second"), source.second);
      });
}

TEST_CASE("a power cut during a rollback leaves one of the two states") {
  Target target;
  Paths old_state;
  Paths new_state;
  target.Prepare([&](FileSystem& fs) {
    const InodeNumber dir = MakeDir(fs, kRootInode, "dir");
    WriteFile(fs, "changed", AsBytes("old"));
    WriteFile(fs, "removed", RandomBytes(1, 20'000));
    for (int i = 0; i < 30; ++i) MakeFile(fs, dir, fmt::format("f{}", i));
    REQUIRE_OK(fs.snapshots().Create("old"));
    old_state = ReadState(fs, std::nullopt);
    WriteFile(fs, "changed", AsBytes("new"));
    REQUIRE_OK(fs.Unlink(kRootInode, "removed"));
    for (int i = 0; i < 20; ++i) REQUIRE_OK(fs.Unlink(dir, fmt::format("f{}", i)));
    MakeFile(fs, MakeDir(fs, dir, "sub"), "added");
    new_state = ReadState(fs, std::nullopt);
  });
  CutEverywhere(
      target, [&](FileSystem& fs) { REQUIRE_OK(fs.snapshots().RollBack("old", "kept")); },
      [&](FileSystem& fs) {
        const Paths state = ReadState(fs, std::nullopt);
        const bool rolled_back = state.contains("/removed");
        RequireSame(state, rolled_back ? old_state : new_state);
        RequireSame(ReadState(fs, "old"), old_state);
        if (rolled_back) REQUIRE(Has(fs, "kept"));
        if (Has(fs, "kept")) RequireSame(ReadState(fs, "kept"), new_state);
      });
}

}  // namespace
}  // namespace siltfs::testing
