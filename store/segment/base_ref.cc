#include "store/segment/base_ref.h"

#include <fmt/format.h>

#include "store/segment/segment_format.h"

namespace siltfs {

std::string BaseRef::ToString() const { return fmt::format("{} ({} bytes)", name.ToHex(), length); }

void EncodeBaseRef(const BaseRef& base, Encoder& out) {
  out.Raw(base.name.view()).U64(base.tag).U32(base.length);
}

BaseRef DecodeBaseRef(Decoder& in) {
  BaseRef base;
  const ByteView name = in.Raw(ChunkName::kSize);
  if (name.size() == ChunkName::kSize) base.name = ChunkName::FromBytes(name);
  base.tag = in.U64();
  base.length = in.U32();
  return base;
}

bool IsBaseLength(uint32_t length) { return length > 0 && length <= kMaxBlockPlainBytes; }

}  // namespace siltfs
