#include "fs/usage/usage_message.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

const std::vector<UsagePath> kPaths = {{.directory = 7, .name = "a\nb\xff"}, {.directory = 1}};

std::string Line(const std::string& with_newline) {
  REQUIRE(with_newline.ends_with('\n'));
  REQUIRE(with_newline.find('\n') == with_newline.size() - 1);
  return with_newline.substr(0, with_newline.size() - 1);
}

}  // namespace

TEST_CASE("requests arrive as they were sent") {
  UsageRequest measure{.scope = {}, .depth = 3};
  measure.scope.paths = kPaths;
  const auto measured = usage::DecodeWanted(Line(usage::EncodeWanted(measure)));
  REQUIRE_OK(measured);
  const auto* const request = std::get_if<UsageRequest>(&*measured);
  REQUIRE(request != nullptr);
  CHECK(request->scope.paths == kPaths);
  CHECK(request->depth == 3);

  DuplicateRequest search{.scope = {}, .min_size = 5, .limit = 9, .partial = true};
  search.scope.paths = kPaths;
  const auto searched = usage::DecodeWanted(Line(usage::EncodeWanted(search)));
  REQUIRE_OK(searched);
  const auto* const found = std::get_if<DuplicateRequest>(&*searched);
  REQUIRE(found != nullptr);
  CHECK(found->scope.paths == kPaths);
  CHECK(found->min_size == 5);
  CHECK(found->limit == 9);
  CHECK(found->partial);
}

TEST_CASE("malformed requests are refused") {
  for (const char* const line :
       {"", "[]", "{", "{}", R"({"paths":[],"depth":1})", R"({"paths":7,"depth":1})",
        R"({"paths":[7],"depth":1})", R"({"paths":[{"directory":1}],"depth":1})",
        R"({"paths":[{"directory":1,"name":"x"}],"depth":1})",
        R"({"paths":[{"directory":-1,"name":""}],"depth":1})",
        R"({"paths":[{"directory":1,"name":""}]})",
        R"({"paths":[{"directory":1,"name":""}],"depth":4294967296})",
        R"({"paths":[{"directory":1,"name":""}],"min_size":1})",
        R"({"paths":[{"directory":1,"name":""}],"min_size":1,"limit":10001,"partial":true})",
        R"({"paths":[{"directory":1,"name":""}],"min_size":1,"limit":1})"}) {
    INFO(line);
    REQUIRE_CODE(usage::DecodeWanted(line), kInvalidArgument);
  }
}

TEST_CASE("entries, groups and progress arrive as they were sent") {
  const std::vector<UsageEntry> entries = {{.path = 1,
                                            .below = "x/\x01",
                                            .usage = {.files = 1,
                                                      .directories = 2,
                                                      .logical_bytes = 3,
                                                      .exclusive_bytes = 4,
                                                      .shared_bytes = 5,
                                                      .snapshot_bytes = 6,
                                                      .recipe_bytes = 7,
                                                      .pending_bytes = UINT64_MAX}}};
  const auto got = usage::DecodeEntries(Line(usage::EncodeEntries(entries)));
  REQUIRE_OK(got);
  REQUIRE(got->has_value());
  REQUIRE((*got)->size() == 1);
  CHECK((**got)[0].path == 1);
  CHECK((**got)[0].below == entries[0].below);
  CHECK((**got)[0].usage == entries[0].usage);

  const std::vector<DuplicateGroup> groups = {
      {.size = 10, .copies = 3, .saved_bytes = 20, .files = {{0, "a"}, {1, ""}}}};
  const std::vector<PartlySharedPair> pairs = {{.first = {0, "x"},
                                                .second = {1, "y\xff"},
                                                .first_size = 7,
                                                .second_size = 8,
                                                .shared_bytes = 5}};
  const auto found = usage::DecodeDuplicates(Line(usage::EncodeGroups(groups)));
  REQUIRE_OK(found);
  REQUIRE(found->has_value());
  CHECK(std::get<DuplicateGroup>((*found)->at(0)) == groups[0]);
  const auto parts = usage::DecodeDuplicates(Line(usage::EncodePairs(pairs)));
  REQUIRE_OK(parts);
  REQUIRE(parts->has_value());
  CHECK(std::get<PartlySharedPair>((*parts)->at(0)) == pairs[0]);

  const UsageProgress progress{.step = UsageProgress::Step::kStore, .done = 5, .total = 8};
  const std::string line = Line(usage::EncodeProgress(progress));
  const auto told = usage::DecodeProgress(line);
  REQUIRE(told.has_value());
  CHECK(told->step == progress.step);
  CHECK(told->done == 5);
  CHECK(told->total == 8);
  CHECK_FALSE(usage::DecodeProgress(R"({"ok":true,"result":{}})").has_value());
  CHECK_FALSE(usage::DecodeProgress(R"({"step":9,"done":1,"total":2})").has_value());
  const auto none = usage::DecodeEntries(line);
  REQUIRE_OK(none);
  CHECK_FALSE(none->has_value());
  REQUIRE_CODE(usage::DecodeEntries(R"([{"path":1}])"), kInvalidArgument);
  REQUIRE_CODE(usage::DecodeDuplicates("[7]"), kInvalidArgument);
  REQUIRE_CODE(usage::DecodeDuplicates(R"([{"first":7}])"), kInvalidArgument);
}

}  // namespace siltfs::testing
