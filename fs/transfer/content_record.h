// The pieces of files and the places of chunks in the slots of a lane
// (fs/interface/content_source.h).
//
// Decoding accepts any bytes; it allocates no more than a small multiple of their number.
// Thread-safety: as for plain values.
#pragma once

#include <cstddef>
#include <vector>

#include "fs/interface/content_source.h"
#include "store/base/bytes.h"
#include "store/base/coding.h"
#include "store/base/result.h"

namespace siltfs::transfer {

inline constexpr size_t kPlaceBytes = 36;
inline constexpr size_t kPieceBytes = 21 + kPlaceBytes;

// A piece of one of the files of a request.
struct FilePiece {
  uint32_t file = 0;                  // its number in the request
  StatusCode code = StatusCode::kOk;  // if not OK, the file cannot be read, and has no pieces
  ContentPiece piece;
};

void EncodePlace(const ChunkPlace& place, Encoder& out);
Result<std::vector<ChunkPlace>> DecodePlaces(ByteView bytes, size_t count);

void EncodePiece(const FilePiece& piece, Encoder& out);
Result<std::vector<FilePiece>> DecodePieces(ByteView bytes, size_t count);

}  // namespace siltfs::transfer
