#include "fs/mark/node_set.h"

#include <cstring>
#include <utility>

namespace siltfs {
namespace {

constexpr ChunkName kZeros{};
constexpr size_t kLeastCapacity = 16;

}  // namespace

bool NodeSet::Insert(const ChunkName& name) {
  Part& part = parts_[name.bytes[0]];
  const uint8_t* const rest = name.bytes.data() + 1;
  if (std::memcmp(rest, kZeros.bytes.data(), slot_bytes_) == 0) {
    if (std::exchange(part.has_zeros, true)) return false;
    ++size_;
    return true;
  }
  if ((part.used + 1) * 8 > part.capacity * 7) Grow(part);
  uint8_t* const slot = const_cast<uint8_t*>(Find(part, rest));
  if (std::memcmp(slot, rest, slot_bytes_) == 0) return false;
  std::memcpy(slot, rest, slot_bytes_);
  ++part.used;
  ++size_;
  return true;
}

bool NodeSet::Contains(const ChunkName& name) const {
  const Part& part = parts_[name.bytes[0]];
  const uint8_t* const rest = name.bytes.data() + 1;
  if (std::memcmp(rest, kZeros.bytes.data(), slot_bytes_) == 0) return part.has_zeros;
  return part.capacity > 0 && std::memcmp(Find(part, rest), rest, slot_bytes_) == 0;
}

const uint8_t* NodeSet::Find(const Part& part, const uint8_t* rest) const {
  uint64_t hash = 0;  // names are hashes
  for (size_t i = 0; i < sizeof(uint32_t); ++i) hash = hash << 8 | rest[i];
  size_t at = hash * part.capacity >> 32;
  for (;;) {
    const uint8_t* const slot = part.slots.data() + at * slot_bytes_;
    if (std::memcmp(slot, rest, slot_bytes_) == 0) return slot;
    if (std::memcmp(slot, kZeros.bytes.data(), slot_bytes_) == 0) return slot;
    at = at + 1 == part.capacity ? 0 : at + 1;
  }
}

void NodeSet::Grow(Part& part) const {
  Part grown;
  grown.capacity = part.capacity == 0 ? kLeastCapacity : part.capacity + part.capacity / 4;
  grown.slots.resize(grown.capacity * slot_bytes_);
  grown.used = part.used;
  grown.has_zeros = part.has_zeros;
  for (size_t i = 0; i < part.capacity; ++i) {
    const uint8_t* const slot = part.slots.data() + i * slot_bytes_;
    if (std::memcmp(slot, kZeros.bytes.data(), slot_bytes_) == 0) continue;
    std::memcpy(const_cast<uint8_t*>(Find(grown, slot)), slot, slot_bytes_);
  }
  part = std::move(grown);
}

}  // namespace siltfs
