#include "fs/shipping/checkpoint.h"

#include <fmt/format.h>

#include <utility>

#include "fs/shipping/log_object.h"
#include "fs/shipping/zstd_text.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr std::string_view kManifestMagic = "siltman1";
constexpr uint16_t kManifestVersion = 1;
constexpr size_t kManifestChecksumBytes = 8;
constexpr size_t kPartBytes = 4 + 16 + 4;  // in a manifest

// A part ends behind a record whose key has this checksum, on average after 4,096 records, but not
// before the first and not after the second size.
constexpr uint64_t kEndMask = 4095;
constexpr size_t kLeastPart = 256u << 10;
constexpr size_t kMostPart = 4u << 20;
// A part exceeds kMostPart by one record.
constexpr uint32_t kMostPlainBytes = 1u << 30;

PartSum SumOf(ByteView plain) { return {Checksum(plain, 1), Checksum(plain, 2)}; }

class PartWriter {
 public:
  PartWriter(ObjectStore& objects, uint32_t epoch, const KnownParts& known)
      : objects_(objects), epoch_(epoch), known_(known) {}

  Status Add(std::string_view key, std::string_view value) {
    plain_.U32(static_cast<uint32_t>(key.size())).Raw(key);
    plain_.U32(static_cast<uint32_t>(value.size())).Raw(value);
    ++put_.records;
    const bool cut = (Checksum(AsBytes(key)) & kEndMask) == 0 && plain_.size() >= kLeastPart;
    return cut || plain_.size() >= kMostPart ? End() : Status::Ok();
  }

  Status End() {
    if (plain_.size() == 0) return Status::Ok();
    const std::string plain = plain_.Take();
    plain_ = Encoder();
    CheckpointPart part{epoch_, SumOf(AsBytes(plain)), static_cast<uint32_t>(plain.size())};
    put_.plain_bytes += plain.size();
    if (const auto known = known_.find(part.sum);
        known != known_.end() && known->second.plain_bytes == part.plain_bytes) {
      put_.parts.push_back(known->second);
      return Status::Ok();
    }
    SILTFS_ASSIGN_OR_RETURN(const std::string frame, CompressText(AsBytes(plain)));
    // An interrupted checkpoint may have put the part; its content is in its name.
    const auto there = objects_.Put(PartKey(part), AsBytes(frame), PutCondition::Always());
    if (!there.ok()) return there.status();
    ++put_.put_parts;
    put_.put_bytes += frame.size();
    put_.parts.push_back(part);
    return Status::Ok();
  }

  PutParts Take() { return std::move(put_); }

 private:
  ObjectStore& objects_;
  const uint32_t epoch_;
  const KnownParts& known_;
  Encoder plain_;
  PutParts put_;
};

}  // namespace

std::string ManifestKey(uint64_t number) {
  return fmt::format("{}{:016x}", kManifestPrefix, number);
}

uint64_t ParseManifestKey(std::string_view key) {
  if (!key.starts_with(kManifestPrefix)) return 0;
  return ParseLogKey(std::string(kLogPrefix) + std::string(key.substr(kManifestPrefix.size())));
}

std::string PartKey(const CheckpointPart& part) {
  return fmt::format("{}{:08x}-{:016x}{:016x}", kPartPrefix, part.epoch, part.sum[0], part.sum[1]);
}

std::string EncodeManifest(const Manifest& manifest) {
  Encoder out;
  out.Raw(kManifestMagic).U16(kManifestVersion).U16(0).U32(manifest.epoch).U64(manifest.number);
  out.U64(manifest.sequence).U64(manifest.records);
  out.U32(static_cast<uint32_t>(manifest.attachment.size())).Raw(manifest.attachment);
  out.U32(static_cast<uint32_t>(manifest.parts.size()));
  for (const CheckpointPart& part : manifest.parts)
    out.U32(part.epoch).U64(part.sum[0]).U64(part.sum[1]).U32(part.plain_bytes);
  const uint64_t checksum = Checksum(out.view());
  out.U64(checksum);
  return out.Take();
}

uint64_t ChecksumOfManifest(ByteView bytes) { return ChecksumOfLogObject(bytes); }

Result<Manifest> DecodeManifest(ByteView bytes) {
  const Status damaged(StatusCode::kCorruption, "the manifest of the checkpoint is damaged");
  damaged.IgnoreError("returned below");
  if (bytes.size() < kManifestMagic.size() + kManifestChecksumBytes) return damaged;
  const ByteView body = bytes.first(bytes.size() - kManifestChecksumBytes);
  if (Checksum(body) != ChecksumOfManifest(bytes)) return damaged;
  Decoder in(body);
  if (AsText(in.Raw(kManifestMagic.size())) != kManifestMagic) return damaged;
  if (in.U16() != kManifestVersion)
    return Status(StatusCode::kNeedsNewer, "the checkpoint was made by a newer version");
  in.U16();
  Manifest manifest;
  manifest.epoch = in.U32();
  manifest.number = in.U64();
  manifest.sequence = in.U64();
  manifest.records = in.U64();
  manifest.attachment = AsText(in.Raw(in.U32()));
  const uint64_t count = in.U32();
  if (!in.ok() || count * kPartBytes != in.remaining()) return damaged;
  manifest.parts.resize(count);
  for (CheckpointPart& part : manifest.parts) {
    part.epoch = in.U32();
    part.sum = {in.U64(), 0};
    part.sum[1] = in.U64();
    part.plain_bytes = in.U32();
  }
  if (!in.Done()) return damaged;
  return manifest;
}

Result<Manifest> ReadValidManifest(ObjectStore& objects, uint64_t number) {
  const auto unusable = [number](const Status& status) {
    if (!status.Is(StatusCode::kNotFound) && !status.Is(StatusCode::kCorruption)) return status;
    return Status(StatusCode::kCorruption,
                  fmt::format("the checkpoint cannot be used: {}", status.cause()))
        .At(ManifestKey(number));
  };
  const auto bytes = objects.Get(ManifestKey(number), kMostManifestBytes, nullptr);
  if (!bytes.ok()) return unusable(bytes.status());
  auto manifest = DecodeManifest(*bytes);
  if (!manifest.ok()) return unusable(manifest.status());
  const auto log_bytes = objects.Get(LogKey(number), kMostLogObjectBytes, nullptr);
  if (!log_bytes.ok()) return unusable(log_bytes.status());
  const auto object = DecodeLogObject(*log_bytes);
  if (!object.ok()) return unusable(object.status());
  if (object->kind != LogKind::kCheckpoint || object->number != number ||
      manifest->number != number || object->manifest != ChecksumOfManifest(*bytes)) {
    return unusable(Status(StatusCode::kCorruption, "its log object belongs to something else"));
  }
  return manifest;
}

KnownParts PartsOf(const Manifest& manifest) {
  KnownParts known;
  for (const CheckpointPart& part : manifest.parts) known.emplace(part.sum, part);
  return known;
}

Result<PutParts> PutCheckpointParts(ObjectStore& objects, const KvSnapshot& snapshot,
                                    uint32_t epoch, const KnownParts& known,
                                    const std::function<bool()>& interrupted) {
  PartWriter writer(objects, epoch, known);
  uint64_t polled = 0;
  const auto iterator = snapshot.NewIterator();
  for (iterator->Seek(""); iterator->Valid(); iterator->Next()) {
    if (++polled % 1024 == 0 && interrupted && interrupted())
      return Status(StatusCode::kInterrupted, "the checkpoint was interrupted");
    SILTFS_RETURN_IF_ERROR(writer.Add(iterator->key(), iterator->value()));
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  SILTFS_RETURN_IF_ERROR(writer.End());
  return writer.Take();
}

Status ReadCheckpointPart(
    ObjectStore& objects, const CheckpointPart& part,
    const std::function<Status(std::string_view key, std::string_view value)>& visit) {
  const std::string key = PartKey(part);
  const Status damaged =
      Status(StatusCode::kCorruption, "the part of the checkpoint is damaged").At(key);
  damaged.IgnoreError("returned below");
  if (part.plain_bytes > kMostPlainBytes) return damaged;
  SILTFS_ASSIGN_OR_RETURN(const Bytes frame, objects.Get(key, kMostLogObjectBytes, nullptr));
  const auto plain = DecompressText(frame, part.plain_bytes);
  if (plain.status().Is(StatusCode::kCorruption)) return damaged;
  SILTFS_RETURN_IF_ERROR(plain.status());
  if (SumOf(AsBytes(*plain)) != part.sum) return damaged;
  Decoder in(AsBytes(*plain));
  while (in.ok() && in.remaining() > 0) {
    const std::string_view record_key = AsText(in.Raw(in.U32()));
    const std::string_view value = AsText(in.Raw(in.U32()));
    if (!in.ok()) return damaged;
    SILTFS_RETURN_IF_ERROR(visit(record_key, value));
  }
  return Status::Ok();
}

}  // namespace siltfs
