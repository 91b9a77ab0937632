// Compares the SHA-1 kernels with OpenSSL. The tests cover every kernel that this machine can run,
// including kernels that siltfs would not choose on it.
#include "chunker/sha1/kernels.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "chunker/chunk_namer.h"
#include "tests/chunker/collisions.h"
#include "tests/chunker/reference.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Chunks in separate allocations of their exact sizes, so that AddressSanitizer detects reads
// beyond them.
class Batch {
 public:
  void Add(ByteView bytes, size_t misalignment = 0) {
    const size_t size = misalignment + bytes.size();
    memory_.push_back(std::unique_ptr<uint8_t[]>(new uint8_t[size]));
    uint8_t* const begin = memory_.back().get() + misalignment;
    std::copy(bytes.begin(), bytes.end(), begin);
    chunks_.emplace_back(begin, bytes.size());
  }
  std::span<const ByteView> chunks() const { return chunks_; }
  std::span<const ByteView> first(size_t count) const { return chunks().first(count); }

 private:
  std::vector<std::unique_ptr<uint8_t[]>> memory_;
  std::vector<ByteView> chunks_;
};

std::vector<ChunkName> NamesByOpenSsl(std::span<const ByteView> chunks) {
  ChunkNamer namer = ChunkNamer::Create({}).value();
  std::vector<ChunkName> names;
  for (ByteView chunk : chunks) names.push_back(namer.NameOf(chunk));
  return names;
}

std::vector<ChunkName> NamesBy(const Sha1Kernel& kernel, std::span<const ByteView> chunks) {
  std::vector<ChunkName> names(chunks.size());
  Sha1Batch(kernel, chunks, names);
  return names;
}

std::vector<const Sha1Kernel*> KernelsOfThisMachine() {
  std::vector<const Sha1Kernel*> kernels;
  for (const Sha1Kernel& kernel : Sha1Kernels()) {
    if (kernel.has_steps() && kernel.runs_here()) kernels.push_back(&kernel);
  }
  return kernels;
}

// Batches of these sizes use every step of every kernel, with full and with idle lanes, and need
// more than one round.
constexpr size_t kCounts[] = {1, 2, 3, 4, 5, 8, 13, 15, 16, 17, 33};
constexpr size_t kMostChunks = 33;

void CheckBatchesOfLength(size_t length) {
  Batch batch;
  for (size_t i = 0; i < kMostChunks; ++i) batch.Add(RandomBytes(length * 100 + i, length));
  const std::vector<ChunkName> expected = NamesByOpenSsl(batch.chunks());
  for (const Sha1Kernel* kernel : KernelsOfThisMachine()) {
    for (size_t count : kCounts) {
      const std::vector<ChunkName> names = NamesBy(*kernel, batch.first(count));
      for (size_t i = 0; i < count; ++i) {
        CAPTURE(kernel->name, length, count, i);
        REQUIRE(names[i] == expected[i]);
      }
    }
  }
}

void CheckBatch(const Batch& batch) {
  const std::vector<ChunkName> expected = NamesByOpenSsl(batch.chunks());
  for (const Sha1Kernel* kernel : KernelsOfThisMachine()) {
    const std::vector<ChunkName> names = NamesBy(*kernel, batch.chunks());
    for (size_t i = 0; i < names.size(); ++i) {
      CAPTURE(kernel->name, names.size(), i, batch.chunks()[i].size());
      REQUIRE(names[i] == expected[i]);
    }
  }
}

// A length of any order of magnitude; some messages are whole blocks.
size_t RandomLength(Random& random) {
  switch (random.Below(4)) {
    case 0:
      return random.Below(130);
    case 1:
      return 64 * random.Below(20);
    case 2:
      return random.Below(3000);
    default:
      return random.Below(20'000);
  }
}

// Kernels for the tests that check which kernel is chosen. They behave alike on every machine.
void CompressWrongly(uint32_t* state, const uint8_t* const* data, size_t blocks) {
  Sha1CompressPortable(state, data, blocks);
  state[0] ^= 1;
}

// A kernel of four lanes. If kWrong is set, its last lane gives wrong results.
template <bool kWrong>
void CompressFour(uint32_t* state, const uint8_t* const* data, size_t blocks) {
  for (size_t lane = 0; lane < 4; ++lane) Sha1CompressPortable(state + lane, data + lane, blocks);
  if (kWrong) state[3] ^= 1;
}

bool Yes() { return true; }
bool No() { return false; }

constexpr Sha1Step kOne = {1, 1, Sha1CompressPortable};
constexpr Sha1Kernel kRight = {"right", Yes, 2, {{kOne}}};
constexpr Sha1Kernel kFour = {"four", Yes, 2, {{{4, 2, CompressFour<false>}, kOne}}};
constexpr Sha1Kernel kNotHere = {"not-here", No, 2, {{kOne}}};
constexpr Sha1Kernel kWrong = {"wrong", Yes, 2, {{{1, 1, CompressWrongly}}}};
constexpr Sha1Kernel kWrongLane = {"wrong-lane", Yes, 2, {{{4, 2, CompressFour<true>}, kOne}}};
constexpr Sha1Kernel kWrongEnd = {
    "wrong-end", Yes, 2, {{{4, 2, CompressFour<false>}, {1, 1, CompressWrongly}}}};
constexpr Sha1Kernel kNone = {"none", Yes, 0, {}};

}  // namespace

TEST_CASE("every SHA-1 kernel gives the published answers in every lane", "[sha1]") {
  const std::pair<Bytes, const char*> answers[] = {
      {{}, "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
      {Bytes{'a', 'b', 'c'}, "a9993e364706816aba3e25717850c26c9cd0d89d"},
      {Bytes(1'000'000, 'a'), "34aa973cd4c4daa4f61eeb2bdbad27316534016f"},
  };
  for (const Sha1Kernel* kernel : KernelsOfThisMachine()) {
    for (const auto& [message, hex] : answers) {
      for (size_t count : {1, 2, 3, 4, 16}) {
        const std::vector<ByteView> chunks(count, message);
        for (const ChunkName& name : NamesBy(*kernel, chunks)) {
          CAPTURE(kernel->name, message.size(), count);
          REQUIRE(name.ToHex() == hex);
        }
      }
    }
    const ByteView two_blocks = AsBytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq");
    for (const ChunkName& name : NamesBy(*kernel, std::vector<ByteView>(20, two_blocks))) {
      CAPTURE(kernel->name);
      REQUIRE(name.ToHex() == "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    }
  }
}

TEST_CASE("every SHA-1 kernel names chunks of every length", "[sha1]") {
  for (size_t length = 0; length <= 300; ++length) CheckBatchesOfLength(length);
}

TEST_CASE("every SHA-1 kernel names chunks around multiples of a block", "[sha1]") {
  for (size_t blocks : {8, 32, 128}) {
    for (size_t length = 64 * blocks - 10; length <= 64 * blocks + 2; ++length)
      CheckBatchesOfLength(length);
  }
}

TEST_CASE("every SHA-1 kernel names batches of unequal chunks at any alignment", "[sha1]") {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Random random(seed);
    for (size_t count = 0; count <= 40; ++count) {
      Batch batch;
      for (size_t i = 0; i < count; ++i)
        batch.Add(RandomBytes(random.Next(), RandomLength(random)), random.Below(64));
      CheckBatch(batch);
    }
  }
}

TEST_CASE("a batch of short chunks and one long chunk, at any place, gets the right names",
          "[sha1]") {
  for (size_t place = 0; place < 20; ++place) {
    Batch batch;
    for (size_t i = 0; i < 20; ++i) batch.Add(RandomBytes(i, i == place ? 60'000 : 2048 + i));
    CheckBatch(batch);
  }
}

TEST_CASE("an empty chunk may be a null pointer", "[sha1]") {
  const std::vector<ByteView> chunks(18);
  for (const Sha1Kernel* kernel : KernelsOfThisMachine()) {
    for (const ChunkName& name : NamesBy(*kernel, chunks))
      REQUIRE(name.ToHex() == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  }
}

TEST_CASE("every SHA-1 kernel gives published collisions the same name", "[sha1]") {
  Batch batch;
  std::vector<std::string> expected;
  for (int i = 0; i < 10; ++i) {
    for (const auto& [what, first, second, name] : Collisions()) {
      batch.Add(first);
      batch.Add(second);
      expected.insert(expected.end(), 2, name);
    }
  }
  for (const Sha1Kernel* kernel : KernelsOfThisMachine()) {
    for (size_t count : {2, 4, 20, 40}) {
      const std::vector<ChunkName> names = NamesBy(*kernel, batch.first(count));
      for (size_t i = 0; i < count; ++i) {
        CAPTURE(kernel->name, i);
        REQUIRE(names[i].ToHex() == expected[i]);
      }
    }
  }
}

TEST_CASE("every SHA-1 kernel of this machine passes its own test", "[sha1]") {
  for (const Sha1Kernel* kernel : KernelsOfThisMachine()) {
    CAPTURE(kernel->name);
    CHECK(Sha1KernelWorks(*kernel));
  }
}

TEST_CASE("a SHA-1 kernel that is wrong in one lane or one step fails its own test", "[sha1]") {
  CHECK(Sha1KernelWorks(kRight));
  CHECK(Sha1KernelWorks(kFour));
  CHECK(Sha1KernelWorks(kNone));
  CHECK_FALSE(Sha1KernelWorks(kWrong));
  CHECK_FALSE(Sha1KernelWorks(kWrongLane));
  CHECK_FALSE(Sha1KernelWorks(kWrongEnd));
}

TEST_CASE("a batch is worth a kernel if it has several messages, none of them too long", "[sha1]") {
  const Bytes bytes(100'000);
  const auto batch = [&](size_t count, size_t length, size_t longest) {
    std::vector<ByteView> messages(count, ByteView(bytes).first(length));
    if (!messages.empty()) messages.front() = ByteView(bytes).first(longest);
    return messages;
  };
  Sha1Kernel kernel = kFour;
  CHECK_FALSE(kernel.IsWorth(batch(0, 0, 0)));
  CHECK_FALSE(kernel.IsWorth(batch(1, 100, 100)));
  CHECK(kernel.IsWorth(batch(2, 100, 100'000)));
  kernel.largest_part = 4;
  CHECK(kernel.IsWorth(batch(13, 1000, 4000)));
  CHECK_FALSE(kernel.IsWorth(batch(13, 1000, 4001)));
  CHECK_FALSE(kNone.IsWorth(batch(13, 1000, 1000)));
}

TEST_CASE("the first SHA-1 kernel that runs here and works is chosen", "[sha1]") {
  auto chosen = [](std::vector<Sha1Kernel> kernels) {
    return std::string(ChooseSha1Kernel(kernels, nullptr).value()->name);
  };
  CHECK(chosen({kFour, kRight, kNone}) == "four");
  CHECK(chosen({kNotHere, kRight, kNone}) == "right");
  CHECK(chosen({kWrong, kWrongLane, kWrongEnd, kRight, kNone}) == "right");
  CHECK(chosen({kWrongLane, kNone, kRight}) == "none");
}

TEST_CASE("a SHA-1 kernel can be forced if it is known, runs here and works", "[sha1]") {
  auto chosen = [](const char* forced) {
    const Sha1Kernel kernels[] = {kNotHere, kFour, kNone, kRight, kWrong};
    const auto kernel = ChooseSha1Kernel(kernels, forced);
    return kernel.ok() ? std::string((*kernel)->name) : std::string(kernel.status().cause());
  };
  CHECK(chosen("right") == "right");
  CHECK(chosen("none") == "none");
  CHECK(chosen("") == "four");
  for (const std::string name : {"not-here", "wrong", "no-such-kernel"}) {
    CHECK(chosen(name.c_str())
              .starts_with("no SHA-1 kernel '" + name + "' runs here; there are four"));
  }
}

// ctest also runs this with SILTFS_SHA1_KERNEL set to each name and to an unknown one.
TEST_CASE("the environment chooses the SHA-1 kernel", "[sha1]") {
  const char* const forced = std::getenv("SILTFS_SHA1_KERNEL");
  std::string expected;
  for (const Sha1Kernel& kernel : Sha1Kernels()) {
    if (!kernel.runs_here() || !expected.empty()) continue;
    if (forced == nullptr || std::strcmp(kernel.name, forced) == 0) expected = kernel.name;
  }
  const auto kernel = Sha1KernelInUse();
  const auto namer = ChunkNamer::Create({});
  if (expected.empty()) {
    REQUIRE_FALSE(kernel.ok());
    CHECK(kernel.status().ToString().find("SILTFS_SHA1_KERNEL") != std::string::npos);
    REQUIRE_FALSE(namer.ok());
    CHECK(namer.status().Is(StatusCode::kInvalidArgument));
  } else {
    REQUIRE_OK(kernel);
    REQUIRE_OK(namer);
    CHECK((*kernel)->name == expected);
  }
}

TEST_CASE("names of SHA-1 kernels are distinct, and OpenSSL is always among them", "[sha1]") {
  std::vector<std::string> names;
  for (const Sha1Kernel& kernel : Sha1Kernels()) {
    CHECK(std::count(names.begin(), names.end(), kernel.name) == 0);
    names.push_back(kernel.name);
    if (names.back() != "evp") continue;
    CHECK(kernel.runs_here());
    CHECK_FALSE(kernel.has_steps());
  }
  CHECK(std::count(names.begin(), names.end(), "evp") == 1);
}

}  // namespace siltfs::testing
