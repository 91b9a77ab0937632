#include "index/key_value/key_value_manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kFileName = "store";
constexpr std::string_view kMagic = "SILTKVS\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kSize = 56;
constexpr size_t kChecksumSize = 8;

Status Damaged(const char* cause) { return {StatusCode::kCorruption, cause}; }

Result<KeyValueManifest> Decode(ByteView bytes) {
  if (bytes.size() != kSize) return Damaged("has a wrong length");
  const ByteView checked = bytes.first(kSize - kChecksumSize);
  if (Decoder(bytes.last(kChecksumSize)).U64() != Checksum(checked)) {
    return Damaged("has a wrong checksum");
  }
  Decoder in(checked);
  if (AsText(in.Raw(kMagic.size())) != kMagic)
    return Damaged("is no manifest of a key-value store");
  const uint32_t version = in.U32();
  if (version != kVersion) {
    return Status(StatusCode::kNeedsNewer,
                  fmt::format("is a key-value store of version {}", version));
  }
  const unsigned slot_bits = in.U8();
  const uint32_t reserved = in.U24();
  if (slot_bits < SlotLayout::kLeastBits || slot_bits > SlotLayout::kMostBits || reserved != 0) {
    return Damaged("has an invalid slot size");
  }
  KeyValueManifest manifest{.layout = SlotLayout::Named(slot_bits)};
  const ByteView secret = in.Raw(manifest.secret.size());
  std::copy(secret.begin(), secret.end(), manifest.secret.begin());
  return manifest;
}

}  // namespace

Result<std::optional<KeyValueManifest>> ReadKeyValueManifest(Env& env,
                                                             const std::string& directory) {
  const std::string path = JoinPath(directory, kFileName);
  auto contents = ReadWholeFile(env, path, kSize);
  if (contents.status().Is(StatusCode::kNotFound)) return std::optional<KeyValueManifest>();
  if (contents.status().Is(StatusCode::kFileTooLarge)) {
    return Damaged("has a wrong length").At(path);
  }
  SILTFS_RETURN_IF_ERROR(contents.status());
  auto manifest = Decode(AsBytes(*contents));
  if (!manifest.ok()) return std::move(manifest).status().At(path);
  return std::optional(*manifest);
}

Status WriteKeyValueManifest(Env& env, const std::string& directory,
                             const KeyValueManifest& manifest) {
  Encoder out;
  out.Raw(kMagic).U32(kVersion).U8(static_cast<uint8_t>(manifest.layout.bits())).U24(0);
  out.Raw(manifest.secret);
  out.U64(Checksum(out.view()));
  return ReplaceFile(env, JoinPath(directory, kFileName), out.view());
}

}  // namespace siltfs
