#include "index/key_value/value_log_manifest.h"

#include <fmt/format.h>

#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "SILTVAL\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kChecksumSize = 8;
constexpr uint64_t kMaxFileSize = 16U << 20;
constexpr std::string_view kFileName = "value_log";

Status Damaged(std::string cause) { return {StatusCode::kCorruption, std::move(cause)}; }

}  // namespace

std::string EncodeValueLogManifest(const ValueLogManifest& manifest) {
  Encoder out;
  out.Raw(kMagic).U32(kVersion).U32(static_cast<uint32_t>(manifest.incomplete.size()));
  out.Raw(manifest.store.view()).U64(manifest.next_segment);
  for (const SegmentId id : manifest.incomplete) out.U32(id);
  out.U64(Checksum(out.view()));
  return out.Take();
}

Result<ValueLogManifest> DecodeValueLogManifest(ByteView bytes) {
  if (bytes.size() < kChecksumSize) return Damaged("is too short for a value log's manifest");
  const size_t checked = bytes.size() - kChecksumSize;
  if (Decoder(bytes.subspan(checked)).U64() != Checksum(bytes.first(checked))) {
    return Damaged("has a wrong checksum");
  }
  Decoder in(bytes.first(checked));
  if (AsText(in.Raw(kMagic.size())) != kMagic) return Damaged("is no manifest of a value log");
  const uint32_t version = in.U32();
  if (in.ok() && version != kVersion) {
    return Status(StatusCode::kNeedsNewer, fmt::format("is a value log of version {}", version));
  }
  const uint32_t count = in.U32();
  ValueLogManifest manifest;
  const ByteView store = in.Raw(StoreUuid::kSize);
  manifest.next_segment = in.U64();
  if (!in.ok() || in.remaining() != uint64_t{count} * 4) return Damaged("has a wrong length");
  manifest.store = StoreUuid::FromBytes(store);
  if (manifest.next_segment < 1 || manifest.next_segment > ValueLogManifest::kSegmentLimit) {
    return Damaged(fmt::format("has {} as the next segment", manifest.next_segment));
  }
  manifest.incomplete.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const SegmentId id = in.U32();
    const SegmentId before = manifest.incomplete.empty() ? kNoSegment : manifest.incomplete.back();
    if (id <= before || id >= manifest.next_segment) {
      return Damaged(fmt::format("lists segment {} out of order", id));
    }
    manifest.incomplete.push_back(id);
  }
  return manifest;
}

Result<std::optional<ValueLogManifest>> ReadValueLogManifest(Env& env,
                                                             const std::string& directory) {
  const std::string path = JoinPath(directory, kFileName);
  Result<std::string> contents = ReadWholeFile(env, path, kMaxFileSize);
  if (!contents.ok()) {
    if (contents.status().Is(StatusCode::kNotFound)) return std::optional<ValueLogManifest>();
    if (contents.status().Is(StatusCode::kFileTooLarge)) {
      return Damaged("is too large for a value log's manifest").At(path);
    }
    return std::move(contents).status();
  }
  Result<ValueLogManifest> manifest = DecodeValueLogManifest(AsBytes(*contents));
  if (!manifest.ok()) return std::move(manifest).status().At(path);
  return std::optional<ValueLogManifest>(std::move(*manifest));
}

Status WriteValueLogManifest(Env& env, const std::string& directory,
                             const ValueLogManifest& manifest) {
  return ReplaceFile(env, JoinPath(directory, kFileName),
                     AsBytes(EncodeValueLogManifest(manifest)));
}

}  // namespace siltfs
