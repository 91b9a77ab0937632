#include "store/bucket/bucket_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace siltfs {
namespace {

constexpr uint32_t kNoBlock = std::numeric_limits<uint32_t>::max();
// Read-ahead begins with the third block in a row.
constexpr uint32_t kLeastStreak = 2;

}  // namespace

BucketReader::BucketReader(std::shared_ptr<BucketCore> core, const SegmentContent& content)
    : core_(std::move(core)),
      content_(content),
      path_(core_->NameOf(content.id.segment)),
      last_block_(kNoBlock) {}

BucketReader::~BucketReader() { core_->RemoveReader(content_.id); }

uint32_t BucketReader::Follow(uint32_t block) const {
  const uint32_t last = last_block_.exchange(block);
  if (block == last) return streak_;
  if (last != kNoBlock && block == last + 1) return ++streak_;
  streak_ = 0;
  ahead_ = 0;
  return 0;
}

void BucketReader::ReadAhead(uint32_t block, uint32_t streak) const {
  if (streak < kLeastStreak) return;
  const uint32_t blocks = BlockCount(content_.size);
  const uint32_t begin = std::max(block + 1, ahead_.load());
  const uint32_t end = std::min(blocks, block + 1 + 2 * streak);
  // Not one request for each block, except at the end.
  if (begin >= end || (end - begin < BlockFetcher::kMostBlocks / 2 && end < blocks)) return;
  ahead_ = end;
  core_->fetcher().Prefetch(content_, begin, end - begin);
}

Result<size_t> BucketReader::ReadSome(uint64_t offset, MutableByteView out) const {
  const auto block = static_cast<uint32_t>(offset / kObjectBlockBytes);
  const bool again = block == last_block_;
  const uint32_t streak = Follow(block);
  SILTFS_ASSIGN_OR_RETURN(const LocalCache::Hit hit, core_->cache().Use(content_, block, again));
  const uint64_t in_block = offset % kObjectBlockBytes;
  if (hit.presence == LocalCache::Presence::kPresent) {
    const size_t most = hit.whole ? out.size() : BlockBytes(content_.size, block) - in_block;
    const MutableByteView part = out.first(std::min(out.size(), most));
    const auto got = hit.file->Read(offset, part);
    const bool whole = got.ok() && *got == part.size();
    if (whole && !hit.whole) ReadAhead(block, streak);
    if (whole) return part.size();
    if (hit.whole) {
      if (!got.ok()) return got.status();
      return Status(StatusCode::kCorruption, "the local file of the segment is too short");
    }
    // The disk has lost the block, but the bucket has it.
    core_->cache().MarkVerified(content_.id, block, false);
  }
  if (!again) ReadAhead(block, streak);
  SILTFS_ASSIGN_OR_RETURN(
      const auto blocks,
      core_->fetcher().Fetch(content_, block, streak < kLeastStreak ? 1 : streak + 1));
  if (!again) core_->cache().NoteUse(content_.id, block);
  const uint64_t from = uint64_t{block - blocks->first} * kObjectBlockBytes + in_block;
  const size_t size = std::min<uint64_t>(out.size(), blocks->bytes.size() - from);
  std::memcpy(out.data(), blocks->bytes.data() + from, size);
  return size;
}

Result<size_t> BucketReader::Read(uint64_t offset, MutableByteView out) const {
  if (offset >= content_.size) return size_t{0};
  const size_t size = std::min<uint64_t>(out.size(), content_.size - offset);
  for (size_t done = 0; done < size;) {
    const auto got = ReadSome(offset + done, out.subspan(done, size - done));
    if (!got.ok()) {
      const Status& failed = got.status();
      return Status(failed.code(), std::string(failed.cause())).At(path_, offset + done);
    }
    done += *got;
  }
  return size;
}

void BucketReader::BeginRead(uint64_t offset, uint64_t size) const {
  if (size == 0 || offset >= content_.size) return;
  const auto block = static_cast<uint32_t>(offset / kObjectBlockBytes);
  const uint64_t end = std::min<uint64_t>(content_.size, offset + size);
  const auto last = static_cast<uint32_t>((end - 1) / kObjectBlockBytes);
  if (core_->cache().Find(content_, block).whole) return;
  core_->fetcher().Prefetch(content_, block, last - block + 1);
}

}  // namespace siltfs
