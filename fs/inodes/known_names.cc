#include "fs/inodes/known_names.h"

#include <algorithm>

#include "store/base/bytes.h"
#include "store/base/checksum.h"

namespace siltfs {
namespace {

constexpr size_t kFirstSlots = 8;

uint32_t HashOf(std::string_view name) {
  return std::max<uint32_t>(static_cast<uint32_t>(Checksum(AsBytes(name))), 1);
}

}  // namespace

size_t KnownNames::Find(uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  while (slots_[slot] != 0 && slots_[slot] != hash) slot = (slot + 1) & mask;
  return slot;
}

void KnownNames::Grow() {
  std::vector<uint32_t> before(std::max(slots_.size() * 2, kFirstSlots));
  before.swap(slots_);
  for (const uint32_t hash : before) {
    if (hash != 0) slots_[Find(hash)] = hash;
  }
}

void KnownNames::Add(std::string_view name) {
  if (MayContain(name)) return;
  if (count_ == kMost) {
    full_ = true;
    slots_ = {};
    return;
  }
  if (2 * (count_ + 1) > slots_.size()) Grow();
  const uint32_t hash = HashOf(name);
  slots_[Find(hash)] = hash;
  ++count_;
}

bool KnownNames::MayContain(std::string_view name) const {
  if (full_) return true;
  return !slots_.empty() && slots_[Find(HashOf(name))] != 0;
}

}  // namespace siltfs
