#include "index/silt/page_header.h"

#include <algorithm>

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr size_t kChecksumSize = 8;

}  // namespace

uint64_t PageSeedOf(const StoreFileId& file) {
  Encoder out;
  out.U32(static_cast<uint32_t>(file.kind)).U32(file.partition).U64(file.id);
  return Checksum(out.view());
}

void SealPage(PageBytes page, uint32_t number, uint64_t seed) {
  Encoder header;
  header.U32(number).U32(0);
  std::copy(header.view().begin(), header.view().end(), page.begin() + kChecksumSize);
  Encoder checksum;
  checksum.U64(Checksum(page.subspan<kChecksumSize>(), seed));
  std::copy(checksum.view().begin(), checksum.view().end(), page.begin());
}

bool IsSealedPage(ConstPageBytes page, uint32_t number, uint64_t seed) {
  Decoder in(page);
  const uint64_t checksum = in.U64();
  if (in.U32() != number || in.U32() != 0) return false;
  return checksum == Checksum(page.subspan<kChecksumSize>(), seed);
}

}  // namespace siltfs
