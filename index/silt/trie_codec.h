// Codes for the nodes of the entropy-coded trie. The trie stores one number per node: how many of
// the node's n leaves are in its left subtree (SILT, section 3.3). Keys are hashes, so this number
// is binomially distributed, Bin(n, 1/2), and takes about log2(n) / 2 bits.
//
// - n <= 16: Huffman's code of exactly that distribution, one static table for each n.
// - Above: the deviation from n / 2, folded to 0, -1, 1, -2, ... -> 0, 1, 2, 3, ...; its k lowest
//   bits are written as they are, the bits above by Elias' gamma code. k follows the distribution's
//   width, sqrt(n) / 2, so that the gamma code has small numbers to code (the paper has k = 0 for
//   every n).
//
// Weak ordering codes the two splits (n, 0) and (0, n) as one symbol, "one-sided". A lookup passes
// through such a node without testing its key's bit. That is correct for every key of the trie,
// because all keys of the subtree agree on that bit; an absent key is led to an arbitrary place.
// The order of the keys is unchanged.
//
// The codes are part of the file format; tests check that they do not change.
#pragma once

#include <array>
#include <cstdint>

#include "index/flash/bit_stream.h"

namespace siltfs {

enum class TrieOrdering : uint8_t {
  kExact = 0,  // an absent key is led to its neighbours
  kWeak = 1,   // an absent key is led anywhere
};

// Thread-safety: immutable.
class TrieCodec {
 public:
  static constexpr uint32_t kHuffmanLeaves = 16;

  // A code word; its first bit is the lowest.
  struct Code {
    uint16_t bits = 0;
    uint8_t length = 0;
  };

  // The one codec of an ordering; lives as long as the program.
  static const TrieCodec& Of(TrieOrdering ordering);

  TrieOrdering ordering() const { return ordering_; }

  // Writes how many of a node's `leaves` (>= 2) are in its left subtree. left <= leaves; with weak
  // ordering left < leaves, and 0 is "one-sided".
  void Write(BitWriter& out, uint32_t leaves, uint32_t left) const {
    if (leaves <= kHuffmanLeaves) {
      const Code code = codes_[leaves][left];
      out.Write(code.bits, code.length);
    } else {
      WriteDeviation(out, leaves, left);
    }
  }

  // Reads a number that Write has written. For other bits it returns an arbitrary number, and reads
  // at most kMaxBits bits.
  uint32_t Read(BitReader& in, uint32_t leaves) const {
    if (leaves > kHuffmanLeaves) return ReadDeviation(in, leaves);
    const uint64_t next = in.Peek();
    const Short code = shorts_[leaves][next % kShorts];
    if (code.length == 0) return ReadLong(in, leaves, next);
    in.Skip(code.length);
    return code.left;
  }
  static constexpr unsigned kMaxBits = 128;

  // Length in bits of a whole trie with this many leaves that begins with the bits `next`; 0 if the
  // table cannot tell. 2 <= leaves <= kLookLeaves.
  static constexpr uint32_t kLookLeaves = 6;
  unsigned TrieBits(uint64_t next, uint32_t leaves) const {
    return trie_bits_[leaves][next % kLooks];
  }

  // For tests. leaves <= kHuffmanLeaves.
  Code CodeOf(uint32_t leaves, uint32_t left) const { return codes_[leaves][left]; }

 private:
  static constexpr unsigned kShortBits = 8;
  static constexpr size_t kShorts = size_t{1} << kShortBits;
  static constexpr unsigned kLookBits = 12;
  static constexpr size_t kLooks = size_t{1} << kLookBits;

  struct Short {
    uint8_t left = 0;
    uint8_t length = 0;  // 0: the code word is longer than kShortBits
  };

  explicit TrieCodec(TrieOrdering ordering);
  uint32_t Symbols(uint32_t leaves) const;
  void MakeCodes(uint32_t leaves);
  void MakeShorts(uint32_t leaves);
  void MakeTrieBits(uint32_t leaves);
  void WriteDeviation(BitWriter& out, uint32_t leaves, uint32_t left) const;
  uint32_t ReadDeviation(BitReader& in, uint32_t leaves) const;
  uint32_t ReadLong(BitReader& in, uint32_t leaves, uint64_t next) const;

  // Constant after construction.
  TrieOrdering ordering_;
  std::array<std::array<Code, kHuffmanLeaves + 1>, kHuffmanLeaves + 1> codes_;
  std::array<std::array<Short, kShorts>, kHuffmanLeaves + 1> shorts_;
  std::array<std::array<uint8_t, kLooks>, kLookLeaves + 1> trie_bits_;
};

}  // namespace siltfs
