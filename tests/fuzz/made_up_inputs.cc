// Runs a fuzz target without a fuzzer:
//   TARGET COUNT [DIRECTORY]    runs the inputs that a fuzzer saved in the directory, and inputs
//                               generated from the numbers 0, 1, ...: changes of the saved inputs
//                               and of the target's seeds, or random bytes if there are none.
//                               SILTFS_TEST_SCALE gives how many tenths of COUNT are generated
//   TARGET FILE...              runs these inputs
//   TARGET --seeds DIRECTORY    writes the target's seeds there, as a fuzzer's first inputs
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "store/base/random.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/read_text.h"
#include "tests/support/test_scale.h"

namespace siltfs::testing {
namespace {

// Runs the input in a separate allocation, so that AddressSanitizer detects reads beyond it.
void RunInput(ByteView input) {
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[input.size()]);
  std::copy(input.begin(), input.end(), copy.get());
  LLVMFuzzerTestOneInput(copy.get(), input.size());
}

// Makes an input from a number: mostly short, with random bytes, few different bytes, or repeated
// bytes.
Bytes MakeUp(uint64_t seed) {
  Random random(seed);
  Bytes input(random.Below(random.OneIn(20) ? 5000 : 200));
  random.Fill(input);
  if (random.OneIn(3)) {
    for (uint8_t& byte : input) byte &= 3;
  }
  if (random.OneIn(3)) {
    for (size_t i = input.size() / 2; i < input.size(); ++i) input[i] = input[i / 2];
  }
  return input;
}

size_t LengthBelow(Random& random, size_t bound) {
  return bound == 0 ? 0 : random.Below(std::min<size_t>(bound, random.OneIn(4) ? bound : 16));
}

// A number at or near a boundary of integer types.
uint64_t Telling(Random& random) {
  static constexpr std::array<uint64_t, 12> kNumbers = {
      0, 1, 2, 0x7f, 0x80, 0xff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff, UINT64_MAX};
  return kNumbers[random.Below(kNumbers.size())] + (random.OneIn(4) ? random.Below(8) : 0);
}

void ChangeOnce(Random& random, const std::vector<Bytes>& others, Bytes& input) {
  const size_t at = input.empty() ? 0 : random.Below(input.size());
  const size_t length = LengthBelow(random, input.size() - at);
  const auto begin = input.begin() + static_cast<ptrdiff_t>(at);
  switch (random.Below(7)) {
    case 0:
      if (!input.empty()) input[at] ^= static_cast<uint8_t>(1u << random.Below(8));
      break;
    case 1: {  // a number of any width
      const uint64_t number = Telling(random);
      const size_t width = size_t{1} << random.Below(4);
      for (size_t i = 0; i < width && at + i < input.size(); ++i)
        input[at + i] = static_cast<uint8_t>(number >> (8 * i));
      break;
    }
    case 2:
      input.erase(begin, begin + static_cast<ptrdiff_t>(length));
      break;
    case 3: {  // a copy of bytes from elsewhere
      const Bytes copy(begin, begin + static_cast<ptrdiff_t>(length));
      const size_t to = input.empty() ? 0 : random.Below(input.size());
      if (random.OneIn(2)) {
        input.insert(input.begin() + static_cast<ptrdiff_t>(to), copy.begin(), copy.end());
      } else {
        for (size_t i = 0; i < copy.size() && to + i < input.size(); ++i) input[to + i] = copy[i];
      }
      break;
    }
    case 4:
      for (size_t i = 0; i < length; ++i) input[at + i] = static_cast<uint8_t>(random.Next());
      break;
    case 5:
      if (random.OneIn(4)) input.resize(at);
      break;
    default: {  // the end of another input
      const Bytes& other = others[random.Below(others.size())];
      if (other.empty() || !random.OneIn(4)) break;
      const size_t from = random.Below(other.size());
      input.resize(at);
      input.insert(input.end(), other.begin() + static_cast<ptrdiff_t>(from), other.end());
    }
  }
}

Bytes Changed(const std::vector<Bytes>& seeds, uint64_t number) {
  Random random(number);
  Bytes input = seeds[random.Below(seeds.size())];
  for (uint64_t changes = 1 + random.Below(6); changes > 0; --changes)
    ChangeOnce(random, seeds, input);
  return input;
}

std::optional<Bytes> ReadFile(const std::string& path) {
  const std::optional<std::string> text = ReadTextOf(path);
  if (!text) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    return std::nullopt;
  }
  return Bytes(text->begin(), text->end());
}

int RunFiles(const std::vector<std::string>& paths) {
  int code = 0;
  for (const std::string& path : paths) {
    const auto input = ReadFile(path);
    if (input) RunInput(*input);
    if (!input) code = 1;
  }
  return code;
}

int RunMany(uint64_t count, const std::optional<std::string>& directory) {
  std::vector<Bytes> seeds = FuzzSeeds();
  if (directory) {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(*directory))
      paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) {
      auto input = ReadFile(path);
      if (!input) return 1;
      seeds.push_back(std::move(*input));
    }
  }
  for (const Bytes& seed : seeds) RunInput(seed);
  for (uint64_t number = 0; number < count; ++number)
    RunInput(seeds.empty() ? MakeUp(number) : Changed(seeds, number));
  return 0;
}

int WriteSeeds(const std::string& directory) {
  int number = 0;
  for (const Bytes& seed : FuzzSeeds()) {
    const std::string path = directory + "/seed-" + std::to_string(number++);
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()),
               static_cast<std::streamsize>(seed.size()));
    if (!file.flush()) {
      std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
      return 1;
    }
  }
  return 0;
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s COUNT [DIRECTORY] | FILE... | --seeds DIRECTORY\n", argv[0]);
    return 2;
  }
  if (argc == 3 && std::strcmp(argv[1], "--seeds") == 0) return WriteSeeds(argv[2]);
  uint64_t count = 0;
  const char* const end = argv[1] + std::strlen(argv[1]);
  if (argc <= 3 && std::from_chars(argv[1], end, count).ptr == end)
    return RunMany(Share(count), argc == 3 ? std::optional<std::string>(argv[2]) : std::nullopt);
  return RunFiles(std::vector<std::string>(argv + 1, argv + argc));
}

}  // namespace
}  // namespace siltfs::testing

int main(int argc, char** argv) { return siltfs::testing::Main(argc, argv); }
