#include "index/flash/page_header.h"

#include <algorithm>

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {

uint64_t PageSeedOf(const StoreFileId& file) {
  Encoder out;
  out.U32(static_cast<uint32_t>(file.kind)).U32(file.partition).U64(file.id);
  return Checksum(out.view());
}

void WritePageChecksum(PageBytes page, uint64_t seed) {
  Encoder checksum;
  checksum.U64(Checksum(page.subspan<kPageChecksumSize>(), seed));
  std::copy(checksum.view().begin(), checksum.view().end(), page.begin());
}

bool HasPageChecksum(ConstPageBytes page, uint64_t seed) {
  return Decoder(page).U64() == Checksum(page.subspan<kPageChecksumSize>(), seed);
}

void SealPage(PageBytes page, uint32_t number, uint64_t seed) {
  Encoder header;
  header.U32(number).U32(0);
  std::copy(header.view().begin(), header.view().end(), page.begin() + kPageChecksumSize);
  WritePageChecksum(page, seed);
}

bool IsSealedPage(ConstPageBytes page, uint32_t number, uint64_t seed) {
  Decoder in(page.subspan<kPageChecksumSize>());
  return in.U32() == number && in.U32() == 0 && HasPageChecksum(page, seed);
}

}  // namespace siltfs
