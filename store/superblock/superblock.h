// The superblock of a store: parameters chosen and secrets drawn at mkfs, and the state in which
// the store was left. There are two copies of 4,096 bytes, in STORE/superblock.0 and
// STORE/superblock.1. docs/format.md ("Superblock") describes each byte.
//
// Thread-safety: a Superblock is a plain value. The copies on disk may be read at any time. Only
// one caller at a time may write them, and it must hold the store's lock. Durability: each copy is
// replaced atomically and is durable before the other one is changed. So after a crash at least
// one copy is valid; if both are, the one with the higher generation is used.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/bytes.h"
#include "store/base/chunk_name.h"
#include "store/base/engine_parameter.h"
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

// The feature bits of a store. An unknown bit in compat_features has no effect. An unknown bit in
// ro_compat_features prevents opening for writing; one in incompat_features prevents opening.
//
// kRoCompatSecondaryCopies: metadata notes segments that may hold secondary copies
// (docs/glossary.md). Code that cannot write these notes may read the store.
inline constexpr uint64_t kRoCompatSecondaryCopies = 1;
// Metadata may have snapshots: each commit must keep the records that they show, and garbage
// collection the chunks.
inline constexpr uint64_t kRoCompatSnapshots = 2;
// Metadata may have received snapshots, whose records are not live files.
inline constexpr uint64_t kRoCompatLineages = 4;
// What every writer of a store may leave in it. mkfs and each mount for writing set these bits.
inline constexpr uint64_t kUsualRoCompatFeatures =
    kRoCompatSecondaryCopies | kRoCompatSnapshots | kRoCompatLineages;
// The superblock has a label or a chosen UUID. Code that ignores these fields would erase them with
// its next write. Stores without them do not have the bit, so that this code can write them.
inline constexpr uint64_t kRoCompatIdentity = 8;
inline constexpr uint64_t kKnownRoCompatFeatures = kUsualRoCompatFeatures | kRoCompatIdentity;
// kIncompatEngines: the superblock names a metadata engine or has parameters of the index engine.
// Code that ignores these fields would open the store with another engine and erase them.
inline constexpr uint64_t kIncompatEngines = 1;
// kIncompatDeltas: segments may have blocks with deltas (docs/glossary.md). Code that does not know
// them could neither read these chunks nor keep their bases.
inline constexpr uint64_t kIncompatDeltas = 2;
// kIncompatChunksOnly: the store belongs to the library of chunks (fs/library) and holds no files.
// No metadata refers to its chunks, so other code would collect them as garbage.
inline constexpr uint64_t kIncompatChunksOnly = 4;
// kIncompatQuotas: inodes may have the number of a quota, which the usage of the quota must follow.
inline constexpr uint64_t kIncompatQuotas = 8;
// kIncompatBucket: sealed segments are in a bucket (docs/bucket.md). Code that looks for them in
// the store's directory would take them for lost.
inline constexpr uint64_t kIncompatBucket = 16;
inline constexpr uint64_t kKnownIncompatFeatures =
    kIncompatEngines | kIncompatDeltas | kIncompatChunksOnly | kIncompatQuotas | kIncompatBucket;

// Bytes of a label.
inline constexpr size_t kMostLabelBytes = 64;
// OK for a label that a store can have: empty, or at most kMostLabelBytes bytes without control
// characters and slashes. Otherwise kInvalidArgument, with the cause.
Status ValidateLabel(std::string_view label);

struct Superblock {
  uint64_t compat_features = 0;
  uint64_t ro_compat_features = 0;
  uint64_t incompat_features = 0;

  StoreUuid uuid;
  int64_t created_ns = 0;         // nanoseconds since 1970, UTC
  uint64_t rabin_polynomial = 0;  // of the chunker, drawn at mkfs
  TagKey::Secret tag_secret{};    // drawn at mkfs
  uint32_t chunk_min = 2U << 10;
  uint32_t chunk_avg = 8U << 10;
  uint32_t chunk_max = 64U << 10;
  Compression compression;
  // Uncompressed bytes at which a block is full. A full block may still grow
  // (BlockPipeline::Options).
  uint32_t block_plain_bytes = 128U << 10;
  uint32_t segment_bytes = kMaxSegmentTargetSize;
  uint8_t index_engine = 0;   // an IndexEngine number, validated by index/
  uint64_t index_memory = 0;  // bytes
  // These two fields are on disk only if incompat_features has kIncompatEngines. Without this bit
  // both are empty.
  EngineParameters index_parameters;  // validated by index/
  std::string metadata_engine;        // a name, validated by fs/meta; empty: RocksDB
  // These two fields are on disk only if ro_compat_features has kRoCompatIdentity. SetIdentity sets
  // them together with this bit. A chosen UUID takes the place of `uuid` for users; `uuid` itself
  // never changes, because segments and salted names have it. All zero: none was chosen.
  std::string label;
  StoreUuid chosen_uuid;

  uint64_t generation = 0;   // number of writes
  uint64_t last_commit = 0;  // the last commit known to be complete at this write
  bool clean = false;        // written by an unmount; nothing has changed since

  // The UUID that users see, and by which they find the store.
  const StoreUuid& shown_uuid() const { return chosen_uuid == StoreUuid{} ? uuid : chosen_uuid; }
  // Sets the label (empty: none) and the UUID that users see. Other fields stay.
  void SetIdentity(std::string new_label, const StoreUuid& shown);

  // Whether segments may have deltas. Chosen at mkfs, by the feature bit.
  bool deltas() const { return (incompat_features & kIncompatDeltas) != 0; }
  // Whether the store has chunks but no files. Chosen at its making, by the feature bit.
  bool chunks_only() const { return (incompat_features & kIncompatChunksOnly) != 0; }
  // Whether sealed segments are in a bucket. Chosen at mkfs, by the feature bit.
  bool in_bucket() const { return (incompat_features & kIncompatBucket) != 0; }

  bool operator==(const Superblock&) const = default;
};

// Returns kInvalidArgument, with the cause, if a value is invalid.
Status ValidateSuperblock(const Superblock& superblock);

// Encodes the superblock to kSuperblockSize bytes.
std::string EncodeSuperblock(const Superblock& superblock);
// Decodes a superblock. Returns kCorruption if the bytes are damaged or a value is invalid, and
// kNeedsNewer for another format version. Does not check the features. If incompat_features has an
// unknown bit, the values are not validated.
Result<Superblock> DecodeSuperblock(ByteView bytes);

enum class StoreAccess : uint8_t { kReadOnly, kReadWrite };

// What a caller expects of a store.
enum class StoreContent : uint8_t { kFiles, kChunksOnly };

// OK, or kNeedsNewer if the store has a feature that forbids this access; kUnsupported if the store
// has other content.
Status CheckFeatures(const Superblock& superblock, StoreAccess access,
                     StoreContent content = StoreContent::kFiles);

struct SuperblockState {
  Superblock superblock;  // the valid copy with the highest generation
  std::array<bool, 2> copies_valid{};
  // The highest last_commit of the valid copies. Metadata older than this commit is damage (I5 in
  // docs/crash-model.md).
  uint64_t highest_commit = 0;
};

std::string SuperblockPath(const std::string& store, int copy);  // copy is 0 or 1

// A directory that exists while mkfs runs, and remains if mkfs does not finish.
std::string UnfinishedStorePath(const std::string& store);
// A Status with kNotFound and a message that explains why neither copy of the superblock exists.
Status NoStoreAt(Env& env, const std::string& store);

// Reads a single copy. Returns kNotFound if the file does not exist, kCorruption if it is invalid,
// and kNeedsNewer if it is intact but has another format version. Does not check the features.
Result<Superblock> ReadSuperblockCopy(Env& env, const std::string& store, int copy);

// Reads both copies. Returns kNotFound if neither file exists: then `store` is not a siltfs store.
// Returns kNeedsNewer if an intact copy has another format version. Returns the errors of
// CheckFeatures. If neither copy is valid, returns the error of a copy that exists, such as
// kCorruption.
Result<SuperblockState> ReadSuperblock(Env& env, const std::string& store,
                                       StoreAccess access = StoreAccess::kReadWrite,
                                       StoreContent content = StoreContent::kFiles);

// Increments superblock.generation and writes copy 0, then copy 1. If a value is invalid, returns
// kInvalidArgument and writes nothing. After any other failure each copy may be old or new.
Status WriteSuperblock(Env& env, const std::string& store, Superblock& superblock);

}  // namespace siltfs
