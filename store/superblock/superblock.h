// What a store is: the choices made at mkfs, the secrets drawn then, and how it was left. Two
// copies of 4,096 bytes, in STORE/superblock.0 and STORE/superblock.1. Byte by byte in
// docs/format.md ("Superblock").
//
// Thread-safety: a Superblock is a plain value; reads may run at any time, writes one at a time
// (the store's lock). Durability: each copy is replaced as a whole and is durable before the next
// one is touched, so that after a crash at least one is whole; the one with the higher generation
// counts.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "store/base/bytes.h"
#include "store/base/chunk_name.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/segment/block_codec.h"
#include "store/segment/store_uuid.h"

namespace siltfs {

inline constexpr uint32_t kStoreFormatVersion = 1;
inline constexpr size_t kSuperblockSize = 4096;
inline constexpr uint32_t kMinChunkSize = 64;
inline constexpr uint32_t kMaxChunkSize = kMaxBlockPlainBytes;  // a chunk must fit a block
inline constexpr uint32_t kMinBlockPlainBytes = 16U << 10;

// Features of a store, one bit each. What an unknown bit does depends on the word: compat nothing,
// ro_compat refuses to open for writing, incompat refuses to open.
//
// Segments are noted for secondary copies. Code that does not write the notes may read the store.
inline constexpr uint64_t kRoCompatSecondaryCopies = 1;
inline constexpr uint64_t kKnownRoCompatFeatures = kRoCompatSecondaryCopies;
inline constexpr uint64_t kKnownIncompatFeatures = 0;

struct Superblock {
  uint64_t compat_features = 0;
  uint64_t ro_compat_features = 0;
  uint64_t incompat_features = 0;

  StoreUuid uuid;
  int64_t created_ns = 0;         // nanoseconds since 1970, UTC
  uint64_t rabin_polynomial = 0;  // the chunker's, drawn at mkfs
  TagKey::Secret tag_secret{};    // drawn at mkfs
  uint32_t chunk_min = 2U << 10;
  uint32_t chunk_avg = 8U << 10;
  uint32_t chunk_max = 64U << 10;
  Compression compression;
  uint32_t block_plain_bytes = 128U << 10;  // a block is closed when it holds this much
  uint32_t segment_bytes = kMaxSegmentTargetSize;
  uint8_t index_engine = 0;   // IndexEngine's number; index/ says whether there is such an engine
  uint64_t index_memory = 0;  // bytes

  uint64_t generation = 0;   // counts the writes
  uint64_t last_commit = 0;  // the last commit known to have completed when it was written
  bool clean = false;        // written by an unmount, after which nothing was changed

  bool operator==(const Superblock&) const = default;
};

// kInvalidArgument, in words, for values that make no sense.
Status ValidateSuperblock(const Superblock& superblock);

// kSuperblockSize bytes.
std::string EncodeSuperblock(const Superblock& superblock);
// kCorruption where the bytes are not what was written; kNeedsNewer for another format version.
// Features are not judged.
Result<Superblock> DecodeSuperblock(ByteView bytes);

enum class StoreAccess : uint8_t { kReadOnly, kReadWrite };

// kNeedsNewer if the store uses a feature that forbids this access to this code.
Status CheckFeatures(const Superblock& superblock, StoreAccess access);

struct SuperblockState {
  Superblock superblock;  // the valid copy with the highest generation
  std::array<bool, 2> copies_valid{};
  uint64_t highest_commit =
      0;  // last_commit of whichever valid copy knows more: metadata older than that is damage (I5)
};

std::string SuperblockPath(const std::string& store, int copy);  // copy is 0 or 1

// A directory that is there while mkfs makes the store, and remains if it does not get to its end.
std::string UnfinishedStorePath(const std::string& store);
// Why neither copy of the superblock is there: kNotFound, with a sentence for people.
Status NoStoreAt(Env& env, const std::string& store);

// One copy by itself. kNotFound if the file is not there, kCorruption if it is not valid,
// kNeedsNewer if it is whole but of another version; features are not looked at.
Result<Superblock> ReadSuperblockCopy(Env& env, const std::string& store, int copy);

// kNotFound if `store` has neither file: there is no siltfs store. kCorruption if none of the
// copies is valid. kNeedsNewer as above; if any copy is whole but of another version, too.
Result<SuperblockState> ReadSuperblock(Env& env, const std::string& store,
                                       StoreAccess access = StoreAccess::kReadWrite);

// Raises superblock.generation by one and writes copy 0, then copy 1. kInvalidArgument if it is not
// valid. After a failure either copy may be the old or the new one.
Status WriteSuperblock(Env& env, const std::string& store, Superblock& superblock);

}  // namespace siltfs
