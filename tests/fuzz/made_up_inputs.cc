// Runs a fuzz target without a fuzzer:
//   TARGET COUNT      so many inputs, made up from the numbers 0, 1, ...
//   TARGET FILE...    these inputs, as a fuzzer has left them
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

#include "store/base/random.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {
namespace {

// In memory of its own, so that a look beyond it is noticed where addresses are checked.
void RunInput(ByteView input) {
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[input.size()]);
  std::copy(input.begin(), input.end(), copy.get());
  LLVMFuzzerTestOneInput(copy.get(), input.size());
}

// Mostly short, and with every kind of byte: any, few, or repeated.
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

int RunFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", path);
    return 1;
  }
  const Bytes input{std::istreambuf_iterator<char>(file), {}};
  RunInput(input);
  return 0;
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s COUNT | FILE...\n", argv[0]);
    return 2;
  }
  uint64_t count = 0;
  const char* const end = argv[1] + std::strlen(argv[1]);
  if (argc == 2 && std::from_chars(argv[1], end, count).ptr == end) {
    for (uint64_t seed = 0; seed < count; ++seed) RunInput(MakeUp(seed));
    return 0;
  }
  int code = 0;
  for (int i = 1; i < argc; ++i) code |= RunFile(argv[i]);
  return code;
}

}  // namespace
}  // namespace siltfs::testing

int main(int argc, char** argv) { return siltfs::testing::Main(argc, argv); }
