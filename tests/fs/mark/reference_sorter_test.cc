// Sorting outside of memory: the right numbers come out, within the bounds on memory and files. No
// wrong number comes out, whatever happens to the files.
#include "fs/mark/reference_sorter.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/spill";
// How many numbers fit into the smallest memory of a sorter: seven blocks of 512 bytes.
constexpr uint64_t kFits = 7 * 64;

std::unique_ptr<ReferenceSorter> Make(Env& env, size_t memory = ReferenceSorter::kLeastMemory,
                                      uint64_t minimum_free = 0) {
  auto sorter = ReferenceSorter::Create(
      env, {.directory = kDirectory, .memory_bytes = memory, .minimum_free_bytes = minimum_free});
  REQUIRE_OK(sorter);
  return std::move(*sorter);
}

void AddAll(ReferenceSorter& sorter, const std::vector<uint64_t>& numbers) {
  bool added = true;
  for (const uint64_t number : numbers) added = sorter.Add(number).ok() && added;
  REQUIRE(added);
}

std::vector<uint64_t> RandomNumbers(uint64_t seed, size_t count, uint64_t bound = UINT64_MAX) {
  Random random(seed);
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < count; ++i) numbers.push_back(random.Below(bound));
  return numbers;
}

// Appends the numbers that come out to `out`, up to the end or a failure.
Status Drain(ReferenceSorter& sorter, std::vector<uint64_t>& out) {
  SILTFS_RETURN_IF_ERROR(sorter.Sort());
  while (!sorter.AtEnd()) {
    out.push_back(sorter.record());
    SILTFS_RETURN_IF_ERROR(sorter.Next());
  }
  return Status::Ok();
}

std::vector<uint64_t> SortedOnce(const std::vector<uint64_t>& numbers) {
  const std::set<uint64_t> set(numbers.begin(), numbers.end());
  return {set.begin(), set.end()};
}

std::vector<std::string> Files(Env& env) {
  std::vector<std::string> names;
  const auto entries = env.ListDirectory(kDirectory);
  if (!entries.ok()) return names;
  for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
  return names;
}

// A sorter with three runs of one level, and their one file.
struct Spilled {
  Spilled() : numbers(RandomNumbers(7, 3 * kFits)) {
    sorter = Make(env);
    AddAll(*sorter, numbers);
    REQUIRE_OK(sorter->Add(numbers[0]));  // makes the sorter write the third run
    REQUIRE(Files(env).size() == 1);
    path = JoinPath(kDirectory, Files(env)[0]);
  }
  std::string Contents() {
    auto contents = ReadWholeFile(env, path, 1U << 20);
    REQUIRE_OK(contents);
    return *contents;
  }
  void Write(uint64_t offset, ByteView bytes) {
    auto file = env.OpenFile(path, {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(offset, bytes));
  }
  // Requires kCorruption, and no wrong number before it.
  void RequireCorruption() {
    std::vector<uint64_t> out;
    REQUIRE_CODE(Drain(*sorter, out), kCorruption);
    const auto all = SortedOnce(numbers);
    REQUIRE(out.size() <= all.size());
    REQUIRE(std::equal(out.begin(), out.end(), all.begin()));
  }

  SimEnv env;
  std::vector<uint64_t> numbers;
  std::unique_ptr<ReferenceSorter> sorter;
  std::string path;
};

}  // namespace

TEST_CASE("numbers come out in order, each once, whatever memory there is") {
  const size_t memory = GENERATE(0U, 4096U, 10'000U, 100'000U, 8U << 20);
  const size_t count = GENERATE(0U, 1U, 447U, 448U, 449U, 5000U, 60'000U);
  const uint64_t bound = GENERATE(uint64_t{3}, uint64_t{20'000}, UINT64_MAX);
  INFO(memory << " bytes, " << count << " numbers below " << bound);
  SimEnv env;
  auto numbers = RandomNumbers(count, count, bound);
  numbers.insert(numbers.end(), {0, UINT64_MAX, UINT64_MAX, 0});
  auto sorter = Make(env, memory);
  AddAll(*sorter, numbers);
  std::vector<uint64_t> out;
  REQUIRE_OK(Drain(*sorter, out));
  REQUIRE(out == SortedOnce(numbers));
  sorter.reset();
  CHECK(Files(env).empty());
}

TEST_CASE("numbers that come in rising or falling order are sorted, too") {
  SimEnv env;
  const bool rising = GENERATE(true, false);
  auto sorter = Make(env);
  for (uint64_t i = 0; i < 30'000; ++i) REQUIRE(sorter->Add(rising ? i : 29'999 - i).ok());
  std::vector<uint64_t> out;
  REQUIRE_OK(Drain(*sorter, out));
  REQUIRE(out.size() == 30'000);
  for (uint64_t i = 0; i < out.size(); ++i) REQUIRE(out[i] == i);
}

TEST_CASE("nothing is written if all numbers fit into memory, however often they repeat") {
  SimEnv env;
  const uint64_t before = env.Calls(SimCall::kMutating);
  {
    auto sorter = Make(env);
    const auto numbers = RandomNumbers(3, kFits / 2);
    for (int round = 0; round < 200; ++round) AddAll(*sorter, numbers);
    std::vector<uint64_t> out;
    REQUIRE_OK(Drain(*sorter, out));
    CHECK(out == SortedOnce(numbers));
    CHECK(sorter->spilled_bytes() == 0);
  }
  CHECK(env.Calls(SimCall::kMutating) == before);
}

TEST_CASE("there is one file for each level, and each number is written once for each level") {
  SimEnv env;
  auto sorter = Make(env);
  // Seven runs are merged at once: more than 7 * 7 * 7 of them make a fourth level.
  constexpr uint64_t kRuns = 400;
  size_t most_files = 0;
  const auto numbers = RandomNumbers(11, kRuns * kFits);
  for (size_t i = 0; i < numbers.size(); ++i) {
    REQUIRE(sorter->Add(numbers[i]).ok());
    if (i % kFits == 0) most_files = std::max(most_files, Files(env).size());
  }
  std::vector<uint64_t> out;
  REQUIRE_OK(Drain(*sorter, out));
  CHECK(out == SortedOnce(numbers));
  CHECK(most_files >= 3);
  CHECK(most_files <= 4);
  CHECK(Files(env).size() <= 4);
  CHECK(sorter->spilled_bytes() > 3 * numbers.size() * sizeof(uint64_t));
  // Each block has one checksum and 63 numbers.
  CHECK(sorter->spilled_bytes() < 4 * numbers.size() * sizeof(uint64_t) * 64 / 63 + 4096);
}

TEST_CASE("a run with a flipped byte is reported as damage") {
  const size_t size = Spilled().Contents().size();
  for (size_t offset = 0; offset < size; offset += 61) {
    INFO("offset " << offset);
    Spilled spilled;
    const std::string contents = spilled.Contents();
    const uint8_t flipped = static_cast<uint8_t>(contents[offset]) ^ 0x10;
    spilled.Write(offset, {&flipped, 1});
    spilled.RequireCorruption();
  }
}

TEST_CASE("a misplaced block is damage, and so is a block of an earlier sort") {
  Spilled spilled;
  const std::string contents = spilled.Contents();
  if (GENERATE(true, false)) {
    spilled.Write(512, AsBytes(contents).first(512));
  } else {
    SimEnv other_env(2);
    auto other = Make(other_env);
    AddAll(*other, RandomNumbers(8, 2 * kFits));
    auto stale = ReadWholeFile(other_env, JoinPath(kDirectory, Files(other_env)[0]), 1U << 20);
    REQUIRE_OK(stale);
    spilled.Write(0, AsBytes(*stale).first(512));
  }
  spilled.RequireCorruption();
}

TEST_CASE("a run that is cut short is damage") {
  Spilled spilled;
  auto file = spilled.env.OpenFile(spilled.path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->Truncate(spilled.Contents().size() - 700));
  spilled.RequireCorruption();
}

TEST_CASE("a full disk is reported, and no file stays on it") {
  const auto numbers = RandomNumbers(12, 100 * kFits);
  for (uint64_t pages = 0; pages < 60; ++pages) {
    INFO(pages << " pages free");
    SimEnv env;
    env.SetCapacity(pages * 4096);
    auto sorter = Make(env);
    Status added;
    for (size_t i = 0; added.ok() && i < numbers.size(); ++i) added = sorter->Add(numbers[i]);
    REQUIRE_CODE(added, kNoSpace);
    sorter.reset();
    REQUIRE(Files(env).empty());
  }
}

TEST_CASE("the minimum free space of a disk stays free") {
  SimEnv env;
  env.SetCapacity(1U << 20);
  const uint64_t minimum = GENERATE(900U << 10, 1U << 20, 2U << 20);
  auto sorter = Make(env, ReferenceSorter::kLeastMemory, minimum);
  uint64_t least = 1U << 20;
  Status added;
  for (const uint64_t number : RandomNumbers(13, 100 * kFits)) {
    added = sorter->Add(number);
    if (!added.ok()) break;
    auto space = env.GetDiskSpace("/");
    REQUIRE_OK(space);
    least = std::min(least, space->available_bytes);
  }
  REQUIRE_CODE(added, kNoSpace);
  CHECK((least == 1U << 20 || least >= minimum));
}

TEST_CASE("the next sorter removes leftovers of a crash, and no other files") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory(kDirectory));
  for (const char* name : {"references-1", "references-77", "mine"}) {
    REQUIRE_OK(env.OpenFile(JoinPath(kDirectory, name), {.mode = OpenMode::kCreate}));
  }
  auto sorter = Make(env);
  CHECK(Files(env) == std::vector<std::string>{"mine"});
  AddAll(*sorter, RandomNumbers(14, 2 * kFits));
  CHECK(Files(env).size() == 2);
  sorter.reset();
  CHECK(Files(env) == std::vector<std::string>{"mine"});
}

TEST_CASE("a missing directory is created when it is needed, and removed again") {
  SimEnv env;
  auto sorter = Make(env);
  REQUIRE_CODE(env.ListDirectory(kDirectory), kNotFound);
  AddAll(*sorter, RandomNumbers(15, 2 * kFits));
  REQUIRE_OK(env.ListDirectory(kDirectory));
  sorter.reset();
  REQUIRE_CODE(env.ListDirectory(kDirectory), kNotFound);
}

TEST_CASE("every failed call to the device is reported") {
  const auto numbers = RandomNumbers(16, 30 * kFits);
  const auto all = SortedOnce(numbers);
  for (const SimCall calls :
       {SimCall::kRead, SimCall::kWrite, SimCall::kCreate, SimCall::kRemove}) {
    uint64_t failures = 0;
    for (uint64_t nth = 1;; nth += calls == SimCall::kRead || calls == SimCall::kWrite ? 13 : 1) {
      SimEnv env;
      auto sorter = Make(env);
      env.FailCall({.calls = calls, .nth = nth});
      std::vector<uint64_t> out;
      Status outcome;
      for (size_t i = 0; outcome.ok() && i < numbers.size(); ++i) outcome = sorter->Add(numbers[i]);
      if (outcome.ok()) outcome = Drain(*sorter, out);
      if (outcome.ok()) {
        REQUIRE(out == all);
        break;
      }
      ++failures;
      REQUIRE_CODE(outcome, kIoError);
      REQUIRE(std::equal(out.begin(), out.end(), all.begin()));
    }
    CHECK(failures > 0);
  }
}

}  // namespace siltfs::testing
