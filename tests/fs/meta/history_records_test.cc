// The histories of sizes and of scrubs: their form on disk, and their bounds.
#include <algorithm>
#include <string>

#include "fs/records/savings_history.h"
#include "fs/records/scrub_history.h"
#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr int64_t kDay = int64_t{86'400} * 1'000'000'000;

SavingsSample At(int64_t time, uint64_t logical = 1) {
  return {.taken_ns = time, .logical_bytes = logical};
}

}  // namespace

TEST_CASE("a history of sizes is the version, the count and thirteen numbers for each sample") {
  SavingsHistory history;
  history.Add({.taken_ns = 1,
               .logical_bytes = 2,
               .unique_bytes = 3,
               .stored_bytes = 4,
               .dead_bytes = 5,
               .metadata_bytes = 6,
               .index_bytes = 7,
               .files = 8,
               .chunks_logical = 9,
               .chunks_unique = 10,
               .index_memory_bytes = 11,
               .index_entries = 12,
               .damaged_chunks = 13});
  const std::string bytes = history.Encode();
  REQUIRE(bytes.size() == 3 + 104);
  CHECK(bytes.substr(0, 3) == std::string("\x01\x01\0", 3));
  for (size_t i = 0; i < 13; ++i) {
    INFO(i);
    CHECK(bytes.substr(3 + 8 * i, 8) ==
          std::string(1, static_cast<char>(i + 1)) + std::string(7, '\0'));
  }
  CHECK(*SavingsHistory::Decode(bytes) == history);
  REQUIRE_CODE(SavingsHistory::Decode(""), kCorruption);
  REQUIRE_CODE(SavingsHistory::Decode(bytes + "x"), kCorruption);
  REQUIRE_CODE(SavingsHistory::Decode(bytes.substr(0, bytes.size() - 1)), kCorruption);
  REQUIRE_CODE(SavingsHistory::Decode("\x02" + bytes.substr(1)), kNeedsNewer);
  // More samples than a history may have, and samples that do not ascend.
  REQUIRE_CODE(SavingsHistory::Decode(std::string("\x01\xff\xff", 3)), kCorruption);
  const std::string twice = std::string("\x01\x02\0", 3) + bytes.substr(3) + bytes.substr(3);
  REQUIRE_CODE(SavingsHistory::Decode(twice), kCorruption);
}

TEST_CASE("a history of sizes stays bounded, keeps its first sample, and thins with age") {
  SavingsHistory history;
  constexpr int kDays = 4000;
  for (int day = 0; day < kDays; ++day) history.Add(At(1 + day * kDay, static_cast<uint64_t>(day)));
  const auto& samples = history.samples();
  REQUIRE(samples.size() == SavingsHistory::kMostSamples);
  CHECK(samples.front().logical_bytes == 0);
  CHECK(samples.back().logical_bytes == kDays - 1);
  CHECK(history.Encode().size() <= 27'000);
  int64_t longest_recent = 0;
  for (size_t i = 1; i < samples.size(); ++i) {
    const int64_t gap = (samples[i].taken_ns - samples[i - 1].taken_ns) / kDay;
    const int64_t age = kDays - 1 - static_cast<int64_t>(samples[i].logical_bytes);
    // No gap is longer than a small share of the age.
    CHECK(gap <= std::max<int64_t>(2, age / 12));
    if (age < 20) longest_recent = std::max(longest_recent, gap);
  }
  CHECK(longest_recent <= 2);
  CHECK(*SavingsHistory::Decode(history.Encode()) == history);
}

TEST_CASE("samples at random times stay ascending and bounded") {
  Random random(7);
  SavingsHistory history;
  int64_t now = 1;
  for (int i = 0; i < 3000; ++i) {
    now += 1 + static_cast<int64_t>(random.Below(static_cast<uint64_t>(kDay)));
    history.Add(At(now));
    REQUIRE(history.samples().size() <= SavingsHistory::kMostSamples);
    REQUIRE(history.samples().front().taken_ns > 0);
    REQUIRE(history.samples().back().taken_ns == now);
  }
  REQUIRE_OK(SavingsHistory::Decode(history.Encode()));
}

TEST_CASE("a clock that is set back drops the samples of the future, but not the whole history") {
  SavingsHistory history;
  for (const int64_t day : {10, 11, 12, 90, 91}) history.Add(At(day * kDay));
  history.Add(At(13 * kDay));
  REQUIRE(history.samples().size() == 4);
  CHECK(history.samples().back().taken_ns == 13 * kDay);
  history.Add(At(1));  // the machine has begun without a clock
  CHECK(history.samples().size() == 4);
  CHECK(history.samples().back().taken_ns == 13 * kDay);
}

TEST_CASE("a history of scrubs has the last hundred scrubs") {
  ScrubHistory history;
  for (int64_t i = 1; i <= 120; ++i) {
    history.Add(
        {.found = {.ended_ns = i, .damaged_blocks = 2, .damaged_chunks = 3, .damaged_footers = 4},
         .chunks = 5,
         .bytes = 6});
  }
  REQUIRE(history.scrubs().size() == ScrubHistory::kMostScrubs);
  CHECK(history.scrubs().front().found.ended_ns == 21);
  CHECK(history.scrubs().back().found.ended_ns == 120);
  const std::string bytes = history.Encode();
  REQUIRE(bytes.size() == 3 + 100 * 48);
  CHECK(bytes.substr(3, 9) == std::string("\x15\0\0\0\0\0\0\0\x02", 9));
  CHECK(*ScrubHistory::Decode(bytes) == history);
  REQUIRE_CODE(ScrubHistory::Decode(""), kCorruption);
  REQUIRE_CODE(ScrubHistory::Decode(bytes + "x"), kCorruption);
  REQUIRE_CODE(ScrubHistory::Decode("\x02" + bytes.substr(1)), kNeedsNewer);
  REQUIRE_CODE(ScrubHistory::Decode(std::string("\x01\x65\0", 3)), kCorruption);
}

}  // namespace siltfs::testing
