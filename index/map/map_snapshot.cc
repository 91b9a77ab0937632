#include "index/map/map_snapshot.h"

#include <fmt/format.h>

#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "SILTMAP\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderSize = 32;
constexpr size_t kEntrySize = ChunkName::kSize + Location::kEncodedSize;
constexpr size_t kChecksumSize = 8;
// Room for about 32 Mi entries. A larger index needs another engine.
constexpr uint64_t kMaxFileSize = uint64_t{1} << 30;

Status Damaged(std::string cause) { return {StatusCode::kCorruption, std::move(cause)}; }

}  // namespace

std::string EncodeMapSnapshot(const ChunkMap& entries, uint64_t sequence) {
  Encoder out;
  out.Raw(kMagic).U32(kVersion).U32(0).U64(sequence).U64(entries.size());
  for (const auto& [name, location] : entries) {
    std::array<uint8_t, Location::kEncodedSize> encoded;
    location.EncodeTo(encoded);
    out.Raw(name.view()).Raw(ByteView(encoded));
  }
  out.U64(Checksum(out.view()));
  return out.Take();
}

Result<MapSnapshot> DecodeMapSnapshot(ByteView bytes) {
  if (bytes.size() < kHeaderSize + kChecksumSize) return Damaged("is too short for a map snapshot");
  const size_t checked = bytes.size() - kChecksumSize;
  if (Decoder(bytes.subspan(checked)).U64() != Checksum(bytes.first(checked))) {
    return Damaged("has a wrong checksum");
  }
  Decoder in(bytes.first(checked));
  if (AsText(in.Raw(kMagic.size())) != kMagic) return Damaged("is no map snapshot");
  const uint32_t version = in.U32();
  if (version != kVersion) {
    return Status(StatusCode::kNeedsNewer, fmt::format("is a map snapshot of version {}", version));
  }
  in.Skip(4);
  MapSnapshot snapshot;
  snapshot.sequence = in.U64();
  const uint64_t count = in.U64();
  if (in.remaining() % kEntrySize != 0 || in.remaining() / kEntrySize != count) {
    return Damaged(
        fmt::format("has {} bytes of entries, but a header for {} entries", in.remaining(), count));
  }
  for (uint64_t i = 0; i < count; ++i) {
    const ChunkName name = ChunkName::FromBytes(in.Raw(ChunkName::kSize));
    const Location location =
        Location::Decode(in.Raw(Location::kEncodedSize).first<Location::kEncodedSize>());
    if (location.segment == kNoSegment) return Damaged("has an entry that names no segment");
    snapshot.entries.emplace_hint(snapshot.entries.end(), name, location);
  }
  if (snapshot.entries.size() != count) return Damaged("has a name twice");
  return snapshot;
}

std::string MapSnapshotPath(const std::string& directory) { return JoinPath(directory, "map"); }

Result<MapSnapshot> ReadMapSnapshot(Env& env, const std::string& path) {
  Result<std::string> contents = ReadWholeFile(env, path, kMaxFileSize);
  if (!contents.ok()) {
    if (contents.status().Is(StatusCode::kNotFound)) return MapSnapshot{};
    if (contents.status().Is(StatusCode::kFileTooLarge))
      return Damaged("is too large for a map snapshot").At(path);
    return std::move(contents).status();
  }
  Result<MapSnapshot> snapshot = DecodeMapSnapshot(AsBytes(*contents));
  if (!snapshot.ok()) return std::move(snapshot).status().At(path);
  return snapshot;
}

}  // namespace siltfs
