// The space of paths, compared with the sets of chunks that files and snapshots refer to.
#include "fs/space/path_usage.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "fs/space/report_tree.h"
#include "tests/fs/space/space_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using Name = SpaceTree::Name;

constexpr size_t kLittleMemory = 4096;

UsageOptions Options(size_t memory_bytes = kLittleMemory) {
  UsageOptions options;
  options.spill_directory = kSpill;
  options.memory_bytes = memory_bytes;
  options.minimum_free_bytes = 0;
  return options;
}

Result<UsageReport> TryMeasure(SpaceTree& tree, const UsageRequest& request,
                               const UsageOptions& options = Options()) {
  SimEnv env;
  return MeasureUsage(env, *tree.Snapshot(), tree.nodes(), tree.snapshots(), request, options);
}

UsageReport Measure(SpaceTree& tree, const std::vector<UsagePath>& paths, uint32_t depth = 0,
                    const UsageOptions& options = Options()) {
  UsageRequest request{.scope = {}, .depth = depth};
  request.scope.paths = paths;
  auto report = TryMeasure(tree, request, options);
  REQUIRE_OK(report);
  return *report;
}

void RequireSame(const SpaceUsage& measured, const SpaceUsage& expected) {
  REQUIRE(measured.files == expected.files);
  REQUIRE(measured.directories == expected.directories);
  REQUIRE(measured.logical_bytes == expected.logical_bytes);
  REQUIRE(measured.exclusive_bytes == expected.exclusive_bytes);
  REQUIRE(measured.shared_bytes == expected.shared_bytes);
  REQUIRE(measured.snapshot_bytes == expected.snapshot_bytes);
  REQUIRE(measured.recipe_bytes == expected.recipe_bytes);
  REQUIRE(measured.pending_bytes == expected.pending_bytes);
}

// The paths below no other one of them, each once.
std::vector<UsagePath> Outermost(const SpaceTree& tree, const std::vector<UsagePath>& paths) {
  std::vector<UsagePath> outermost;
  for (size_t i = 0; i < paths.size(); ++i) {
    bool below = false;
    for (size_t k = 0; k < paths.size(); ++k) {
      if (paths[i] == paths[k]) {
        below = below || k < i;
        continue;
      }
      below = below || tree.NamesOf(paths[k]).contains({paths[i].directory, paths[i].name});
    }
    if (!below) outermost.push_back(paths[i]);
  }
  return outermost;
}

uint64_t SharedAmong(const SpaceTree& tree, const std::vector<UsagePath>& outermost) {
  Chunks seen;
  Chunks again;
  for (const UsagePath& path : outermost) {
    for (const auto& [name, length] : tree.Referenced(tree.NamesOf(path))) {
      if (!seen.emplace(name, length).second) again[name] = length;
    }
  }
  uint64_t bytes = 0;
  for (const auto& [name, length] : again) {
    if (!tree.IsNode(name)) bytes += length;
  }
  return bytes;
}

// Requires what the sets of chunks say about these paths and the directories below them.
void RequireReport(SpaceTree& tree, const std::vector<UsagePath>& paths, uint32_t depth,
                   const UsageReport& report) {
  std::set<Name> all;
  size_t at = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::set<Name> names = tree.NamesOf(paths[i]);
    all.insert(names.begin(), names.end());
    REQUIRE(at < report.entries.size());
    INFO("path " << i << ", \"" << paths[i].name << "\" in " << paths[i].directory);
    REQUIRE(report.entries[at].path == i);
    REQUIRE(report.entries[at].below.empty());
    RequireSame(report.entries[at++].usage, tree.Expected(names));
    if (paths.size() > 1) continue;  // directories below may be those of another path
    for (const auto& [below, place] : tree.DirectoriesBelow(paths[i], depth)) {
      INFO("below it, " << below);
      REQUIRE(at < report.entries.size());
      REQUIRE(report.entries[at].below == below);
      RequireSame(report.entries[at++].usage, tree.Expected(tree.NamesOf(place)));
    }
  }
  if (paths.size() == 1) REQUIRE(report.entries.size() == at);
  RequireSame(report.total, tree.Expected(all));
  REQUIRE(report.shared_among_bytes == SharedAmong(tree, Outermost(tree, paths)));
}

std::vector<UsagePath> AnyPaths(SpaceTree& tree, size_t count) {
  std::vector<UsagePath> paths;
  for (size_t i = 0; i < count; ++i) {
    auto name = tree.names().begin();
    std::advance(name, static_cast<ptrdiff_t>(tree.random().Below(tree.names().size())));
    paths.push_back({.directory = name->first.directory, .name = name->first.name});
  }
  return paths;
}

}  // namespace

TEST_CASE("the bytes of any paths are those of the sets of chunks, in any tree") {
  const uint64_t seed = GENERATE(range(uint64_t{1}, uint64_t{9}));
  SpaceTree tree(seed);
  SpaceUsage seen;
  for (int step = 1; step <= 90; ++step) {
    tree.Step();
    if (step % 15 != 0) continue;
    for (int round = 0; round < 6; ++round) {
      INFO("seed " << seed << ", step " << step << ", round " << round);
      const auto paths = AnyPaths(tree, 1 + tree.random().Below(4));
      const auto depth = static_cast<uint32_t>(tree.random().Below(4));
      // With little memory, names and references are sorted in files.
      const size_t memory = round % 2 == 0 ? kLittleMemory : 8u << 20;
      const UsageReport report =
          Measure(tree, paths, paths.size() > 1 ? 0 : depth, Options(memory));
      RequireReport(tree, paths, depth, report);
      seen.exclusive_bytes += report.total.exclusive_bytes;
      seen.shared_bytes += report.total.shared_bytes;
      seen.snapshot_bytes += report.total.snapshot_bytes;
      seen.recipe_bytes += report.total.recipe_bytes;
      seen.pending_bytes += report.total.pending_bytes;
    }
  }
  CHECK(seen.exclusive_bytes > 0);
  CHECK(seen.shared_bytes > seen.snapshot_bytes);
  CHECK(seen.recipe_bytes > 0);
}

TEST_CASE("the whole tree, by the number of its root") {
  SpaceTree tree(20);
  for (int step = 0; step < 60; ++step) tree.Step();
  const UsageReport report = Measure(tree, {{.directory = kRootInode}});
  SpaceUsage expected = tree.Expected(tree.NamesOf({.directory = kRootInode}));
  ++expected.directories;  // the root has no name
  RequireSame(report.total, expected);
  RequireSame(report.entries.at(0).usage, expected);
  CHECK(report.total.snapshot_bytes == report.total.shared_bytes);
}

TEST_CASE("a file with another name elsewhere frees nothing") {
  SpaceTree tree(1);
  const uint64_t a = tree.MakeDirectory(kRootInode, "a");
  const uint64_t file = tree.MakeFile(a, "file", SpaceTree::Numbered(0, 10));
  uint64_t bytes = 0;
  for (uint64_t number = 0; number < 10; ++number) bytes += SpaceTree::LengthOf(number);
  CHECK(Measure(tree, {{kRootInode, "a"}}).total.exclusive_bytes == bytes);
  tree.Link(file, a, "again");
  // Both names are below the path.
  const SpaceUsage both = Measure(tree, {{kRootInode, "a"}}).total;
  CHECK(both ==
        SpaceUsage{.files = 1, .directories = 1, .logical_bytes = bytes, .exclusive_bytes = bytes});
  CHECK(Measure(tree, {{a, "file"}}).total.exclusive_bytes == 0);
  tree.Link(file, kRootInode, "outside");
  const SpaceUsage one = Measure(tree, {{kRootInode, "a"}}).total;
  CHECK(one ==
        SpaceUsage{.files = 1, .directories = 1, .logical_bytes = bytes, .shared_bytes = bytes});
  // Together, the paths have all names.
  const UsageReport all = Measure(tree, {{kRootInode, "a"}, {kRootInode, "outside"}});
  CHECK(all.total.exclusive_bytes == bytes);
  CHECK(all.total.files == 1);
  CHECK(all.total.logical_bytes == bytes);
  CHECK(all.shared_among_bytes == bytes);
  for (const UsageEntry& entry : all.entries) {
    CHECK(entry.usage.exclusive_bytes == 0);
    CHECK(entry.usage.logical_bytes == bytes);
  }
}

TEST_CASE("what only a snapshot shares is told apart from what other files share") {
  SpaceTree tree(1);
  const uint64_t a = tree.MakeDirectory(kRootInode, "a");
  tree.MakeFile(a, "kept", SpaceTree::Numbered(0, 1));
  tree.MakeFile(a, "copied", SpaceTree::Numbered(1, 1));
  tree.MakeFile(kRootInode, "copy", SpaceTree::Numbered(1, 1));
  tree.TakeSnapshot();
  tree.MakeFile(a, "new", SpaceTree::Numbered(2, 1));
  CHECK(Measure(tree, {{kRootInode, "a"}}).total ==
        SpaceUsage{.files = 3,
                   .directories = 1,
                   .logical_bytes =
                       SpaceTree::LengthOf(0) + SpaceTree::LengthOf(1) + SpaceTree::LengthOf(2),
                   .exclusive_bytes = SpaceTree::LengthOf(2),
                   .shared_bytes = SpaceTree::LengthOf(0) + SpaceTree::LengthOf(1),
                   .snapshot_bytes = SpaceTree::LengthOf(0)});
}

TEST_CASE("what garbage collection keeps for another reason is not exclusive") {
  SpaceTree tree(1);
  tree.MakeFile(kRootInode, "file", SpaceTree::Numbered(0, 200));
  std::set<ChunkName> kept;
  for (uint64_t number = 0; number < 300; number += 3) kept.insert(NumberedName(number));
  UsageOptions options = Options();
  options.more = [&](const std::function<Status(const ChunkName&)>& visit) {
    for (const ChunkName& name : kept) SILTFS_RETURN_IF_ERROR(visit(name));
    return Status::Ok();
  };
  const UsageReport report = Measure(tree, {{kRootInode, "file"}}, 0, options);
  RequireSame(report.total, tree.Expected(tree.NamesOf({kRootInode, "file"}), kept));
  CHECK(report.total.shared_bytes > 0);
}

TEST_CASE("a path that is given twice has two entries and counts once") {
  SpaceTree tree(1);
  const uint64_t a = tree.MakeDirectory(kRootInode, "a");
  const uint64_t b = tree.MakeDirectory(a, "b");
  tree.MakeFile(b, "file", SpaceTree::Numbered(0, 5));
  const UsageReport report =
      Measure(tree, {{a, "b"}, {kRootInode, "a"}, {.directory = b}, {kRootInode, "a"}});
  REQUIRE(report.entries.size() == 4);
  CHECK(report.entries[0].usage == report.entries[2].usage);
  CHECK(report.entries[1].usage == report.entries[3].usage);
  CHECK(report.total == report.entries[1].usage);
  CHECK(report.total.directories == 2);
  CHECK(report.entries[0].usage.directories == 1);
  CHECK(report.shared_among_bytes == 0);
}

TEST_CASE("paths without chunks do not cost a walk through the store") {
  SpaceTree tree(1);
  tree.MakeFile(kRootInode, "large", SpaceTree::Numbered(0, 20'000));
  const uint64_t empty = tree.MakeDirectory(kRootInode, "empty");
  tree.MakeFile(empty, "file", {});
  tree.MakeSymlink(empty, "link");
  tree.nodes().ResetCounts();
  CHECK(Measure(tree, {{kRootInode, "empty"}}).total == SpaceUsage{.files = 2, .directories = 1});
  CHECK(tree.nodes().gets == 0);
}

TEST_CASE("only references to the paths' own chunks are sorted") {
  SpaceTree tree(1);
  tree.MakeFile(kRootInode, "large", SpaceTree::Numbered(0, 20'000));
  tree.MakeFile(kRootInode, "small", SpaceTree::Numbered(19'000, 3));
  bool spilled = false;
  SimEnv env;
  UsageOptions options = Options(256u << 10);  // 16,384 references
  options.pace = [&] {
    spilled = spilled || env.ListDirectory(kSpill).ok();
    return Status::Ok();
  };
  UsageRequest request;
  request.scope.paths = {{kRootInode, "small"}};
  const auto report = MeasureUsage(env, *tree.Snapshot(), tree.nodes(), {}, request, options);
  REQUIRE_OK(report);
  CHECK(report->total.exclusive_bytes == 0);
  CHECK_FALSE(spilled);
}

TEST_CASE("directories and files that may not be read are left out and counted") {
  SpaceTree tree(1);
  const uint64_t a = tree.MakeDirectory(kRootInode, "a");
  const uint64_t secret = tree.MakeDirectory(a, "secret");
  tree.MakeFile(secret, "hidden", SpaceTree::Numbered(0, 5));
  const uint64_t refused = tree.MakeFile(a, "refused", SpaceTree::Numbered(5, 5));
  tree.MakeFile(a, "file", SpaceTree::Numbered(4, 2));
  UsageRequest request;
  request.scope.paths = {{kRootInode, "a"}};
  request.scope.admit = [&](const UsageInode& inode) -> Result<bool> {
    return inode.attributes.inode != secret && inode.attributes.inode != refused;
  };
  const auto report = TryMeasure(tree, request);
  REQUIRE_OK(report);
  CHECK(report->left_out == 2);
  CHECK(report->total.files == 1);
  CHECK(report->total.exclusive_bytes == 0);
  CHECK(report->total.shared_bytes == SpaceTree::LengthOf(4) + SpaceTree::LengthOf(5));
  request.scope.paths = {{a, "refused"}};
  REQUIRE_CODE(TryMeasure(tree, request), kAccessDenied);
}

TEST_CASE("a path that does not exist is an error") {
  SpaceTree tree(1);
  UsageRequest request;
  request.scope.paths = {{kRootInode, "missing"}};
  REQUIRE_CODE(TryMeasure(tree, request), kAborted);
  request.scope.paths = {{.directory = 77}};
  REQUIRE_CODE(TryMeasure(tree, request), kAborted);
}

TEST_CASE("an error of the pace or of progress ends the measurement") {
  SpaceTree tree(1);
  for (int i = 0; i < 50; ++i)
    tree.MakeFile(kRootInode, fmt::format("f{}", i), SpaceTree::Numbered(600 * i, 600));
  UsageRequest request;
  request.scope.paths = {{.directory = kRootInode}};
  UsageOptions options = Options();
  const Status stop(StatusCode::kInterrupted, "stop");
  uint64_t calls = 0;
  uint64_t failing = UINT64_MAX;
  options.pace = [&] { return calls++ == failing ? stop : Status::Ok(); };
  REQUIRE_OK(TryMeasure(tree, request, options));
  const uint64_t all = calls;
  REQUIRE(all > 5);
  for (failing = 0; failing < all; ++failing) {
    calls = 0;
    REQUIRE_CODE(TryMeasure(tree, request, options), kInterrupted);
  }
}

TEST_CASE("directories are reported down to the depth that was asked for") {
  SpaceTree tree(1);
  uint64_t parent = tree.MakeDirectory(kRootInode, "d");
  for (int i = 0; i < 70; ++i) parent = tree.MakeDirectory(parent, "d");
  CHECK(Measure(tree, {{kRootInode, "d"}}, 50).entries.size() == 51);
  CHECK(Measure(tree, {{kRootInode, "d"}}, 500).entries.size() == 71);
}

TEST_CASE("more directories than can be reported are refused") {
  SpaceTree tree(1);
  const uint64_t parent = tree.MakeDirectory(kRootInode, "d");
  for (size_t i = 0; i < ReportTree::kMostPlaces - 1; ++i)
    tree.MakeDirectory(parent, fmt::format("{}", i));
  UsageRequest request{.scope = {}, .depth = 1};
  request.scope.paths = {{kRootInode, "d"}};
  REQUIRE_CODE(TryMeasure(tree, request), kUnsupported);
  request.depth = 0;
  const auto report = TryMeasure(tree, request);
  REQUIRE_OK(report);
  CHECK(report->total.directories == ReportTree::kMostPlaces);
}

}  // namespace siltfs::testing
