#include "index/silt/trie_codec.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace siltfs {
namespace {

constexpr uint32_t kMaxSymbols = TrieCodec::kHuffmanLeaves + 1;

struct Weights {
  std::array<uint32_t, kMaxSymbols> of{};
};

// Returns the probability of each number of left leaves, times 2^n.
Weights Binomial(uint32_t n) {
  Weights weights;
  weights.of[0] = 1;
  for (uint32_t i = 1; i <= n; ++i) weights.of[i] = weights.of[i - 1] * (n - i + 1) / i;
  return weights;
}

// Huffman's algorithm. Among equal weights it takes the node made first; symbols, in their order,
// come before all other nodes. So the lengths are the same on every machine.
std::array<uint8_t, kMaxSymbols> CodeLengths(const Weights& weights, uint32_t symbols) {
  struct Node {
    uint32_t weight;
    uint32_t parent;
    bool taken;
  };
  std::array<Node, 2 * kMaxSymbols> nodes{};
  uint32_t count = symbols;
  for (uint32_t i = 0; i < symbols; ++i) nodes[i].weight = weights.of[i];
  auto take_lightest = [&] {
    uint32_t lightest = count;
    for (uint32_t i = 0; i < count; ++i) {
      if (nodes[i].taken) continue;
      if (lightest == count || nodes[i].weight < nodes[lightest].weight) lightest = i;
    }
    nodes[lightest].taken = true;
    return lightest;
  };
  while (count < 2 * symbols - 1) {
    const uint32_t one = take_lightest();
    const uint32_t other = take_lightest();
    nodes[count].weight = nodes[one].weight + nodes[other].weight;
    nodes[one].parent = nodes[other].parent = count;
    ++count;
  }
  std::array<uint8_t, kMaxSymbols> lengths{};
  for (uint32_t i = 0; i < symbols; ++i) {
    for (uint32_t at = i; at != count - 1; at = nodes[at].parent) ++lengths[i];
  }
  return lengths;
}

uint16_t Reverse(uint32_t bits, unsigned length) {
  uint32_t reversed = 0;
  for (unsigned i = 0; i < length; ++i) reversed |= (bits >> i & 1) << (length - 1 - i);
  return static_cast<uint16_t>(reversed);
}

// Returns how many low bits of a folded deviation are written as they are. This is about the binary
// logarithm of the standard deviation, sqrt(n) / 2.
unsigned PlainBits(uint32_t leaves) {
  return static_cast<unsigned>(std::bit_width(leaves)) / 2 - 1;
}

}  // namespace

const TrieCodec& TrieCodec::Of(TrieOrdering ordering) {
  static const TrieCodec exact(TrieOrdering::kExact);
  static const TrieCodec weak(TrieOrdering::kWeak);
  return ordering == TrieOrdering::kWeak ? weak : exact;
}

TrieCodec::TrieCodec(TrieOrdering ordering) : ordering_(ordering), trie_bits_{} {
  for (uint32_t leaves = 2; leaves <= kHuffmanLeaves; ++leaves) {
    MakeCodes(leaves);
    MakeShorts(leaves);
  }
  for (uint32_t leaves = 2; leaves <= kLookLeaves; ++leaves) MakeTrieBits(leaves);
}

uint32_t TrieCodec::Symbols(uint32_t leaves) const {
  return ordering_ == TrieOrdering::kWeak ? leaves : leaves + 1;
}

// Makes canonical codes: shorter ones before longer ones, and equally long ones in the order of the
// symbols.
void TrieCodec::MakeCodes(uint32_t leaves) {
  Weights weights = Binomial(leaves);
  if (ordering_ == TrieOrdering::kWeak) weights.of[0] += weights.of[leaves];
  const auto lengths = CodeLengths(weights, Symbols(leaves));
  uint32_t bits = 0;
  for (unsigned length = 1; length <= 16; ++length, bits <<= 1) {
    for (uint32_t left = 0; left < Symbols(leaves); ++left) {
      if (lengths[left] != length) continue;
      codes_[leaves][left] = {.bits = Reverse(bits, length),
                              .length = static_cast<uint8_t>(length)};
      ++bits;
    }
  }
}

void TrieCodec::MakeShorts(uint32_t leaves) {
  for (uint32_t left = 0; left < Symbols(leaves); ++left) {
    const Code code = codes_[leaves][left];
    if (code.length > kShortBits) continue;
    for (size_t next = code.bits; next < kShorts; next += size_t{1} << code.length) {
      shorts_[leaves][next] = {.left = static_cast<uint8_t>(left), .length = code.length};
    }
  }
}

// Must be called after the calls for fewer leaves, because it uses their tables.
void TrieCodec::MakeTrieBits(uint32_t leaves) {
  // Returns the end of a subtree that begins at bit `from` of `next`; more than kLookBits if it
  // does not fit.
  auto end_of = [&](size_t next, unsigned from, uint32_t subtree) -> unsigned {
    if (subtree < 2) return from;
    // The zeros above the known bits may give a wrong length, but then the end exceeds kLookBits.
    const unsigned bits = trie_bits_[subtree][next >> from];
    return bits == 0 ? kLookBits + 1 : from + bits;
  };
  for (size_t next = 0; next < kLooks; ++next) {
    unsigned from = 0;
    uint32_t left = 0;
    while (from <= kLookBits) {
      const Short code = shorts_[leaves][(next >> from) % kShorts];
      from = code.length == 0 ? kLookBits + 1 : from + code.length;
      left = code.left;
      if (left != 0 && left != leaves) break;
    }
    if (from <= kLookBits) from = end_of(next, from, left);
    if (from <= kLookBits) from = end_of(next, from, leaves - left);
    trie_bits_[leaves][next] = static_cast<uint8_t>(from <= kLookBits ? from : 0);
  }
}

uint32_t TrieCodec::ReadLong(BitReader& in, uint32_t leaves, uint64_t next) const {
  for (uint32_t left = 0; left < Symbols(leaves); ++left) {
    const Code code = codes_[leaves][left];
    if (code.length <= kShortBits || (next & ((1U << code.length) - 1)) != code.bits) continue;
    in.Skip(code.length);
    return left;
  }
  assert(false);  // a Huffman code is complete: any bits begin with a code word
  return 0;
}

void TrieCodec::WriteDeviation(BitWriter& out, uint32_t leaves, uint32_t left) const {
  const int64_t deviation = int64_t{left} - int64_t{leaves / 2};
  const auto folded = static_cast<uint64_t>(deviation < 0 ? -2 * deviation - 1 : 2 * deviation);
  const unsigned plain = PlainBits(leaves);
  const uint64_t coded = (folded >> plain) + 1;
  const unsigned below_first = static_cast<unsigned>(std::bit_width(coded)) - 1;
  out.Write(0, below_first);
  out.Write(1, 1);
  out.Write(coded - (uint64_t{1} << below_first), below_first);
  out.Write(folded & ((uint64_t{1} << plain) - 1), plain);
}

uint32_t TrieCodec::ReadDeviation(BitReader& in, uint32_t leaves) const {
  // WriteDeviation never writes 32 zeros before the first one bit. This bound ends the read also if
  // other bits are read.
  const uint64_t next = in.Peek();
  const auto below_first = static_cast<unsigned>(std::countr_zero(next | uint64_t{1} << 32));
  const unsigned plain = PlainBits(leaves);
  in.Skip(below_first + 1);
  uint64_t rest = next >> (below_first + 1);
  if (below_first > 10) rest = in.Peek();  // these bits are enough for both numbers
  const uint64_t coded = (uint64_t{1} << below_first) | (rest & ((uint64_t{1} << below_first) - 1));
  in.Skip(below_first);
  rest >>= below_first;
  const uint64_t folded = (coded - 1) << plain | (rest & ((uint64_t{1} << plain) - 1));
  in.Skip(plain);
  const auto half = static_cast<int64_t>(folded >> 1);
  const int64_t deviation = (folded & 1) != 0 ? -half - 1 : half;
  const int64_t left = int64_t{leaves / 2} + deviation;
  return left < 0 || left > int64_t{leaves} ? leaves + 1 : static_cast<uint32_t>(left);
}

}  // namespace siltfs
