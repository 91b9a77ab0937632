#include "fs/meta/log_check.h"

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr size_t kHeaderBytes = 7;

bool IsRecycled(uint8_t type) { return (type >= 5 && type <= 8) || type == 11; }

}  // namespace

size_t BytesBeforeRecycled(ByteView block) {
  size_t at = 0;
  while (block.size() - at >= kHeaderBytes) {
    Decoder header(block.subspan(at, kHeaderBytes));
    header.Skip(4);
    const size_t length = header.U16();
    const uint8_t type = header.U8();
    if (IsRecycled(type)) return at;
    // Either is where the reader leaves the block.
    if (type == 0 && length == 0) break;
    if (length > block.size() - at - kHeaderBytes) break;
    at += kHeaderBytes + length;
  }
  return block.size();
}

}  // namespace siltfs
