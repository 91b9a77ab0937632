#include "fs/deltas/base_names.h"

#include <algorithm>

namespace siltfs {
namespace {

constexpr uint64_t kFirstPart = 4096;  // names
constexpr double kBitsPerName = 16;

}  // namespace

void BaseNames::Add(const ChunkName& name) {
  if (MayHave(name)) return;
  if (parts_.empty() || (parts_.back().room == 0 && !full())) {
    const uint64_t names = kFirstPart << parts_.size();
    parts_.push_back({.filter = BloomFilter(BloomShape::Flat(names, kBitsPerName)), .room = names});
  }
  parts_.back().filter.Add(name.Prefix64());
  if (parts_.back().room > 0) --parts_.back().room;
}

bool BaseNames::MayHave(const ChunkName& name) const {
  return std::ranges::any_of(
      parts_, [&](const Part& part) { return part.filter.MayHave(name.Prefix64()); });
}

uint64_t BaseNames::memory_bytes() const {
  uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.filter.memory_bytes();
  return bytes;
}

}  // namespace siltfs
