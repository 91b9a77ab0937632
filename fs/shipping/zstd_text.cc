#include "fs/shipping/zstd_text.h"

#include <zstd.h>

namespace siltfs {
namespace {

constexpr int kLevel = 3;

}  // namespace

Result<std::string> CompressText(ByteView plain) {
  std::string frame(ZSTD_compressBound(plain.size()), '\0');
  const size_t size = ZSTD_compress(frame.data(), frame.size(), plain.data(), plain.size(), kLevel);
  if (ZSTD_isError(size) != 0) return Status(StatusCode::kOutOfMemory, "zstd failed");
  frame.resize(size);
  return frame;
}

Result<std::string> DecompressText(ByteView frame, uint64_t plain_bytes) {
  const Status damaged(StatusCode::kCorruption, "the payload is damaged");
  damaged.IgnoreError("returned below");
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size() ||
      ZSTD_getFrameContentSize(frame.data(), frame.size()) != plain_bytes) {
    return damaged;
  }
  std::string plain(plain_bytes, '\0');
  const size_t size = ZSTD_decompress(plain.data(), plain.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) != 0 || size != plain_bytes) return damaged;
  return plain;
}

}  // namespace siltfs
