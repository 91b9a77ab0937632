#include "store/s3/put_content.h"

#include <algorithm>

#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

}  // namespace

Result<size_t> MemoryFile::Read(uint64_t offset, MutableByteView out) const {
  if (offset >= bytes_.size()) return size_t{0};
  const ByteView piece =
      bytes_.subspan(offset, std::min<uint64_t>(out.size(), bytes_.size() - offset));
  std::ranges::copy(piece, out.begin());
  return piece.size();
}

Result<std::unique_ptr<PutContent>> PutContent::Measure(const ReadableFile& file) {
  std::unique_ptr<PutContent> content(new PutContent(file));
  SILTFS_ASSIGN_OR_RETURN(content->size_, file.Size());
  Sha256 hash;
  StreamingChecksum checksum;
  Bytes buffer(std::min<uint64_t>(kPieceBytes, content->size_));
  for (uint64_t offset = 0; offset < content->size_; offset += buffer.size()) {
    buffer.resize(std::min<uint64_t>(kPieceBytes, content->size_ - offset));
    SILTFS_RETURN_IF_ERROR(ReadExactly(file, offset, buffer));
    hash.Add(buffer);
    checksum.Add(buffer);
  }
  content->sha256_ = hash.Finish();
  content->checksum_ = checksum.value();
  return content;
}

Result<size_t> PutContent::Read(uint64_t offset, MutableByteView out) const {
  if (offset == 0) sent_ = std::make_unique<StreamingChecksum>();
  SILTFS_ASSIGN_OR_RETURN(const size_t got, file_.Read(offset, out));
  if (sent_ == nullptr) return got;
  sent_->Add(out.first(got));
  if (offset + got == size_ && sent_->value() != checksum_) {
    return Status(StatusCode::kIoError,
                  "was changed, or read differently, while it was put in a "
                  "bucket")
        .At(path());
  }
  return got;
}

}  // namespace siltfs
