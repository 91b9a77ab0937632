#include "fs/space/report_tree.h"

#include <array>

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using Place = ReportTree::Place;

}  // namespace

TEST_CASE("sums count once for each place above") {
  ReportTree tree;
  const Place a = tree.Add(0);
  const Place b = tree.Add(a);
  const Place c = tree.Add(a);
  const Place d = tree.Add(0);
  CHECK(tree.LowestCommon(b, c) == a);
  CHECK(tree.LowestCommon(a, c) == a);
  CHECK(tree.LowestCommon(b, d) == 0);
  CHECK(tree.LowestCommon(d, d) == d);

  ReportTree::Sums sums(tree.size());
  sums.AddOnce(tree, std::array{a, b, c, d}, 10);
  sums.AddOnce(tree, std::array{b, c}, 100);
  sums.AddOnce(tree, std::array{d}, 1000);
  sums.Add(a, 10'000);
  sums.Finish(tree);
  CHECK(sums.At(b) == 110);
  CHECK(sums.At(c) == 110);
  CHECK(sums.At(a) == 10'110);
  CHECK(sums.At(d) == 1010);
  CHECK(sums.At(0) == 11'110);
}

TEST_CASE("the tree has room for 65,535 places below its root") {
  ReportTree tree;
  for (size_t i = 1; i < ReportTree::kMostPlaces; ++i) {
    REQUIRE_FALSE(tree.IsFull());
    tree.Add(0);
  }
  CHECK(tree.IsFull());
}

}  // namespace siltfs::testing
