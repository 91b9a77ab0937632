#include "fs/bucket/object_blocks.h"

#include <algorithm>
#include <utility>

#include "store/bucket/bucket_names.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr uint32_t kBlocksAtOnce = 16;
constexpr int kMostTries = 4;

Status Damaged(const SegmentContent& content, std::string_view how) {
  return Status(StatusCode::kCorruption, std::string(how)).At(SegmentObjectKey(content.id));
}

// Whether all blocks from `first` on in these bytes have their checksums.
bool AllMatch(const BlockChecksums& sums, uint32_t first, ByteView bytes) {
  for (size_t at = 0; at < bytes.size(); at += kObjectBlockBytes) {
    const size_t size = std::min<size_t>(kObjectBlockBytes, bytes.size() - at);
    if (!sums.Matches(first++, bytes.subspan(at, size))) return false;
  }
  return true;
}

Status ReadFromBucket(ObjectStore& objects, const BlockChecksums& sums, uint32_t first,
                      MutableByteView bytes) {
  const SegmentContent& content = sums.content();
  const uint64_t offset = uint64_t{first} * kObjectBlockBytes;
  bool is_short = false;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const auto got = objects.Read(SegmentObjectKey(content.id), "", offset, bytes);
    SILTFS_RETURN_IF_ERROR(got.status());
    is_short = *got != bytes.size();
    if (!is_short && AllMatch(sums, first, bytes)) return Status::Ok();
  }
  return Damaged(content, is_short ? "the object is too short"
                                   : "bytes of the object do not match their checksums");
}

}  // namespace

Result<BlockChecksums> ReadTrailer(ObjectStore& objects, const SegmentContent& content) {
  for (int tries = 1;; ++tries) {
    Bytes trailer(TrailerBytes(content.size));
    const auto got = objects.Read(SegmentObjectKey(content.id), "", content.size, trailer);
    SILTFS_RETURN_IF_ERROR(got.status());
    auto sums = BlockChecksums::Decode(content, ByteView(trailer).first(*got));
    if (sums.ok() || !sums.status().Is(StatusCode::kCorruption)) return sums;
    if (tries == kMostTries) return Damaged(content, sums.status().cause());
    sums.status().IgnoreError("it is read again");
  }
}

Status ReadObjectBlocks(ObjectStore& objects, const SegmentContent& content,
                        const ReadableFile* image, const TakeBytes& take) {
  SILTFS_ASSIGN_OR_RETURN(const BlockChecksums sums, ReadTrailer(objects, content));
  const uint32_t count = BlockCount(content.size);
  Bytes bytes;
  for (uint32_t first = 0; first < count; first += kBlocksAtOnce) {
    const uint64_t offset = uint64_t{first} * kObjectBlockBytes;
    bytes.resize(
        std::min<uint64_t>(uint64_t{kBlocksAtOnce} * kObjectBlockBytes, content.size - offset));
    bool local = false;
    if (image != nullptr) {
      const auto got = image->Read(offset, bytes);
      local = got.ok() && *got == bytes.size() && AllMatch(sums, first, bytes);
    }
    if (!local) SILTFS_RETURN_IF_ERROR(ReadFromBucket(objects, sums, first, bytes));
    SILTFS_RETURN_IF_ERROR(take(offset, bytes));
  }
  return Status::Ok();
}

Status CopyBlocks(const SegmentContent& content, const ReadableFile& file, const TakeBytes& take) {
  Bytes bytes;
  for (uint64_t offset = 0; offset < content.size; offset += bytes.size()) {
    bytes.resize(
        std::min<uint64_t>(uint64_t{kBlocksAtOnce} * kObjectBlockBytes, content.size - offset));
    SILTFS_RETURN_IF_ERROR(ReadExactly(file, offset, bytes));
    SILTFS_RETURN_IF_ERROR(take(offset, bytes));
  }
  return Status::Ok();
}

}  // namespace siltfs
