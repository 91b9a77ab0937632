// What identifies a snapshot in all stores: the store that made it, its number there, and the time
// when it was made. The time distinguishes the snapshots of copies of a store's directory. A
// received snapshot keeps the identity of the snapshot that was sent. A plain value.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

namespace siltfs {

struct SnapshotId {
  std::array<uint8_t, 16> store{};  // its UUID
  uint64_t number = 0;
  int64_t created = 0;  // nanoseconds since 1970

  auto operator<=>(const SnapshotId&) const = default;
};

}  // namespace siltfs
