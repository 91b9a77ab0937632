#include "index/flash/payload_pages.h"

#include <algorithm>

#include "store/base/copy_bytes.h"

namespace siltfs {

void WritePayload(MutableByteView pages, uint8_t kind, ByteView payload) {
  for (size_t at = 0, page_at = 0; at < payload.size();
       at += kPayloadPerPage, page_at += kPageSize) {
    const PageBytes page(pages.data() + page_at, kPageSize);
    SetPageKind(page, kind, 0);
    CopyBytes(payload.subspan(at, std::min(kPayloadPerPage, payload.size() - at)),
              page.subspan(kFlashPageHeaderSize));
  }
}

Result<std::optional<Bytes>> ReadPayload(const PageFiles& files, PageAddress first, uint64_t size,
                                         uint8_t kind) {
  const uint32_t pages = PayloadPages(size);
  // Do not allocate memory for pages that do not exist.
  if (pages == 0 || !files.Resolve(first + (pages - 1))) return std::optional<Bytes>();
  Bytes payload;
  payload.reserve(size);
  bool whole = true;
  SILTFS_RETURN_IF_ERROR(
      files.Read(first, pages, [&](uint32_t, std::optional<ConstPageBytes> page) {
        whole = whole && page && PageKindOf(*page) == kind;
        if (!whole) return Status::Ok();
        const size_t here = std::min<uint64_t>(kPayloadPerPage, size - payload.size());
        const auto bytes = page->subspan(kFlashPageHeaderSize, here);
        payload.insert(payload.end(), bytes.begin(), bytes.end());
        return Status::Ok();
      }));
  if (!whole) return std::optional<Bytes>();
  return std::optional(std::move(payload));
}

}  // namespace siltfs
