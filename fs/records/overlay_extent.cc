#include "fs/records/overlay_extent.h"

#include "fs/recipe/recipe_entry.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

Status Malformed() {
  return Status(StatusCode::kCorruption, "metadata holds a malformed overlay extent");
}

}  // namespace

std::string OverlayExtent::Encode() const {
  Encoder out;
  out.U8(static_cast<uint8_t>(kind));
  switch (kind) {
    case Kind::kPlain:
      out.Raw(plain);
      break;
    case Kind::kHole:
      out.U64(length);
      break;
    case Kind::kChunks:
      for (const ChunkSlice& slice : slices) {
        out.Raw(slice.name.view()).U24(slice.chunk_length).U24(slice.skip).U24(slice.length);
      }
      break;
  }
  return out.Take();
}

Result<OverlayExtent> OverlayExtent::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  OverlayExtent extent;
  uint8_t kind = in.U8();
  extent.kind = static_cast<Kind>(kind);
  switch (extent.kind) {
    case Kind::kPlain:
      extent.plain = AsText(in.Raw(in.remaining()));
      extent.length = extent.plain.size();
      break;
    case Kind::kHole:
      extent.length = in.U64();
      break;
    case Kind::kChunks:
      while (in.ok() && in.remaining() > 0) {
        ChunkSlice slice;
        ByteView name = in.Raw(ChunkName::kSize);
        slice.chunk_length = in.U24();
        slice.skip = in.U24();
        slice.length = in.U24();
        if (!in.ok() || slice.length == 0 || slice.skip + slice.length > slice.chunk_length)
          return Malformed();
        slice.name = ChunkName::FromBytes(name);
        extent.length += slice.length;
        extent.slices.push_back(slice);
      }
      break;
    default:
      return Malformed();
  }
  if (!in.Done() || extent.length == 0 || extent.length > kMaxRecipeBytes) return Malformed();
  return extent;
}

}  // namespace siltfs
