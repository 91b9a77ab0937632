// Checkpoints of a key-value store in a bucket (docs/format.md#checkpoints-in-a-bucket).
//
// A checkpoint is all records of a snapshot, in order, cut into parts of about 1 MiB, and a
// manifest that lists the parts. Keys decide where parts end. So the parts between two checkpoints
// differ only around changed records, and a part that the bucket has from the last checkpoint is
// not put again. No engine needs to know its files for this, and a checkpoint of one engine can be
// restored to another.
//
// The key of a manifest has the number of the log object that makes the checkpoint valid. Parts are
// named by epoch and content: a writer that was fenced removes no part of a later epoch.
//
// Thread-safety: any thread. Memory: one part, and about 50 bytes for each part. Errors: those of
// the snapshot and of the ObjectStore; kInterrupted.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/object/object_store.h"

namespace siltfs {

inline constexpr std::string_view kManifestPrefix = "checkpoint/manifests/";
inline constexpr std::string_view kPartPrefix = "checkpoint/parts/";
inline constexpr uint64_t kMostManifestBytes = uint64_t{256} << 20;

using PartSum = std::array<uint64_t, 2>;  // two checksums of the uncompressed bytes

struct CheckpointPart {
  uint32_t epoch = 0;  // of the writer that has put it
  PartSum sum{};
  uint32_t plain_bytes = 0;
};

struct Manifest {
  uint32_t epoch = 0;
  uint64_t number = 0;     // of the log object that makes it valid
  uint64_t sequence = 0;   // of the last commit that it contains
  uint64_t records = 0;    // in all parts
  std::string attachment;  // as LogObject::attachment
  std::vector<CheckpointPart> parts;
};

std::string ManifestKey(uint64_t number);
// 0 if this is no key of a manifest.
uint64_t ParseManifestKey(std::string_view key);
std::string PartKey(const CheckpointPart& part);

std::string EncodeManifest(const Manifest& manifest);
Result<Manifest> DecodeManifest(ByteView bytes);
uint64_t ChecksumOfManifest(ByteView bytes);
// Gets the manifest with this number. kCorruption if it or its log object is damaged or missing, or
// if the log object does not make this manifest valid.
Result<Manifest> ReadValidManifest(ObjectStore& objects, uint64_t number);

// Parts that the bucket has, by their content.
using KnownParts = std::map<PartSum, CheckpointPart>;
KnownParts PartsOf(const Manifest& manifest);

struct PutParts {
  std::vector<CheckpointPart> parts;
  uint64_t records = 0;
  uint64_t plain_bytes = 0;
  uint64_t put_parts = 0;  // that the bucket did not have
  uint64_t put_bytes = 0;
};

// Puts all records of the snapshot, except those of `known`. Polls `interrupted` between parts.
Result<PutParts> PutCheckpointParts(ObjectStore& objects, const KvSnapshot& snapshot,
                                    uint32_t epoch, const KnownParts& known,
                                    const std::function<bool()>& interrupted);

// Gets one part, verifies it, and calls `visit` with each record.
Status ReadCheckpointPart(
    ObjectStore& objects, const CheckpointPart& part,
    const std::function<Status(std::string_view key, std::string_view value)>& visit);

}  // namespace siltfs
