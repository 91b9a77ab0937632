#include "index/silt/trie_index.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "index/silt/trie_key.h"

namespace siltfs {
namespace {

constexpr uint8_t kFormat = 1;

Status Corrupt(const char* cause) { return {StatusCode::kCorruption, cause}; }

// Skips a trie in which every key has a leaf.
void SkipTrie(const TrieCodec& codec, BitReader& in, uint32_t leaves) {
  // Pending right subtrees, each deeper than the previous.
  std::array<uint32_t, TrieKey::kKeyBits> later;
  size_t waiting = 0;
  for (;;) {
    if (leaves >= 2) {
      if (leaves <= TrieCodec::kLookLeaves) {
        if (const unsigned bits = codec.TrieBits(in.Peek(), leaves); bits != 0) {
          in.Skip(bits);
          leaves = 0;
          continue;
        }
      }
      const uint32_t left = codec.Read(in, leaves);
      if (left == 0 || left == leaves) continue;  // one-sided
      later[waiting++] = leaves - left;
      leaves = left;
      continue;
    }
    if (waiting == 0) return;
    leaves = later[--waiting];
  }
}

// Skips a trie in which only subtrees that cross a block boundary have nodes. `rank` is the rank of
// the trie's first key.
template <typename InOneBlock>
void SkipSparseTrie(const TrieCodec& codec, BitReader& in, uint32_t rank, uint32_t leaves,
                    InOneBlock in_one_block) {
  std::array<uint32_t, TrieKey::kKeyBits> later;
  size_t waiting = 0;
  for (;;) {
    if (leaves >= 2 && !in_one_block(rank, leaves)) {
      const uint32_t left = codec.Read(in, leaves);
      if (left == 0 || left == leaves) continue;
      later[waiting++] = leaves - left;
      leaves = left;
      continue;
    }
    rank += leaves;
    if (waiting == 0) return;
    leaves = later[--waiting];
  }
}

}  // namespace

uint32_t TrieIndex::blocks() const {
  return entries_ / options_.block_entries + (entries_ % options_.block_entries != 0 ? 1 : 0);
}

size_t TrieIndex::memory_bytes() const {
  return sizeof *this + buckets_.memory_bytes() + tries_.capacity();
}

template <bool kEveryKey>
uint32_t TrieIndex::Find(const ChunkName& key) const {
  if (entries_ == 0) return 0;
  const TrieKey path =
      TrieKey::Of(key, options_.skip_bits, static_cast<uint32_t>(buckets_.size() - 1));
  const TrieBuckets::Start start = buckets_.At(path.bucket);
  uint32_t rank = start.rank;
  uint32_t leaves = buckets_.At(path.bucket + 1).rank - rank;
  BitReader in(tries_.data(), start.bit);
  const bool weak = options_.ordering == TrieOrdering::kWeak;
  auto in_one_block = [this](uint32_t first, uint32_t count) { return InOneBlock(first, count); };
  for (unsigned depth = 0; leaves >= 2; ++depth) {
    if (!kEveryKey && InOneBlock(rank, leaves)) break;
    const uint32_t left = codec_->Read(in, leaves);
    if (weak && left == 0) continue;
    if (!path.Bit(depth)) {
      leaves = left;
    } else {
      if constexpr (kEveryKey) {
        SkipTrie(*codec_, in, left);
      } else {
        SkipSparseTrie(*codec_, in, rank, left, in_one_block);
      }
      rank += left;
      leaves -= left;
    }
  }
  // An absent key may have been led behind the last entry.
  rank = std::min(rank, entries_ - 1);
  return kEveryKey ? rank : rank / options_.block_entries;
}

template uint32_t TrieIndex::Find<true>(const ChunkName& key) const;
template uint32_t TrieIndex::Find<false>(const ChunkName& key) const;

void TrieIndex::Encode(Encoder& out) const {
  out.U8(kFormat)
      .U8(static_cast<uint8_t>(options_.ordering))
      .U8(static_cast<uint8_t>(options_.skip_bits));
  out.U32(options_.block_entries).U32(options_.bucket_entries);
  out.U32(entries_).U32(static_cast<uint32_t>(buckets_.size() - 1)).U64(bits_);
  buckets_.Encode(out);
  out.Raw(ByteView(tries_).first(tries_.size() - kPadding));
}

Result<TrieIndex> TrieIndex::Decode(ByteView bytes) {
  Decoder in(bytes);
  TrieIndex index;
  const uint8_t format = in.U8();
  const uint8_t ordering = in.U8();
  index.options_.skip_bits = in.U8();
  index.options_.block_entries = in.U32();
  index.options_.bucket_entries = in.U32();
  index.entries_ = in.U32();
  const uint32_t buckets = in.U32();
  index.bits_ = in.U64();
  if (!in.ok()) return Corrupt("trie: shorter than its header");
  if (format != kFormat) return Corrupt("trie: of an unknown format");
  if (ordering > static_cast<uint8_t>(TrieOrdering::kWeak) ||
      index.options_.skip_bits > TrieOptions::kMaxSkipBits || index.options_.block_entries == 0 ||
      buckets == 0) {
    return Corrupt("trie: has an invalid header");
  }
  if (index.bits_ / 8 > in.remaining()) return Corrupt("trie: tries missing");
  index.options_.ordering = static_cast<TrieOrdering>(ordering);
  index.codec_ = &TrieCodec::Of(index.options_.ordering);
  const TrieBuckets::Start end{.rank = index.entries_, .bit = index.bits_};
  SILTFS_ASSIGN_OR_RETURN(index.buckets_, TrieBuckets::Decode(in, uint64_t{buckets} + 1, end));
  if (in.remaining() != (index.bits_ + 7) / 8) return Corrupt("trie: tries of another length");
  const ByteView tries = in.Raw(in.remaining());
  if (index.bits_ % 8 != 0 && tries.back() >> (index.bits_ % 8) != 0) {
    return Corrupt("trie: bits behind the last trie");
  }
  index.tries_.reserve(tries.size() + kPadding);
  index.tries_.assign(tries.begin(), tries.end());
  index.tries_.resize(tries.size() + kPadding);
  SILTFS_RETURN_IF_ERROR(index.Check());
  return index;
}

Status TrieIndex::Check() const {
  for (size_t i = 0; i + 1 < buckets_.size(); ++i) {
    SILTFS_RETURN_IF_ERROR(CheckBucket(buckets_.At(i), buckets_.At(i + 1)));
  }
  return Status::Ok();
}

// Checks the bucket's trie: it has as many leaves as the bucket has keys, is no deeper than a key
// is long, and ends where the next trie begins.
Status TrieIndex::CheckBucket(TrieBuckets::Start start, TrieBuckets::Start end) const {
  struct Subtree {
    uint32_t leaves;
    unsigned depth;
  };
  std::array<Subtree, TrieKey::kKeyBits> later;
  size_t waiting = 0;
  BitReader in(tries_.data(), start.bit);
  const bool weak = options_.ordering == TrieOrdering::kWeak;
  const unsigned path_bits = TrieKey::PathBits(options_.skip_bits);
  uint32_t rank = start.rank;
  Subtree at{.leaves = end.rank - start.rank, .depth = 0};
  for (;;) {
    if (at.leaves < 2 || InOneBlock(rank, at.leaves)) {
      rank += at.leaves;
      if (waiting == 0) break;
      at = later[--waiting];
      continue;
    }
    if (at.depth == path_bits) return Corrupt("trie: deeper than a key is long");
    const uint32_t left = codec_->Read(in, at.leaves);
    if (in.position() > end.bit) return Corrupt("trie: is longer than its bucket");
    if (left > at.leaves || (weak && left == at.leaves)) {
      return Corrupt("trie: more leaves in a part than in the whole");
    }
    ++at.depth;
    if (left == 0 || left == at.leaves) continue;
    later[waiting++] = {.leaves = at.leaves - left, .depth = at.depth};
    at.leaves = left;
  }
  return in.position() == end.bit ? Status::Ok() : Corrupt("trie: is shorter than its bucket");
}

}  // namespace siltfs
