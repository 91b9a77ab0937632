// Compresses the payloads of objects in a bucket with zstd.
//
// Thread-safety: pure functions. The caller keeps a checksum: a damaged frame may decompress to
// other bytes.
#pragma once

#include <cstdint>
#include <string>

#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

// kOutOfMemory.
Result<std::string> CompressText(ByteView plain);
// kCorruption unless this is one frame of exactly `plain_bytes` bytes. The caller bounds
// `plain_bytes`.
Result<std::string> DecompressText(ByteView frame, uint64_t plain_bytes);

}  // namespace siltfs
