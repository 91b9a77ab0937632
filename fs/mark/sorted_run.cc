#include "fs/mark/sorted_run.h"

#include <algorithm>
#include <utility>

#include "store/base/checksum.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

ByteView BytesOf(std::span<const uint64_t> words) {
  return {reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()};
}

// Returns the checksum of all words of the block but the first. The checksum includes the block's
// offset, so that a block at a wrong place does not match.
uint64_t ChecksumOf(std::span<const uint64_t> block, const RunFile& file, uint64_t offset) {
  return Checksum(BytesOf(block.subspan(1)), file.seed + offset);
}

}  // namespace

template <typename Record>
Status RunWriter<Record>::WriteBlock() {
  const std::span<uint64_t> block = block_.first(std::exchange(used_, 1));
  block[0] = ChecksumOf(block, file_, file_.end);
  SILTFS_RETURN_IF_ERROR(file_.file->Write(file_.end, BytesOf(block)));
  file_.end += block.size_bytes();
  return Status::Ok();
}

template <typename Record>
Status RunWriter<Record>::Finish() {
  if (used_ > 1) SILTFS_RETURN_IF_ERROR(WriteBlock());
  run_.bytes = file_.end - run_.offset;
  file_.runs.push_back(run_);
  return Status::Ok();
}

template <typename Record>
Status RunReader<Record>::ReadBlock() {
  at_ = used_ = 0;
  if (offset_ == end_) return Status::Ok();
  const size_t bytes = std::min<uint64_t>(block_.size_bytes(), end_ - offset_);
  const std::span<uint64_t> block = block_.first(bytes / sizeof(uint64_t));
  SILTFS_RETURN_IF_ERROR(
      ReadExactly(*file_->file, offset_, {reinterpret_cast<uint8_t*>(block.data()), bytes}));
  if (block[0] != ChecksumOf(block, *file_, offset_)) {
    return Status(StatusCode::kCorruption, "holds a block that differs from what was written")
        .At(file_->path, offset_);
  }
  offset_ += bytes;
  at_ = 1;
  used_ = block.size();
  return Status::Ok();
}

template <typename Record>
Status RunMerge<Record>::Start(std::vector<RunReader<Record>> readers) {
  readers_ = std::move(readers);
  heap_.clear();
  for (size_t i = 0; i < readers_.size(); ++i) {
    SILTFS_RETURN_IF_ERROR(readers_[i].Next());
    if (!readers_[i].AtEnd()) heap_.push_back({readers_[i].record(), i});
  }
  for (size_t at = heap_.size() / 2; at-- > 0;) SiftDown(at);
  return Status::Ok();
}

template <typename Record>
Status RunMerge<Record>::Next() {
  const Record last = record();
  do {
    SILTFS_RETURN_IF_ERROR(Advance());
  } while (!AtEnd() && record() == last);
  return Status::Ok();
}

template <typename Record>
Status RunMerge<Record>::Advance() {
  RunReader<Record>& reader = readers_[heap_.front().reader];
  SILTFS_RETURN_IF_ERROR(reader.Next());
  if (reader.AtEnd()) {
    heap_.front() = heap_.back();
    heap_.pop_back();
  } else {
    heap_.front().record = reader.record();
  }
  if (!heap_.empty()) SiftDown(0);
  return Status::Ok();
}

template <typename Record>
void RunMerge<Record>::SiftDown(size_t at) {
  const Head head = heap_[at];
  for (size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
    if (child + 1 < heap_.size()) {
      child += static_cast<size_t>(heap_[child + 1].record < heap_[child].record);
    }
    if (head.record <= heap_[child].record) break;
    heap_[at] = heap_[child];
    at = child;
  }
  heap_[at] = head;
}

template class RunWriter<OneWord>;
template class RunReader<OneWord>;
template class RunMerge<OneWord>;
template class RunWriter<TwoWords>;
template class RunReader<TwoWords>;
template class RunMerge<TwoWords>;
template class RunWriter<ThreeWords>;
template class RunReader<ThreeWords>;
template class RunMerge<ThreeWords>;
template class RunWriter<EightWords>;
template class RunReader<EightWords>;
template class RunMerge<EightWords>;

}  // namespace siltfs
