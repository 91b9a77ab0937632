#include "fs/transfer/content_record.h"

#include "fs/transfer/lane_message.h"

namespace siltfs::transfer {
namespace {

constexpr uint8_t kFailed = 3;  // instead of a kind: the offset is a StatusCode

ChunkPlace DecodeOne(Decoder& in) {
  ChunkPlace place;
  const ByteView name = in.Raw(ChunkName::kSize);
  if (name.size() == ChunkName::kSize) place.name = ChunkName::FromBytes(name);
  place.length = in.U32();
  place.location.segment = in.U32();
  place.location.ordinal = in.U32() & Location::kMaxOrdinal;
  place.location.block_offset = in.U32() & Location::kMaxBlockOffset;
  return place;
}

Status Malformed() { return {StatusCode::kInvalidArgument, "a list of chunks is malformed"}; }

}  // namespace

void EncodePlace(const ChunkPlace& place, Encoder& out) {
  out.Raw(place.name.view()).U32(place.length).U32(place.location.segment);
  out.U32(place.location.ordinal).U32(place.location.block_offset);
}

Result<std::vector<ChunkPlace>> DecodePlaces(ByteView bytes, size_t count) {
  if (bytes.size() != count * kPlaceBytes) return Malformed();
  Decoder in(bytes);
  std::vector<ChunkPlace> places(count);
  for (ChunkPlace& place : places) place = DecodeOne(in);
  return places;
}

void EncodePiece(const FilePiece& piece, Encoder& out) {
  const bool ok = piece.code == StatusCode::kOk;
  out.U32(piece.file).U8(ok ? static_cast<uint8_t>(piece.piece.kind) : kFailed);
  out.U64(ok ? piece.piece.offset : static_cast<uint64_t>(piece.code)).U64(piece.piece.length);
  EncodePlace(piece.piece.chunk, out);
}

Result<std::vector<FilePiece>> DecodePieces(ByteView bytes, size_t count) {
  if (bytes.size() != count * kPieceBytes) return Malformed();
  Decoder in(bytes);
  std::vector<FilePiece> pieces(count);
  for (FilePiece& piece : pieces) {
    piece.file = in.U32();
    const uint8_t kind = in.U8();
    if (kind > kFailed) return Malformed();
    piece.piece.offset = in.U64();
    piece.piece.length = in.U64();
    piece.piece.chunk = DecodeOne(in);
    if (kind == kFailed) {
      piece.code = CodeOfNumber(static_cast<uint8_t>(piece.piece.offset));
      if (piece.code == StatusCode::kOk) return Malformed();
    } else {
      piece.piece.kind = static_cast<ContentPiece::Kind>(kind);
      // A chunk comes back in a slot, and as a whole.
      const bool is_chunk = piece.piece.kind == ContentPiece::Kind::kChunk;
      const uint32_t length = piece.piece.chunk.length;
      if (is_chunk && (length == 0 || length > kSlotBytes || length != piece.piece.length))
        return Malformed();
    }
  }
  return pieces;
}

}  // namespace siltfs::transfer
