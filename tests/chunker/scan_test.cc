// Tests that each chunker kernel that this processor can run finds exactly the windows that match
// by the cut condition (docs/chunker.md, "Definition").
#include "chunker/scan/scan.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "chunker/chunker.h"
#include "tests/chunker/cut_in_pieces.h"
#include "tests/chunker/reference.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kFingerprints = uint64_t{1} << RabinPolynomial::kDegree;

using Words = std::vector<uint64_t>;

Words NoMatches(size_t windows) { return Words((windows + 63) / 64); }

// Returns the expected bits. They come only from the rolling computation of fingerprints, which
// rabin_test.cc compares with the bitwise definition.
Words ExpectedMatches(const CutCondition& condition, ByteView data) {
  const size_t windows = data.size() - kWindowSize + 1;
  Words words = NoMatches(windows);
  uint64_t fingerprint = condition.rabin.Of(data.first(kWindowSize));
  for (size_t i = 0;; ++i) {
    if (fingerprint >= condition.limit) words[i / 64] |= uint64_t{1} << (i % 64);
    if (i + 1 == windows) return words;
    fingerprint = condition.rabin.Roll(fingerprint, data[i], data[i + kWindowSize]);
  }
}

// The bytes, with inaccessible memory before or after them.
class Guarded {
 public:
  enum class Edge { kFront, kBack };

  Guarded(ByteView bytes, Edge edge) {
    const size_t inner = (bytes.size() + kPage - 1) / kPage * kPage;
    size_ = inner + 2 * kPage;
    memory_ = static_cast<uint8_t*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(memory_ != MAP_FAILED);
    REQUIRE(mprotect(memory_, kPage, PROT_NONE) == 0);
    REQUIRE(mprotect(memory_ + kPage + inner, kPage, PROT_NONE) == 0);
    uint8_t* const begin = memory_ + kPage + (edge == Edge::kFront ? 0 : inner - bytes.size());
    std::copy(bytes.begin(), bytes.end(), begin);
    view_ = {begin, bytes.size()};
  }
  ~Guarded() { munmap(memory_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  ByteView view() const { return view_; }

 private:
  static constexpr size_t kPage = 4096;

  uint8_t* memory_;
  size_t size_;
  ByteView view_;
};

std::vector<ChunkerKernel> ScanningKernels() {
  std::vector<ChunkerKernel> kernels;
  for (const ChunkerKernel& kernel : RunnableKernels()) {
    if (kernel.scan != nullptr) kernels.push_back(kernel);
  }
  return kernels;
}

void RequireExact(const CutCondition& condition, ByteView data) {
  const size_t windows = data.size() - kWindowSize + 1;
  const Words expected = ExpectedMatches(condition, data);
  for (const ChunkerKernel& kernel : ScanningKernels()) {
    CAPTURE(kernel.name, windows, condition.limit);
    Words words = NoMatches(windows);
    kernel.scan(condition, data.data(), windows, words.data());
    REQUIRE(words == expected);
  }
}

RabinPolynomial DrawnPolynomial(uint64_t seed) {
  return RabinPolynomial::FromRandom(RandomBytes(seed, RabinPolynomial::kRandomBytes)).value();
}

CutCondition OneIn(uint64_t windows, RabinPolynomial polynomial = TestPolynomial()) {
  return {RabinTables(polynomial), kFingerprints - kFingerprints / windows};
}

size_t CountMatches(const Words& words) {
  size_t count = 0;
  for (const uint64_t word : words) count += static_cast<size_t>(std::popcount(word));
  return count;
}

std::vector<std::string> NamesOf(std::span<const ChunkerKernel> kernels) {
  std::vector<std::string> names;
  for (const ChunkerKernel& kernel : kernels) names.emplace_back(kernel.name);
  return names;
}

}  // namespace

TEST_CASE("kernels find the same matches for few windows, and near numbers that fill all lanes") {
  const CutCondition condition = OneIn(64);
  const Bytes data = RandomBytes(61, 3 * 4096 + 300);
  for (size_t windows = kFewestWindows; windows < 700; ++windows) {
    RequireExact(condition, ByteView(data).first(windows + kWindowSize - 1));
  }
  // Numbers of windows that fill 16, 32 or 64 lanes of 65, 129, ... windows, and neighboring
  // numbers.
  for (const size_t lanes : {16, 32, 64}) {
    for (size_t steps = 1; steps <= 3; ++steps) {
      const size_t full = lanes * (64 * steps + 1);
      for (size_t windows = full - 3; windows <= std::min(full + 3, data.size() - 63); ++windows) {
        RequireExact(condition, ByteView(data).first(windows + kWindowSize - 1));
      }
    }
  }
}

TEST_CASE("kernels find the same matches at every alignment, and read no other bytes") {
  const CutCondition condition = OneIn(100);
  const Bytes data = RandomBytes(62, 30'000);
  Random random(63);
  for (size_t misalignment = 0; misalignment < 64; ++misalignment) {
    const size_t size = kFewestWindows + kWindowSize + misalignment + 64 * random.Below(400);
    const ByteView bytes = ByteView(data).first(size);
    RequireExact(condition, Guarded(bytes, Guarded::Edge::kBack).view());
    RequireExact(condition, Guarded(bytes, Guarded::Edge::kFront).view());
  }
}

TEST_CASE("kernels find the same matches for every condition and polynomial") {
  Random random(64);
  for (const uint64_t one_in : {64, 65, 100, 128, 255, 256, 257, 511, 6144, 100'000, 1 << 20}) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const CutCondition condition = OneIn(one_in, DrawnPolynomial(seed));
      CAPTURE(one_in, seed);
      RequireExact(condition,
                   RandomBytes(random.Next(), kFewestWindows + 63 + random.Below(70'000)));
    }
  }
}

// A window with a fingerprint at the limit matches, and one just below it does not. This holds
// whichever byte is the first one in which fingerprint and limit differ.
TEST_CASE("kernels compare fingerprints to the last bit") {
  const RabinTables rabin(TestPolynomial());
  const Bytes data = RandomBytes(65, 5000);
  Random random(66);
  for (int round = 0; round < 200; ++round) {
    const size_t window = random.Below(data.size() - kWindowSize + 1);
    const uint64_t fingerprint = rabin.Of(ByteView(data).subspan(window, kWindowSize));
    if (fingerprint == 0) continue;
    std::vector<uint64_t> limits = {fingerprint, fingerprint + 1, fingerprint - 1};
    for (int bit = 0; bit < RabinPolynomial::kDegree; bit += 5) {
      limits.push_back(fingerprint ^ (uint64_t{1} << bit));
      limits.push_back(fingerprint | ((uint64_t{1} << bit) - 1));
      limits.push_back(fingerprint >> bit << bit);
    }
    for (const uint64_t limit : limits) {
      if (limit == 0 || limit >= kFingerprints) continue;
      RequireExact(CutCondition(rabin, limit), data);
    }
  }
}

TEST_CASE("kernels find the same matches in runs of one byte and in short periods") {
  size_t matching_everywhere = 0;
  for (const uint64_t one_in : {64, 6144}) {
    for (uint64_t seed = 0; seed < 2; ++seed) {
      const CutCondition condition = OneIn(one_in, DrawnPolynomial(seed));
      for (unsigned value = 0; value < 256; ++value) {
        const Bytes run(5000, static_cast<uint8_t>(value));
        RequireExact(condition, run);
        matching_everywhere += CountMatches(ExpectedMatches(condition, run)) == run.size() - 63;
      }
      for (size_t period = 2; period < 70; ++period) {
        Bytes repeated = RandomBytes(period, period);
        while (repeated.size() < 6000) repeated.push_back(repeated[repeated.size() - period]);
        RequireExact(condition, repeated);
      }
    }
  }
  CHECK(matching_everywhere > 0);
}

TEST_CASE("the byte operations of the kernels compute the rolling fingerprint") {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const RabinTables rabin(DrawnPolynomial(seed));
    const LaneMaps maps(rabin);
    const auto by_matrix = [](const ByteMap& map, uint8_t byte) {
      uint8_t image = 0;
      for (unsigned out = 0; out < 8; ++out) {
        const auto row = static_cast<uint8_t>(map.matrix >> (8 * (7 - out)));
        image |= static_cast<uint8_t>((std::popcount(static_cast<uint8_t>(row & byte)) & 1) << out);
      }
      return image;
    };
    std::vector<ByteMap> all(std::begin(maps.overflow), std::end(maps.overflow));
    all.insert(all.end(), std::begin(maps.leave), std::end(maps.leave));
    all.insert(all.end(), std::begin(maps.enter), std::end(maps.enter));
    for (const ByteMap& map : all) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        const auto argument = static_cast<uint8_t>(byte);
        REQUIRE(map.Of(argument) == by_matrix(map, argument));
      }
    }

    const Bytes data = RandomBytes(seed, 1000);
    std::array<uint8_t, kLaneStateBytes> state{};
    for (size_t end = 0; end < data.size(); ++end) {
      const uint8_t out = end < kWindowSize ? 0 : data[end - kWindowSize];
      const uint8_t top = state.back();
      for (size_t i = kLaneStateBytes; i-- > 0;) {
        state[i] = static_cast<uint8_t>((i == 0 ? 0 : state[i - 1]) ^ maps.overflow[i].Of(top) ^
                                        maps.leave[i].Of(out) ^
                                        (i < kLaneEnterMaps ? maps.enter[i].Of(data[end]) : 0));
      }
      uint64_t packed = 0;
      for (size_t i = kLaneStateBytes; i-- > 0;) packed = packed << 8 | state[i];
      const size_t size = std::min(end + 1, kWindowSize);
      const ByteView window = ByteView(data).subspan(end + 1 - size, size);
      REQUIRE(packed >> kLaneStateShift ==
              ReferenceFingerprint(window, DrawnPolynomial(seed).value()));
      REQUIRE(packed % (1U << kLaneStateShift) == 0);
    }
  }
}

TEST_CASE("every kernel cuts like the scalar one, in one call and in pieces") {
  Random random(67);
  for (int round = 0; round < 40; ++round) {
    const auto min = static_cast<uint32_t>(64 + random.Below(3000));
    const auto avg = static_cast<uint32_t>(2 * min + random.Below(8000));
    const auto max = static_cast<uint32_t>(2 * avg + random.Below(60'000));
    const ChunkerParameters parameters{
        .min = min, .avg = avg, .max = max, .polynomial = DrawnPolynomial(random.Below(4))};
    Bytes data = RandomBytes(random.Next(), random.Below(300'000));
    // A range without matches, so that some cuts are forced.
    if (data.size() > 150'000) std::fill(data.begin() + 20'000, data.begin() + 120'000, 0);
    const auto scalar = ChunkerTables::Create(parameters, RunnableKernels().front()).value();
    const std::vector<uint32_t> expected = scalar->CutAll(data);
    for (const ChunkerKernel& kernel : RunnableKernels()) {
      CAPTURE(kernel.name, round, min, avg, max);
      const auto tables = ChunkerTables::Create(parameters, kernel).value();
      REQUIRE(tables->CutAll(data) == expected);

      ByteView rest = data;
      for (size_t i = 0; i < std::min<size_t>(expected.size(), 5); ++i) {
        REQUIRE(tables->FirstCut(rest) == expected[i]);
        rest = rest.subspan(expected[i]);
      }

      Chunker chunker(tables);
      REQUIRE(CutInPieces(chunker, data, [&] { return 1 + random.Below(20'000); }) == expected);
    }
  }
}

TEST_CASE("a cut sequence ends if the next cut is beyond the data") {
  for (const ChunkerKernel& kernel : RunnableKernels()) {
    CAPTURE(kernel.name);
    const auto tables = ChunkerTables::Create({.polynomial = TestPolynomial()}, kernel).value();
    const Bytes data = RandomBytes(68, 400'000);
    const std::vector<uint32_t> lengths = tables->CutAll(data);
    size_t end = 0;
    for (size_t i = 0; i + 1 < lengths.size(); ++i) end += lengths[i];
    for (const size_t more : {size_t{0}, size_t{1}, size_t{lengths.back()} - 1}) {
      CutSequence cuts(*tables, ByteView(data).first(end + more));
      for (size_t i = 0; i + 1 < lengths.size(); ++i) REQUIRE(cuts.Next() == lengths[i]);
      CHECK_FALSE(cuts.Next().has_value());
      CHECK_FALSE(cuts.Next().has_value());
    }
    for (const size_t size : {0, 1, 63, 64, 2047}) {
      CutSequence short_of_one(*tables, ByteView(data).first(size));
      CHECK_FALSE(short_of_one.Next().has_value());
    }
  }
}

TEST_CASE("a store's tables use the given kernel") {
  static size_t calls = 0;
  const ChunkerKernel counting{"counting", [](const CutCondition& condition, const uint8_t* data,
                                              size_t windows, uint64_t* matches) {
                                 ++calls;
                                 ScanPortable(condition, data, windows, matches);
                               }};
  const auto tables = ChunkerTables::Create({.polynomial = TestPolynomial()}, counting).value();
  const Bytes data = RandomBytes(69, 1 << 20);
  calls = 0;
  CHECK(tables->CutAll(data).size() > 50);
  // One call of the kernel covers kMaxWindows bytes, even if they have several cut points.
  CHECK(calls >= data.size() / MatchMap::kMaxWindows);
  CHECK(calls <= data.size() / MatchMap::kMaxWindows + 2);
  CHECK(tables->FirstCut(data) > 0);
  CHECK(calls > data.size() / MatchMap::kMaxWindows);
}

TEST_CASE("the kernels have names, the scalar one first") {
  const std::vector<std::string> names = NamesOf(RunnableKernels());
  REQUIRE(names.size() >= 2);
  CHECK(names[0] == "scalar");
  CHECK(names[1] == "portable");
#if defined(__AARCH64EL__)
  CHECK(names.back() == "neon");
#endif
  for (const std::string& name : names) CHECK(FindKernel(name).value()->name == name);
  for (const char* name : {"", "Scalar", "avx", "scalar "}) {
    const auto found = FindKernel(name);
    REQUIRE_FALSE(found.ok());
    CHECK(found.status().Is(StatusCode::kInvalidArgument));
    CHECK(found.status().ToString().find("scalar, portable") != std::string::npos);
  }
}

// ctest runs this with the variable unset, with each name, and with an unknown one
// (CMakeLists.txt).
TEST_CASE("the environment chooses the kernel") {
  const char* const wanted = std::getenv("SILTFS_CHUNKER_KERNEL");
  const std::vector<std::string> names = NamesOf(RunnableKernels());
  const auto chosen = ChosenKernel();
  const auto tables = ChunkerTables::Create({.polynomial = TestPolynomial()});
  if (wanted == nullptr) {
    REQUIRE_OK(chosen);
    REQUIRE_OK(tables);
    CHECK((*chosen)->name == names.back());
    CHECK(&(*tables)->kernel() == *chosen);
  } else if (std::find(names.begin(), names.end(), wanted) != names.end()) {
    REQUIRE_OK(chosen);
    REQUIRE_OK(tables);
    CHECK(std::string((*chosen)->name) == wanted);
    CHECK(&(*tables)->kernel() == *chosen);
  } else {
    REQUIRE_FALSE(chosen.ok());
    CHECK(chosen.status().ToString().find("SILTFS_CHUNKER_KERNEL") != std::string::npos);
    REQUIRE_FALSE(tables.ok());
    CHECK(tables.status().Is(StatusCode::kInvalidArgument));
  }
}

}  // namespace siltfs::testing
