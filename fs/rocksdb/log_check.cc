#include "fs/rocksdb/log_check.h"

#include <fmt/format.h>

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr size_t kHeaderBytes = 7;

bool IsRecycled(uint8_t type) { return (type >= 5 && type <= 8) || type == 11; }

}  // namespace

Status CheckLogSize(const File& file) {
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  if (size <= kMostLogBytes) return Status::Ok();
  return Status(StatusCode::kCorruption,
                fmt::format("is {} bytes long, and no log is longer than {}", size, kMostLogBytes))
      .At(file.path());
}

size_t BytesBeforeRecycled(ByteView block) {
  size_t at = 0;
  while (block.size() - at >= kHeaderBytes) {
    Decoder header(block.subspan(at, kHeaderBytes));
    header.Skip(4);
    const size_t length = header.U16();
    const uint8_t type = header.U8();
    if (IsRecycled(type)) return at;
    // In each of these two cases RocksDB's reader skips the rest of the block.
    if (type == 0 && length == 0) break;
    if (length > block.size() - at - kHeaderBytes) break;
    at += kHeaderBytes + length;
  }
  return block.size();
}

}  // namespace siltfs
