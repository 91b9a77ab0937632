#include "index/silt/trie_builder.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

namespace siltfs {
namespace {

// A bucket costs 4 bytes, that is 0.15 bits per key; a lookup decodes half a bucket.
constexpr uint32_t kKeysOfABucket = 224;
// In a sparse index a bucket has several blocks, because the blocks of a bucket share its topmost
// nodes.
constexpr uint32_t kBlocksOfABucket = 4;
constexpr uint32_t kMaxKeysOfABucket = 512;

uint32_t KeysOfABucket(const TrieOptions& options) {
  if (options.bucket_entries > 0) return options.bucket_entries;
  const uint64_t blocks = uint64_t{kBlocksOfABucket} * options.block_entries;
  return static_cast<uint32_t>(std::clamp<uint64_t>(blocks, kKeysOfABucket, kMaxKeysOfABucket));
}

uint32_t NumberOfBuckets(const TrieOptions& options, uint64_t expected) {
  const uint64_t keys = KeysOfABucket(options);
  expected = std::min<uint64_t>(expected, std::numeric_limits<uint32_t>::max() - keys);
  return static_cast<uint32_t>(std::max<uint64_t>(1, (expected + keys / 2) / keys));
}

}  // namespace

TrieBuilder::TrieBuilder(const TrieOptions& options, uint64_t expected)
    : buckets_(NumberOfBuckets(options, expected)) {
  assert(options.block_entries > 0 && options.skip_bits <= TrieOptions::kMaxSkipBits);
  index_.options_ = options;
  index_.codec_ = &TrieCodec::Of(options.ordering);
}

void TrieBuilder::Add(const ChunkName& key) {
  const TrieKey next = TrieKey::Of(key, index_.options_.skip_bits, buckets_);
  const unsigned shared = last_.FirstDifference(next);
  if (added_ == 0) {
    first_word_ = key.Prefix64();
  } else {
    const bool in_order =
        next.bucket > last_.bucket ||
        (next.bucket == last_.bucket && shared < TrieKey::kKeyBits && next.Bit(shared));
    const unsigned skip_bits = index_.options_.skip_bits;
    const bool foreign = skip_bits > 0 && ((key.Prefix64() ^ first_word_) >> (64 - skip_bits)) != 0;
    if (!in_order || foreign) wrong_ = true;
  }
  if (added_ == std::numeric_limits<uint32_t>::max()) wrong_ = true;
  if (wrong_) return;
  if (next.bucket != bucket_) {
    EndBucketsBefore(next.bucket);
  } else if (added_ > bucket_rank_) {
    shared_.push_back(static_cast<uint8_t>(shared));
  }
  if (index_.options_.ordering == TrieOrdering::kExact) keys_.push_back(next);
  last_ = next;
  ++added_;
}

// Writes the bucket being filled and begins `bucket`; the buckets between are empty.
void TrieBuilder::EndBucketsBefore(uint64_t bucket) {
  index_.buckets_.Append({.rank = bucket_rank_, .bit = tries_.bits()});
  WriteTrie();
  const TrieBuckets::Start start{.rank = static_cast<uint32_t>(added_), .bit = tries_.bits()};
  for (uint64_t empty = uint64_t{bucket_} + 1; empty < bucket; ++empty) {
    index_.buckets_.Append(start);
  }
  bucket_ = static_cast<uint32_t>(bucket);
  bucket_rank_ = start.rank;
  shared_.clear();
  keys_.clear();
}

bool TrieBuilder::NeedsNode(uint32_t first, uint32_t leaves) const {
  return leaves > 1 &&
         (index_.options_.block_entries == 1 || !index_.InOneBlock(bucket_rank_ + first, leaves));
}

// Links the nodes to a tree, the Cartesian tree of the numbers in shared_; returns its root.
uint32_t TrieBuilder::LinkPartings() {
  const auto count = static_cast<uint32_t>(shared_.size());
  partings_.resize(count);
  open_.clear();
  for (uint32_t node = 0; node < count; ++node) {
    uint32_t below = kNone;
    while (!open_.empty() && shared_[open_.back()] > shared_[node]) {
      below = open_.back();
      open_.pop_back();
    }
    partings_[node] = {.left = below, .right = kNone};
    if (!open_.empty()) partings_[open_.back()].right = node;
    open_.push_back(node);
  }
  return open_.front();
}

// Writes the nodes of the subtree above depth `until`. At these nodes all keys of the subtree go to
// the same side.
void TrieBuilder::WriteOneSided(const Subtree& subtree, unsigned until) {
  const bool exact = index_.options_.ordering == TrieOrdering::kExact;
  for (unsigned depth = subtree.depth; depth < until; ++depth) {
    const bool all_left = exact && !keys_[subtree.first].Bit(depth);
    index_.codec_->Write(tries_, subtree.leaves, all_left ? subtree.leaves : 0);
  }
}

void TrieBuilder::WriteTrie() {
  const auto leaves = static_cast<uint32_t>(added_ - bucket_rank_);
  if (leaves == 0 || !NeedsNode(0, leaves)) return;
  // Pending right subtrees, each deeper than the previous.
  std::array<Subtree, TrieKey::kKeyBits> later;
  size_t waiting = 0;
  Subtree at{.node = LinkPartings(), .first = 0, .leaves = leaves, .depth = 0};
  for (;;) {
    const unsigned parting = shared_[at.node];
    WriteOneSided(at, parting);
    const uint32_t left = at.node + 1 - at.first;
    const uint32_t right = at.leaves - left;
    index_.codec_->Write(tries_, at.leaves, left);
    const Parting below = partings_[at.node];
    if (NeedsNode(at.first + left, right)) {
      later[waiting++] = {
          .node = below.right, .first = at.first + left, .leaves = right, .depth = parting + 1};
    }
    if (NeedsNode(at.first, left)) {
      at = {.node = below.left, .first = at.first, .leaves = left, .depth = parting + 1};
    } else if (waiting > 0) {
      at = later[--waiting];
    } else {
      return;
    }
  }
}

Result<TrieIndex> TrieBuilder::Finish() {
  if (wrong_) {
    return Status(StatusCode::kInvalidArgument,
                  "trie: keys are out of order, of another partition, or too many");
  }
  EndBucketsBefore(buckets_);
  index_.entries_ = static_cast<uint32_t>(added_);
  index_.bits_ = tries_.bits();
  index_.buckets_.Append({.rank = index_.entries_, .bit = index_.bits_});
  index_.buckets_.ShrinkToFit();
  index_.tries_ = tries_.Take(TrieIndex::kPadding);
  return std::move(index_);
}

}  // namespace siltfs
