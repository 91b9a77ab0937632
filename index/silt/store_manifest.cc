#include "index/silt/store_manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "index/flash/cuckoo_place.h"
#include "index/flash/slot.h"
#include "index/flash/store_files.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "SILTIDX\n";
constexpr uint32_t kVersion = 2;
constexpr size_t kChecksumSize = 8;
constexpr uint64_t kMaxFileSize = 256U << 20;
constexpr std::string_view kFileName = "manifest";
constexpr size_t kReservedBytes = 7;
constexpr uint64_t kMaxGeneration = UINT64_MAX / 2;

Status Damaged(std::string cause) { return {StatusCode::kCorruption, std::move(cause)}; }

void EncodePartition(Encoder& out, const PartitionRecord& partition) {
  out.U64(partition.first_log_id).U32(partition.first_page).U32(partition.durable_page);
  out.U64(partition.complete_sequence).U64(partition.sorted_id);
  out.U32(static_cast<uint32_t>(partition.hash_ids.size())).U32(0);
  for (const uint64_t id : partition.hash_ids) out.U64(id);
}

Result<PartitionRecord> DecodePartition(Decoder& in, uint64_t next_id) {
  PartitionRecord partition;
  partition.first_log_id = in.U64();
  partition.first_page = in.U32();
  partition.durable_page = in.U32();
  partition.complete_sequence = in.U64();
  partition.sorted_id = in.U64();
  const uint32_t count = in.U32();
  const uint32_t reserved = in.U32();
  if (reserved != 0) return Damaged("has a wrong partition");
  if (!in.ok() || count > in.remaining() / 8) return Damaged("ends within a partition");
  partition.hash_ids.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t id = in.U64();
    const bool rises = partition.hash_ids.empty() || id > partition.hash_ids.back();
    if (!rises || id >= next_id) return Damaged(fmt::format("lists store {} out of order", id));
    partition.hash_ids.push_back(id);
  }
  if (partition.sorted_id >= next_id || partition.first_log_id > next_id) {
    return Damaged("lists a store that was never made");
  }
  return partition;
}

}  // namespace

std::string EncodeStoreManifest(const StoreManifest& manifest) {
  Encoder out;
  out.Raw(kMagic).U32(kVersion).U8(static_cast<uint8_t>(manifest.bucket_bits));
  out.U8(static_cast<uint8_t>(manifest.partition_bits)).U8(manifest.entries_lost ? 1 : 0);
  out.U8(manifest.layout.number());
  out.U64(manifest.name_hash.secret).U64(manifest.complete_sequence).U64(manifest.next_id);
  out.U8(static_cast<uint8_t>(manifest.name_hash.bits)).Zeros(kReservedBytes);
  out.U64(manifest.generation);
  for (const PartitionRecord& partition : manifest.partitions) EncodePartition(out, partition);
  out.U64(Checksum(out.view()));
  return out.Take();
}

Result<StoreManifest> DecodeStoreManifest(ByteView bytes) {
  if (bytes.size() < kChecksumSize) return Damaged("is too short for a manifest");
  const size_t checked = bytes.size() - kChecksumSize;
  if (Decoder(bytes.subspan(checked)).U64() != Checksum(bytes.first(checked))) {
    return Damaged("has a wrong checksum");
  }
  Decoder in(bytes.first(checked));
  if (AsText(in.Raw(kMagic.size())) != kMagic) return Damaged("is no manifest of a SILT index");
  const uint32_t version = in.U32();
  if (in.ok() && version > kVersion) {
    return Status(StatusCode::kNeedsNewer, fmt::format("is a SILT index of version {}", version));
  }
  if (in.ok() && version < kVersion) {
    return Damaged(fmt::format("is a SILT index of the earlier version {}", version));
  }
  StoreManifest manifest;
  manifest.bucket_bits = in.U8();
  manifest.partition_bits = in.U8();
  const uint8_t lost = in.U8();
  const uint8_t layout = in.U8();
  manifest.entries_lost = lost == 1;
  manifest.name_hash.secret = in.U64();
  manifest.complete_sequence = in.U64();
  manifest.next_id = in.U64();
  manifest.name_hash.bits = in.U8();
  const ByteView reserved = in.Raw(kReservedBytes);
  manifest.generation = in.U64();
  const bool zeros =
      std::all_of(reserved.begin(), reserved.end(), [](uint8_t b) { return b == 0; });
  if (!in.ok() || lost > 1 || layout > SlotLayout::kMostNumber || !zeros ||
      manifest.generation == 0 || manifest.generation > kMaxGeneration) {
    return Damaged("has a wrong header");
  }
  if (manifest.name_hash.bits < NameHash::kLeastBits ||
      manifest.name_hash.bits > NameHash::kAllBits) {
    return Damaged(fmt::format("has hashes of {} bits", manifest.name_hash.bits));
  }
  manifest.layout = SlotLayout::OfNumber(layout);
  if (manifest.bucket_bits < 1 || manifest.bucket_bits > kMaxBucketBits ||
      manifest.partition_bits > kMaxPartitionBits) {
    return Damaged(fmt::format("has 2^{} partitions with tables of 2^{} buckets",
                               manifest.partition_bits, manifest.bucket_bits));
  }
  for (size_t i = 0; i < size_t{1} << manifest.partition_bits; ++i) {
    SILTFS_ASSIGN_OR_RETURN(PartitionRecord partition, DecodePartition(in, manifest.next_id));
    manifest.partitions.push_back(std::move(partition));
  }
  if (!in.Done()) return Damaged("has a wrong length");
  return manifest;
}

Result<std::optional<StoreManifest>> ReadManifestBase(Env& env, const std::string& directory) {
  const std::string path = JoinPath(directory, kFileName);
  Result<std::string> contents = ReadWholeFile(env, path, kMaxFileSize);
  if (!contents.ok()) {
    if (contents.status().Is(StatusCode::kNotFound)) return std::optional<StoreManifest>();
    if (contents.status().Is(StatusCode::kFileTooLarge)) {
      return Damaged("is too large for a manifest").At(path);
    }
    return std::move(contents).status();
  }
  Result<StoreManifest> manifest = DecodeStoreManifest(AsBytes(*contents));
  if (!manifest.ok()) return std::move(manifest).status().At(path);
  return std::optional<StoreManifest>(std::move(*manifest));
}

Status WriteManifestBase(Env& env, const std::string& directory, const StoreManifest& manifest) {
  // The names of the listed stores must be durable before the manifest is.
  SILTFS_RETURN_IF_ERROR(SyncNames(env, directory));
  return ReplaceFile(env, JoinPath(directory, kFileName), AsBytes(EncodeStoreManifest(manifest)));
}

}  // namespace siltfs
