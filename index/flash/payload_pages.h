// Bytes without records, such as a filter, in pages of a page file.
//
// Functions only, safe to call from any thread.
#pragma once

#include <optional>

#include "index/flash/page_files.h"
#include "store/base/bytes.h"

namespace siltfs {

inline constexpr size_t kPayloadPerPage = kPageSize - kFlashPageHeaderSize;

inline uint32_t PayloadPages(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + kPayloadPerPage - 1) / kPayloadPerPage);
}
// Fills PayloadPages(payload.size()) pages, which must be zero, of this kind.
void WritePayload(MutableByteView pages, uint8_t kind, ByteView payload);
// The payload of PayloadPages(size) pages; nothing if a page is damaged or has another kind. The
// caller must have a pin.
Result<std::optional<Bytes>> ReadPayload(const PageFiles& files, PageAddress first, uint64_t size,
                                         uint8_t kind);

}  // namespace siltfs
