// Files with the same content, found by their recipes.
#include "fs/space/duplicate_files.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "tests/fs/space/space_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using File = DuplicateGroup::File;

DuplicateReport Find(SpaceTree& tree, const DuplicateRequest& request,
                     size_t memory_bytes = 8u << 20) {
  SimEnv env;
  UsageOptions options;
  options.spill_directory = kSpill;
  options.memory_bytes = memory_bytes;
  options.minimum_free_bytes = 0;
  auto report = FindDuplicateFiles(env, *tree.Snapshot(), tree.nodes(), request, options);
  REQUIRE_OK(report);
  return *report;
}

DuplicateRequest In(const std::vector<UsagePath>& paths) {
  DuplicateRequest request;
  request.scope.paths = paths;
  return request;
}

uint64_t BytesOfChunks(uint64_t first, uint64_t count) {
  uint64_t bytes = 0;
  for (uint64_t number = first; number < first + count; ++number)
    bytes += SpaceTree::LengthOf(number);
  return bytes;
}

}  // namespace

TEST_CASE("groups come in the order of what they save, and files in the order of their inodes") {
  SpaceTree tree(1);
  const uint64_t a = tree.MakeDirectory(kRootInode, "a");
  const uint64_t b = tree.MakeDirectory(a, "b");
  tree.MakeFile(b, "x1", SpaceTree::Numbered(0, 10));
  tree.MakeFile(a, "y1", SpaceTree::Numbered(500, 2));
  tree.MakeFile(a, "other", SpaceTree::Numbered(0, 9));
  tree.MakeFile(kRootInode, "x2", SpaceTree::Numbered(0, 10));
  tree.MakeFile(a, "y2", SpaceTree::Numbered(500, 2));
  tree.MakeFile(b, "y3", SpaceTree::Numbered(500, 2));
  const uint64_t x = BytesOfChunks(0, 10);
  const uint64_t y = BytesOfChunks(500, 2);
  const DuplicateReport report = Find(tree, In({{.directory = kRootInode}}));
  const std::vector<DuplicateGroup> expected = {
      {.size = x, .copies = 2, .saved_bytes = x, .files = {{0, "a/b/x1"}, {0, "x2"}}},
      {.size = y,
       .copies = 3,
       .saved_bytes = 2 * y,
       .files = {{0, "a/y1"}, {0, "a/y2"}, {0, "a/b/y3"}}}};
  REQUIRE(x > 2 * y);
  CHECK(report.groups == expected);
  CHECK(report.files == 6);
  CHECK(report.files_busy == 0);
  CHECK(report.groups_found == 2);
  CHECK(report.copies_found == 5);
  CHECK(report.saved_bytes == x + 2 * y);

  DuplicateRequest request = In({{.directory = kRootInode}});
  request.limit = 1;
  const DuplicateReport limited = Find(tree, request);
  CHECK(limited.groups == std::vector<DuplicateGroup>{expected[0]});
  CHECK(limited.groups_found == 2);
  request.min_size = x;
  CHECK(Find(tree, request).files == 2);
  request.min_size = x + 1;
  CHECK(Find(tree, request).groups.empty());
}

TEST_CASE("groups that save the same come in the order of their first inodes") {
  SpaceTree tree(1);
  // Chunks whose numbers differ by 5,000 have the same length.
  for (const uint64_t number : {15'000, 5'000, 10'000}) {
    for (int copy = 0; copy < 2; ++copy)
      tree.MakeFile(kRootInode, fmt::format("{}-{}", number, copy), SpaceTree::Numbered(number, 1));
  }
  const DuplicateReport report = Find(tree, In({{.directory = kRootInode}}));
  REQUIRE(report.groups.size() == 3);
  CHECK(report.groups[0].files.at(0).below == "15000-0");
  CHECK(report.groups[1].files.at(0).below == "5000-0");
  CHECK(report.groups[2].files.at(0).below == "10000-0");
}

TEST_CASE("names of one file are no duplicates") {
  SpaceTree tree(1);
  const uint64_t file = tree.MakeFile(kRootInode, "file", SpaceTree::Numbered(0, 3));
  tree.Link(file, kRootInode, "link");
  const uint64_t a = tree.MakeDirectory(kRootInode, "a");
  tree.Link(file, a, "link");
  const DuplicateReport report = Find(tree, In({{.directory = kRootInode}}));
  CHECK(report.groups.empty());
  CHECK(report.files == 1);
}

TEST_CASE("only files below the paths are compared, and paths are named as they were given") {
  SpaceTree tree(1);
  const uint64_t a = tree.MakeDirectory(kRootInode, "a");
  const uint64_t b = tree.MakeDirectory(kRootInode, "b");
  tree.MakeFile(a, "f", SpaceTree::Numbered(0, 3));
  tree.MakeFile(b, "g", SpaceTree::Numbered(0, 3));
  tree.MakeFile(kRootInode, "h", SpaceTree::Numbered(0, 3));
  CHECK(Find(tree, In({{kRootInode, "a"}})).groups.empty());
  const DuplicateReport two = Find(tree, In({{.directory = a}, {kRootInode, "h"}}));
  REQUIRE(two.groups.size() == 1);
  CHECK(two.groups[0].files == std::vector<File>{{0, "f"}, {1, ""}});
  // A path below another one is part of that one.
  const DuplicateReport nested = Find(tree, In({{a, "f"}, {.directory = kRootInode}}));
  REQUIRE(nested.groups.size() == 1);
  CHECK(nested.groups[0].files == std::vector<File>{{1, "a/f"}, {1, "b/g"}, {1, "h"}});
}

TEST_CASE("empty files, holes and files that are being written are not listed") {
  SpaceTree tree(1);
  for (int copy = 0; copy < 2; ++copy) {
    tree.MakeFile(kRootInode, fmt::format("empty-{}", copy), {});
    tree.MakeFile(kRootInode, fmt::format("hole-{}", copy), {RecipeEntry::Hole(1 << 20)});
    const uint64_t busy =
        tree.MakeFile(kRootInode, fmt::format("busy-{}", copy), SpaceTree::Numbered(0, 3));
    tree.AddPlain(busy, 0, "bytes");
  }
  const DuplicateReport report = Find(tree, In({{.directory = kRootInode}}));
  CHECK(report.groups.empty());
  CHECK(report.files_busy == 2);
  CHECK(report.files == 2);
}

TEST_CASE("a group lists the first files only, and counts all") {
  SpaceTree tree(1);
  for (int copy = 0; copy < 150; ++copy)
    tree.MakeFile(kRootInode, fmt::format("copy-{}", copy), SpaceTree::Numbered(0, 1));
  const DuplicateReport report = Find(tree, In({{.directory = kRootInode}}));
  REQUIRE(report.groups.size() == 1);
  CHECK(report.groups[0].copies == 150);
  CHECK(report.groups[0].saved_bytes == 149 * SpaceTree::LengthOf(0));
  REQUIRE(report.groups[0].files.size() == DuplicateGroup::kMostFiles);
  CHECK(report.groups[0].files[99].below == "copy-99");
}

TEST_CASE("little memory gives the same answer, through files") {
  SpaceTree tree(5);
  for (int step = 0; step < 300; ++step) tree.Step();
  DuplicateRequest request = In({{.directory = kRootInode}});
  request.limit = 1000;
  const DuplicateReport plenty = Find(tree, request);
  const DuplicateReport little = Find(tree, request, 4096);
  CHECK(plenty.groups.size() > 5);
  CHECK(plenty.groups == little.groups);
  CHECK(plenty.saved_bytes == little.saved_bytes);
}

TEST_CASE("what may not be read is left out") {
  SpaceTree tree(1);
  tree.MakeFile(kRootInode, "a", SpaceTree::Numbered(0, 3));
  const uint64_t secret = tree.MakeFile(kRootInode, "b", SpaceTree::Numbered(0, 3));
  DuplicateRequest request = In({{.directory = kRootInode}});
  request.scope.admit = [&](const UsageInode& inode) -> Result<bool> {
    return inode.attributes.inode != secret;
  };
  const DuplicateReport report = Find(tree, request);
  CHECK(report.groups.empty());
  CHECK(report.left_out == 1);
}

TEST_CASE("pairs of files with a part in common") {
  SpaceTree tree(1);
  const auto joined = [](Entries first, const Entries& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  tree.MakeFile(kRootInode, "a", SpaceTree::Numbered(0, 2000));
  tree.MakeFile(kRootInode, "a-copy", SpaceTree::Numbered(0, 2000));
  tree.MakeFile(kRootInode, "b",
                joined(SpaceTree::Numbered(0, 1500), SpaceTree::Numbered(9000, 10)));
  tree.MakeFile(kRootInode, "c", SpaceTree::Numbered(9005, 20));
  tree.MakeFile(kRootInode, "alone", SpaceTree::Numbered(20'000, 500));
  DuplicateRequest request = In({{.directory = kRootInode}});
  CHECK(Find(tree, request).pairs.empty());  // unless it is asked for
  request.partial = true;
  tree.nodes().ResetCounts();
  const DuplicateReport report = Find(tree, request);
  const std::vector<PartlySharedPair> expected = {
      {.first = {0, "a"},
       .second = {0, "b"},
       .first_size = BytesOfChunks(0, 2000),
       .second_size = BytesOfChunks(0, 1500) + BytesOfChunks(9000, 10),
       .shared_bytes = BytesOfChunks(0, 1500)},
      {.first = {0, "b"},
       .second = {0, "c"},
       .first_size = BytesOfChunks(0, 1500) + BytesOfChunks(9000, 10),
       .second_size = BytesOfChunks(9005, 20),
       .shared_bytes = BytesOfChunks(9005, 5)}};
  CHECK(report.pairs == expected);
  CHECK(report.groups.size() == 1);
  const size_t nodes = tree.nodes().nodes.size();
  CHECK(tree.nodes().gets == nodes);  // each once
  CHECK(Find(tree, request, 4096).pairs == expected);
  request.limit = 1;
  CHECK(Find(tree, request).pairs == std::vector<PartlySharedPair>{expected[0]});
}

TEST_CASE("a part of several files counts for the first of them with each other one") {
  SpaceTree tree(1);
  for (int i = 0; i < 4; ++i) {
    Entries entries = SpaceTree::Numbered(0, 600);
    const Entries own = SpaceTree::Numbered(10'000 + 100 * i, 10);
    entries.insert(entries.end(), own.begin(), own.end());
    tree.MakeFile(kRootInode, fmt::format("{}", i), entries);
  }
  DuplicateRequest request = In({{.directory = kRootInode}});
  request.partial = true;
  const DuplicateReport report = Find(tree, request);
  REQUIRE(report.pairs.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(report.pairs[i].first == File{0, "0"});
    CHECK(report.pairs[i].second == File{0, fmt::format("{}", i + 1)});
    CHECK(report.pairs[i].shared_bytes == BytesOfChunks(0, 600));
  }
}

}  // namespace siltfs::testing
