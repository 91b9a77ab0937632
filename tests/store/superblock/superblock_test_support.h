// A superblock with a distinct value in every field.
#pragma once

#include "store/superblock/superblock.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

template <typename T>
T Must(Result<T> result) {
  REQUIRE_OK(result);
  return std::move(result).value();
}

inline Superblock MakeSuperblock() {
  Superblock superblock;
  superblock.compat_features = 0x8000000000000001;
  for (size_t i = 0; i < StoreUuid::kSize; ++i)
    superblock.uuid.bytes[i] = static_cast<uint8_t>(0xa0 + i);
  superblock.created_ns = 1700000000123456789;
  superblock.rabin_polynomial = 0x3da3358b4dc173;
  for (size_t i = 0; i < TagKey::kSecretSize; ++i)
    superblock.tag_secret[i] = static_cast<uint8_t>(i);
  superblock.chunk_min = 4096;
  superblock.chunk_avg = 16384;
  superblock.chunk_max = 131072;
  superblock.compression = {BlockCodecId::kZstd, -7};
  superblock.block_plain_bytes = 256U << 10;
  superblock.segment_bytes = 16U << 20;
  superblock.index_engine = 3;
  superblock.index_memory = 0x123456789a;
  superblock.generation = 6;
  superblock.last_commit = 0xabcdef0123;
  superblock.clean = true;
  return superblock;
}

}  // namespace siltfs::testing
