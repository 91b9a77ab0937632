#include "index/flash/torn_tail.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr size_t kRewriteBytes = 256U << 10;  // at once
// After a crash, only bytes that were written since the last sync follow the last valid page of a
// log. A tail of more bytes than this does not come from a crash, and is not overwritten.
constexpr uint64_t kMostTornBytes = uint64_t{4} << 30;

}  // namespace

// If this process is killed between Truncate and Sync, the next process finds nothing to cut or
// sync, and may write a page in place of the torn one. A power cut could then bring back the rest
// of the tail, and its pages would look like valid successors of the new page. So the tail is
// overwritten with zeros first; a failure of this on a full disk is ignored.
Result<uint64_t> CutTail(File& file, uint64_t end) {
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  if (size - end > kMostTornBytes) {
    return Status(StatusCode::kCorruption,
                  fmt::format("is {} bytes long, too long for a log that ends at this page", size))
        .At(file.path(), end);
  }
  uint64_t written = 0;
  const auto blank = [&]() -> Status {
    const Bytes zeros(std::min<uint64_t>(kRewriteBytes, size - end));
    for (uint64_t at = end; at < size; at += zeros.size()) {
      const auto piece = ByteView(zeros).first(std::min<uint64_t>(zeros.size(), size - at));
      SILTFS_RETURN_IF_ERROR(file.Write(at, piece));
      written += piece.size();
    }
    return file.Sync();
  };
  Status blanked = blank();
  if (blanked.Is(StatusCode::kNoSpace)) {
    blanked.IgnoreError("the next page that is written reports it");
  } else if (!blanked.ok()) {
    return blanked;
  }
  SILTFS_RETURN_IF_ERROR(file.Truncate(end));
  return written;
}

Result<uint64_t> RewriteAndSync(File& file, uint64_t begin, uint64_t end) {
  uint64_t at = begin;
  Bytes pages(at < end ? std::min<uint64_t>(kRewriteBytes, end - at) : 0);
  while (at < end) {
    const MutableByteView piece =
        MutableByteView(pages).first(std::min<uint64_t>(pages.size(), end - at));
    SILTFS_RETURN_IF_ERROR(ReadExactly(file, at, piece));
    SILTFS_RETURN_IF_ERROR(file.Write(at, piece));
    at += piece.size();
  }
  SILTFS_RETURN_IF_ERROR(file.Sync());
  return begin < end ? end - begin : 0;
}

}  // namespace siltfs
