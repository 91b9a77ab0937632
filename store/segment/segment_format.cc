#include "store/segment/segment_format.h"

#include <fmt/format.h>

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr std::string_view kHeaderMagic = "SILTSEG1";
constexpr size_t kChecksumOffset = 56;

}  // namespace

uint64_t SegmentIdentity::ChecksumSeed() const { return Checksum(store.view(), id); }

std::string EncodeSegmentHeader(const SegmentHeader& header) {
  Encoder out;
  out.Raw(kHeaderMagic)
      .U32(kSegmentFormatVersion)
      .U32(static_cast<uint32_t>(header.kind))
      .U32(header.identity.id)
      .Zeros(4)
      .Raw(header.identity.store.view())
      .U64(header.last_commit)
      .Zeros(8);
  out.U64(Checksum(out.view()));
  return out.Take();
}

Result<SegmentHeader> DecodeSegmentHeader(ByteView bytes) {
  if (bytes.size() != kSegmentHeaderSize) {
    return Status(StatusCode::kCorruption,
                  fmt::format("segment header is cut off after {} bytes", bytes.size()));
  }
  Decoder in(bytes);
  if (AsText(in.Raw(kHeaderMagic.size())) != kHeaderMagic) {
    return Status(StatusCode::kCorruption, "is not a segment: the magic number is wrong");
  }
  Decoder tail(bytes.subspan(kChecksumOffset));
  if (tail.U64() != Checksum(bytes.first(kChecksumOffset))) {
    return Status(StatusCode::kCorruption, "segment header has a wrong checksum");
  }
  uint32_t version = in.U32();
  if (version != kSegmentFormatVersion) {
    return Status(
        StatusCode::kNeedsNewer,
        fmt::format("segment format version {} is not the one this siltfs understands ({})",
                    version, kSegmentFormatVersion));
  }
  uint32_t kind = in.U32();
  if (kind > static_cast<uint32_t>(SegmentKind::kRecipeNodes)) {
    return Status(StatusCode::kNeedsNewer, fmt::format("segment kind {} is unknown", kind));
  }
  SegmentHeader header;
  header.kind = static_cast<SegmentKind>(kind);
  header.identity.id = in.U32();
  in.Skip(4);
  header.identity.store = StoreUuid::FromBytes(in.Raw(StoreUuid::kSize));
  header.last_commit = in.U64();
  return header;
}

Status CheckIdentity(const SegmentIdentity& found, const SegmentIdentity& expected) {
  if (found.store != expected.store) {
    return Status(StatusCode::kCorruption,
                  fmt::format("segment belongs to store {}, not to this one ({})",
                              found.store.ToText(), expected.store.ToText()));
  }
  if (found.id != expected.id) {
    return Status(
        StatusCode::kCorruption,
        fmt::format("segment has id {} in its header, but {} by its name", found.id, expected.id));
  }
  return Status::Ok();
}

}  // namespace siltfs
