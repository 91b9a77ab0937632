#include "index/key_value/value_block_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "store/segment/block_head.h"

namespace siltfs {
namespace {

// Has `bytes` reach up to `size`, or to the file's end.
Status ReadUpTo(const File& file, uint64_t offset, size_t size, Bytes& bytes) {
  const size_t have = bytes.size();
  if (have >= size) return Status::Ok();
  bytes.resize(size);
  SILTFS_ASSIGN_OR_RETURN(size_t got,
                          file.Read(offset + have, MutableByteView(bytes).subspan(have)));
  bytes.resize(have + got);
  return Status::Ok();
}

}  // namespace

Result<DecodedBlockPtr> ReadValueBlock(const File& file, const SegmentIdentity& identity,
                                       uint64_t offset, size_t expected_bytes,
                                       const BlockCodec& codec) {
  Bytes bytes;
  SILTFS_RETURN_IF_ERROR(ReadUpTo(file, offset, expected_bytes, bytes));
  SILTFS_ASSIGN_OR_RETURN(const uint32_t head_size, BlockHeadSize(bytes));
  SILTFS_RETURN_IF_ERROR(ReadUpTo(file, offset, head_size, bytes));
  SILTFS_ASSIGN_OR_RETURN(
      BlockHead head,
      DecodeBlockHead(ByteView(bytes).first(std::min<size_t>(head_size, bytes.size())), identity));
  SILTFS_RETURN_IF_ERROR(ReadUpTo(file, offset, head.total_bytes(), bytes));
  const ByteView stored = ByteView(bytes).first(std::min<size_t>(head.total_bytes(), bytes.size()));
  const ByteView payload = stored.subspan(head.head_bytes());
  SILTFS_RETURN_IF_ERROR(CheckPayload(head, payload));
  SILTFS_ASSIGN_OR_RETURN(Bytes plain, codec.DecodePayload(head, payload));
  return DecodedBlockPtr(std::make_shared<DecodedBlock>(std::move(head), std::move(plain)));
}

}  // namespace siltfs
