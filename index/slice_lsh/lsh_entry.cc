#include "index/slice_lsh/lsh_entry.h"

#include "store/base/coding.h"
#include "store/base/copy_bytes.h"

namespace siltfs {
namespace {

// The key's lower 32 bits, its upper 8 bits, the segment, and 24 bits of the ordinal.
size_t OffsetOf(size_t i) { return kFlashPageHeaderSize + i * kLshEntrySize; }

}  // namespace

void WriteLshEntry(PageBytes page, size_t i, const LshEntry& entry) {
  Encoder out;
  out.U32(static_cast<uint32_t>(entry.key)).U8(static_cast<uint8_t>(entry.key >> 32));
  out.U32(entry.place.segment).U24(entry.place.ordinal);
  CopyBytes(out.view(), page.subspan(OffsetOf(i)));
}

LshEntry ReadLshEntry(ConstPageBytes page, size_t i) {
  Decoder in(page.subspan(OffsetOf(i), kLshEntrySize));
  LshEntry entry;
  entry.key = in.U32();
  entry.key |= uint64_t{in.U8()} << 32;
  entry.place.segment = in.U32();
  entry.place.ordinal = in.U24();
  return entry;
}

std::optional<uint32_t> LshEntriesOf(ConstPageBytes page) {
  const uint32_t count = PageCountOf(page);
  if (PageKindOf(page) != kLshPage || count > kLshEntriesPerPage) return std::nullopt;
  return count;
}

}  // namespace siltfs
