// The header of a page with hashed slots: the page's checksum and number. So every reader of a
// page, also a lookup, can tell that it has the page that was written at this place of this file.
// Pages of logs have a longer header of their own (log_page.h). Format: docs/format.md, "SILT
// frozen store".
//
// Functions only, safe to call from any thread.
#pragma once

#include <cstdint>

#include "index/flash/slot.h"
#include "index/flash/store_files.h"

namespace siltfs {

// The seed of the checksums of a file's pages. Pages of different files have different checksums,
// even if their contents are equal.
uint64_t PageSeedOf(const StoreFileId& file);

// A page of either kind begins with the checksum of the rest of it.
inline constexpr size_t kPageChecksumSize = 8;
void WritePageChecksum(PageBytes page, uint64_t seed);
bool HasPageChecksum(ConstPageBytes page, uint64_t seed);

// Writes the header. The slots must be filled.
void SealPage(PageBytes page, uint32_t number, uint64_t seed);
// Returns whether the page is exactly as it was sealed with this number and seed.
bool IsSealedPage(ConstPageBytes page, uint32_t number, uint64_t seed);

}  // namespace siltfs
