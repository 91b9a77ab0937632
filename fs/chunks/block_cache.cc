#include "fs/chunks/block_cache.h"

namespace siltfs {

DecodedBlockPtr BlockCache::Begin(uint64_t key, DecodingPtr& decoding, bool& mine) {
  MutexLock lock(mutex_);
  if (auto block = blocks_.Get(key)) return block;
  DecodingPtr& entry = decoding_[key];
  mine = !entry;
  if (mine) entry = std::make_shared<Decoding>();
  decoding = entry;
  return nullptr;
}

Result<DecodedBlockPtr> BlockCache::Finish(uint64_t key, Decoding& decoding, const Decode& decode) {
  auto block = decode();
  ++decoded_;
  MutexLock lock(mutex_);
  if (block.ok()) {
    decoding.block = *block;
    const bool has_deltas = !(*block)->bases().empty();
    const bool whole_only = (key & kWholeOnly) != 0;
    // A block without deltas has one key, however it was decoded.
    const uint64_t cached = has_deltas ? key : key & ~kWholeOnly;
    if (!(*block)->any_missing() || (has_deltas && whole_only))
      blocks_.Put(cached, *block, (*block)->memory_bytes());
  }
  decoding.done = true;
  decoding_.erase(key);
  finished_.NotifyAll();
  return block;
}

Result<DecodedBlockPtr> BlockCache::Get(const Place& place, const Decode& decode) {
  return Get(KeyOf(place), decode);
}

Result<DecodedBlockPtr> BlockCache::GetWhole(const Place& place, const Decode& decode) {
  if (auto block = blocks_.Get(KeyOf(place))) return block;
  return Get(KeyOf(place) | kWholeOnly, decode);
}

Result<DecodedBlockPtr> BlockCache::Get(uint64_t key, const Decode& decode) {
  for (;;) {
    DecodingPtr decoding;
    bool mine = false;
    if (auto block = Begin(key, decoding, mine)) return block;
    if (mine) return Finish(key, *decoding, decode);
    MutexLock lock(mutex_);
    while (!decoding->done) finished_.Wait(mutex_);
    if (decoding->block) return decoding->block;
  }
}

DecodedBlockPtr BlockCache::Find(const Place& place) { return blocks_.Get(KeyOf(place)); }

DecodedBlockPtr BlockCache::FindWhole(const Place& place) {
  if (auto block = Find(place)) return block;
  return blocks_.Get(KeyOf(place) | kWholeOnly);
}

bool BlockCache::Prefetch(const Place& place, const Decode& decode) {
  const uint64_t key = KeyOf(place);
  DecodingPtr decoding;
  bool mine = false;
  if (Begin(key, decoding, mine) || !mine) return true;
  return Finish(key, *decoding, decode).ok();
}

}  // namespace siltfs
