#include "tests/crash/block/power_cut.h"

#include <algorithm>
#include <set>

#include "tests/support/catch.h"

namespace siltfs::blocktest {
namespace {

constexpr uint64_t kSize = 1u << 20;

DeviceRecord WriteOf(uint64_t offset, size_t size, uint8_t byte) {
  return {.kind = DeviceRecord::Kind::kWrite,
          .offset = offset,
          .length = size,
          .data = Bytes(size, byte)};
}

Bytes ReadAll(CutDevice& device, uint64_t offset, size_t size) {
  Bytes bytes(size);
  REQUIRE(device.Read(offset, bytes) == 0);
  return bytes;
}

TEST_CASE("Flushed writes survive a cut with every seed") {
  const DeviceLog log = {WriteOf(0, 8192, 1), {}, WriteOf(4096, 4096, 2)};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    PowerCuts cuts(log, kSize, 512);
    const auto device = cuts.Cut(2, random);
    CHECK(ReadAll(*device, 0, 8192) == Bytes(8192, 1));
  }
}

TEST_CASE("An unflushed write survives, is lost, or is torn at sectors") {
  const DeviceLog log = {{}, WriteOf(0, 4096, 1), WriteOf(8192, 4096, 2)};
  std::set<std::pair<int, int>> seen;
  bool torn = false;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    PowerCuts cuts(log, kSize, 512);
    const auto device = cuts.Cut(3, random);
    const Bytes first = ReadAll(*device, 0, 4096), second = ReadAll(*device, 8192, 4096);
    for (size_t at = 0; at < first.size(); at += 512) {
      const auto begin = first.begin() + static_cast<ptrdiff_t>(at);
      CHECK(std::all_of(begin, begin + 512, [&](uint8_t byte) { return byte == *begin; }));
    }
    torn = torn || (first != Bytes(4096, 0) && first != Bytes(4096, 1));
    const auto is_whole = [](const Bytes& bytes) {
      return std::all_of(bytes.begin(), bytes.end(), [&](uint8_t b) { return b == bytes[0]; });
    };
    if (is_whole(first) && is_whole(second)) seen.emplace(first[0], second[0]);
  }
  CHECK(seen.size() == 4);  // also the state with only the later write
  CHECK(torn);
}

TEST_CASE("An unflushed discard may be lost") {
  const DeviceLog log = {
      WriteOf(0, 4096, 1),
      {},
      {.kind = DeviceRecord::Kind::kZero, .offset = 0, .length = 4096, .data = {}}};
  std::set<int> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    PowerCuts cuts(log, kSize, 512);
    seen.insert(ReadAll(*cuts.Cut(3, random), 0, 1)[0]);
  }
  CHECK(seen == std::set<int>{0, 1});
}

TEST_CASE("Writes to a cut device do not appear at the next cut") {
  const DeviceLog log = {WriteOf(0, 4096, 1), {}};
  Random random(1);
  PowerCuts cuts(log, kSize, 512);
  REQUIRE(cuts.Cut(2, random)->Write(100, Bytes(5000, 9)) == 0);
  CHECK(ReadAll(*cuts.Cut(2, random), 0, 8192) == [] {
    Bytes bytes(8192);
    std::fill_n(bytes.begin(), 4096, uint8_t{1});
    return bytes;
  }());
}

TEST_CASE("A failing device loses no acknowledged write") {
  RecordingDevice device(kSize, 1);
  REQUIRE(device.Write(0, Bytes(4096, 1)) == 0);
  device.SetFault(Fault{.reads = false, .writes = true, .flushes = true, .ranges = {{0, 4096}}});
  CHECK(device.Write(0, Bytes(4096, 2)) != 0);
  CHECK(device.Flush() != 0);
  CHECK(device.Write(4096, Bytes(4096, 3)) == 0);
  device.SetFault({});
  CHECK(device.Flush() == 0);
  CHECK(device.failed_calls() == 2);
  PowerCuts cuts(device.log(), kSize, 512);
  Random random(1);
  CHECK(ReadAll(*cuts.Cut(device.position(), random), 4096, 4096) == Bytes(4096, 3));
}

TEST_CASE("Cuts are chosen in order and within the log") {
  DeviceLog log(1000);
  Random random(3);
  const std::vector<uint64_t> cuts = ChooseCuts(log, 900, {950}, 500, random);
  CHECK(cuts.size() == 500);
  CHECK(std::is_sorted(cuts.begin(), cuts.end()));
  CHECK(cuts.front() >= 900);
  CHECK(cuts.back() <= 1000);
}

}  // namespace
}  // namespace siltfs::blocktest
