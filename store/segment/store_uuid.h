// The id of the store that a file belongs to: 16 random bytes drawn at mkfs, stored in the
// superblock and in every segment's header. A plain value.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/bytes.h"

namespace siltfs {

struct StoreUuid {
  static constexpr size_t kSize = 16;
  std::array<uint8_t, kSize> bytes{};

  auto operator<=>(const StoreUuid&) const = default;

  ByteView view() const { return bytes; }
  // 8-4-4-4-12 hex digits.
  std::string ToText() const;
  // The inverse of ToText; letters may have either case. Empty for any other text.
  static std::optional<StoreUuid> FromText(std::string_view text);
  static StoreUuid FromBytes(ByteView view);  // view.size() == kSize
};

}  // namespace siltfs
