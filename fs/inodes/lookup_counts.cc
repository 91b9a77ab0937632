#include "fs/inodes/lookup_counts.h"

#include <algorithm>
#include <limits>

namespace siltfs {
namespace {

constexpr size_t kMinCells = 64;

}  // namespace

LookupCounts::LookupCounts() : inodes_(kMinCells, kNone), counts_(kMinCells, 0) {}

size_t LookupCounts::HomeOf(uint64_t inode) const {
  // The high 64 bits of hash * size are less than size, even if size is not a power of two. So the
  // table can grow in small steps.
  __extension__ using Wide = unsigned __int128;
  const uint64_t hash = inode * 0x9e3779b97f4a7c15U;
  return static_cast<size_t>((static_cast<Wide>(hash) * inodes_.size()) >> 64);
}

size_t LookupCounts::Find(uint64_t inode) const {
  size_t at = HomeOf(inode);
  while (inodes_[at] != inode && inodes_[at] != kNone) at = at + 1 == inodes_.size() ? 0 : at + 1;
  return at;
}

void LookupCounts::Resize(size_t cells) {
  std::vector<uint64_t> inodes(cells, kNone);
  std::vector<uint32_t> counts(cells, 0);
  inodes.swap(inodes_);
  counts.swap(counts_);
  for (size_t i = 0; i < inodes.size(); ++i) {
    if (inodes[i] == kNone) continue;
    size_t at = Find(inodes[i]);
    inodes_[at] = inodes[i];
    counts_[at] = counts[i];
  }
}

void LookupCounts::Add(uint64_t inode) {
  MutexLock lock(mutex_);
  size_t at = Find(inode);
  if (inodes_[at] == kNone) {
    if ((used_ + 1) * 20 > inodes_.size() * 17) {  // beyond 85 %
      Resize(inodes_.size() + inodes_.size() / 8);
      at = Find(inode);
    }
    inodes_[at] = inode;
    counts_[at] = 0;
    ++used_;
  }
  if (counts_[at] < std::numeric_limits<uint32_t>::max()) ++counts_[at];
}

void LookupCounts::EraseAt(size_t at) {
  const size_t size = inodes_.size();
  size_t gap = at;
  for (size_t next = (at + 1) % size; inodes_[next] != kNone; next = (next + 1) % size) {
    const size_t home = HomeOf(inodes_[next]);
    const size_t from_home = (next + size - home) % size;
    const size_t from_gap = (next + size - gap) % size;
    if (from_home >= from_gap) {
      inodes_[gap] = inodes_[next];
      counts_[gap] = counts_[next];
      gap = next;
    }
  }
  inodes_[gap] = kNone;
  counts_[gap] = 0;
  --used_;
}

uint64_t LookupCounts::Remove(uint64_t inode, uint64_t count) {
  MutexLock lock(mutex_);
  const size_t at = Find(inode);
  if (inodes_[at] == kNone) return 0;
  if (counts_[at] > count) {
    counts_[at] -= static_cast<uint32_t>(count);
    return counts_[at];
  }
  EraseAt(at);
  if (inodes_.size() > kMinCells && used_ * 3 < inodes_.size()) {
    Resize(std::max(kMinCells, used_ + used_ / 3 + 8));
  }
  return 0;
}

uint64_t LookupCounts::Of(uint64_t inode) const {
  MutexLock lock(mutex_);
  const size_t at = Find(inode);
  return inodes_[at] == kNone ? 0 : counts_[at];
}

uint64_t LookupCounts::inodes() const {
  MutexLock lock(mutex_);
  return used_;
}

std::vector<uint64_t> LookupCounts::All() const {
  MutexLock lock(mutex_);
  std::vector<uint64_t> all;
  all.reserve(used_);
  for (const uint64_t inode : inodes_) {
    if (inode != kNone) all.push_back(inode);
  }
  return all;
}

uint64_t LookupCounts::memory_bytes() const {
  MutexLock lock(mutex_);
  return inodes_.size() * (sizeof(uint64_t) + sizeof(uint32_t));
}

}  // namespace siltfs
