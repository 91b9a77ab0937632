// All kernels of the chunker find the same windows as the scalar kernel. They also find the same
// cut points, however the stream is split into pieces.
//
// The input: a polynomial; a limit for the second condition; min, avg and max; the split of the
// stream; and parts of the data. A part is literal bytes, a run of one byte, random bytes, or a
// repetition of earlier data.
#include <array>
#include <memory>
#include <vector>

#include "chunker/chunker.h"
#include "store/base/random.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {
namespace {

constexpr size_t kMostData = 100'000;

RabinPolynomial ChoosePolynomial(FuzzInput& input) {
  static const std::vector<RabinPolynomial> polynomials = [] {
    std::vector<RabinPolynomial> drawn;
    for (uint64_t seed = 0; seed < 16; ++seed) {
      Bytes random(RabinPolynomial::kRandomBytes);
      Random(seed).Fill(random);
      drawn.push_back(RabinPolynomial::FromRandom(random).value());
    }
    return drawn;
  }();
  return polynomials[input.Number(1) % polynomials.size()];
}

ChunkerParameters ChooseParameters(FuzzInput& input, RabinPolynomial polynomial) {
  const auto min = static_cast<uint32_t>(input.Between(64, 3000, 2));
  const auto avg = static_cast<uint32_t>(input.Between(2 * min, 2 * min + 9000, 2));
  const auto max = static_cast<uint32_t>(input.Between(2 * avg, 2 * avg + 70'000, 3));
  return {.min = min, .avg = avg, .max = max, .polynomial = polynomial};
}

Bytes MakeData(FuzzInput& input) {
  Bytes data;
  while (!input.empty() && data.size() < kMostData) {
    switch (input.Number(1) % 4) {
      case 0: {  // literal
        const ByteView bytes = input.Take(input.Number(1));
        data.insert(data.end(), bytes.begin(), bytes.end());
        break;
      }
      case 1: {  // a run
        const auto byte = static_cast<uint8_t>(input.Number(1));
        data.insert(data.end(), input.Number(2) % 9000, byte);
        break;
      }
      case 2: {  // random bytes
        Bytes bytes(input.Number(2) % 20'000);
        Random(input.Number(2)).Fill(bytes);
        data.insert(data.end(), bytes.begin(), bytes.end());
        break;
      }
      default: {  // a repetition of earlier data
        const size_t back = input.Number(2) + 1;
        for (size_t n = input.Number(2) % 9000; n > 0 && back <= data.size(); --n)
          data.push_back(data[data.size() - back]);
      }
    }
  }
  return data;
}

std::vector<uint64_t> Scan(const ChunkerKernel& kernel, const CutCondition& condition,
                           ByteView data) {
  const size_t windows = data.size() - kWindowSize + 1;
  std::vector<uint64_t> words((windows + 63) / 64);
  if (kernel.scan != nullptr) {
    kernel.scan(condition, data.data(), windows, words.data());
    return words;
  }
  for (size_t end = kWindowSize; end <= data.size(); ++end) {
    end = FindMatchScalar(condition, data.data(), end, data.size());
    if (end == kNoMatch) break;
    words[(end - kWindowSize) / 64] |= uint64_t{1} << ((end - kWindowSize) % 64);
  }
  return words;
}

std::vector<uint32_t> CutInPieces(std::shared_ptr<const ChunkerTables> tables, ByteView data,
                                  uint64_t seed, uint64_t largest) {
  Random random(seed);
  Chunker chunker(std::move(tables));
  std::vector<uint32_t> lengths;
  while (!data.empty()) {
    ByteView piece = data.first(std::min<size_t>(data.size(), 1 + random.Below(largest)));
    data = data.subspan(piece.size());
    size_t before = chunker.pending();
    while (const std::optional<size_t> cut = chunker.Next(piece)) {
      lengths.push_back(static_cast<uint32_t>(before + *cut));
      piece = piece.subspan(*cut);
      before = 0;
    }
  }
  if (chunker.pending() > 0) lengths.push_back(static_cast<uint32_t>(chunker.pending()));
  return lengths;
}

void Compare(FuzzInput input) {
  const RabinPolynomial polynomial = ChoosePolynomial(input);
  const uint64_t limit = input.Between(1, (uint64_t{1} << RabinPolynomial::kDegree) - 1, 7);
  const ChunkerParameters parameters = ChooseParameters(input, polynomial);
  const uint64_t split_seed = input.Number(1);
  const uint64_t largest_piece = input.Between(1, 20'000, 2);
  const Bytes data = MakeData(input);
  const ChunkerKernel& scalar = RunnableKernels().front();
  const auto tables = ChunkerTables::Create(parameters, scalar).value();
  const std::vector<uint32_t> lengths = tables->CutAll(data);
  MustHold(CutInPieces(tables, data, split_seed, largest_piece) == lengths,
           "the scalar kernel cuts a split stream alike");

  // Compares the matches of the store's own condition, and of a second condition. The limit of the
  // second one is arbitrary, so it may match at every window, at some windows, or at none.
  const CutCondition any(RabinTables(polynomial), limit);
  for (const ChunkerKernel& kernel : RunnableKernels().subspan(1)) {
    const auto others = ChunkerTables::Create(parameters, kernel).value();
    MustHold(others->CutAll(data) == lengths, kernel.name);
    MustHold(CutInPieces(others, data, split_seed, largest_piece) == lengths, kernel.name);
    if (data.size() < kFewestWindows + kWindowSize - 1) continue;
    for (const CutCondition* condition : {&any, &tables->condition()}) {
      MustHold(Scan(kernel, *condition, data) == Scan(scalar, *condition, data), kernel.name);
    }
  }
}

}  // namespace

std::vector<Bytes> FuzzSeeds() { return {}; }

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::Compare(siltfs::testing::FuzzInput(data, size));
  return 0;
}
