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
    blocks_.Put(key, *block, (*block)->memory_bytes());
  }
  decoding.done = true;
  decoding_.erase(key);
  finished_.NotifyAll();
  return block;
}

Result<DecodedBlockPtr> BlockCache::Get(const Place& place, const Decode& decode) {
  const uint64_t key = KeyOf(place);
  for (;;) {
    DecodingPtr decoding;
    bool mine = false;
    if (auto block = Begin(key, decoding, mine)) {
      hits_.Add(1);
      return block;
    }
    if (mine) return Finish(key, *decoding, decode);
    MutexLock lock(mutex_);
    while (!decoding->done) finished_.Wait(mutex_);
    if (decoding->block) return decoding->block;
  }
}

DecodedBlockPtr BlockCache::Find(const Place& place) {
  auto block = blocks_.Get(KeyOf(place));
  if (block) hits_.Add(1);
  return block;
}

bool BlockCache::Prefetch(const Place& place, const Decode& decode) {
  const uint64_t key = KeyOf(place);
  DecodingPtr decoding;
  bool mine = false;
  if (Begin(key, decoding, mine) || !mine) return true;
  return Finish(key, *decoding, decode).ok();
}

}  // namespace siltfs
