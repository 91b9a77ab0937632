#include "fs/content/stream_cutter.h"

#include <utility>

#include "chunker/zeros.h"

namespace siltfs {
namespace {

// The number of chunks that are named, tagged and looked up together.
constexpr size_t kPutBatch = 64;

}  // namespace

Result<uint64_t> StreamCutter::Cut(ByteView data, uint64_t enough) {
  CutSequence cuts(tables_, data);
  uint64_t done = 0;
  while (done < enough) {
    const std::optional<size_t> length = cuts.Next();
    if (!length) break;
    const ByteView chunk = data.subspan(done, *length);
    if (IsAllZero(chunk)) {
      SILTFS_RETURN_IF_ERROR(Put());
      if (parts_.empty() || parts_.back().hole_bytes == 0) parts_.emplace_back();
      parts_.back().hole_bytes += chunk.size();
    } else {
      batch_.push_back(chunk);
      if (batch_.size() == kPutBatch) SILTFS_RETURN_IF_ERROR(Put());
    }
    done += chunk.size();
  }
  return done;
}

Result<std::vector<StreamCutter::Part>> StreamCutter::Finish() {
  SILTFS_RETURN_IF_ERROR(Put());
  return std::move(parts_);
}

Status StreamCutter::Put() {
  if (batch_.empty()) return Status::Ok();
  names_.resize(batch_.size());
  SILTFS_RETURN_IF_ERROR(chunks_.Put(batch_, names_));
  if (parts_.empty() || parts_.back().hole_bytes > 0) parts_.emplace_back();
  for (size_t i = 0; i < batch_.size(); ++i) {
    const auto length = static_cast<uint32_t>(batch_[i].size());
    parts_.back().slices.push_back({names_[i], length, 0, length});
  }
  batch_.clear();
  return Status::Ok();
}

}  // namespace siltfs
