#include "store/segment/store_uuid.h"

#include <algorithm>
#include <cassert>

namespace siltfs {

std::string StoreUuid::ToText() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < kSize; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::optional<StoreUuid> StoreUuid::FromText(std::string_view text) {
  StoreUuid uuid;
  size_t at = 0;
  for (size_t i = 0; i < kSize; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      if (at >= text.size() || text[at++] != '-') return std::nullopt;
    }
    for (int half = 0; half < 2; ++half) {
      const char c = at < text.size() ? text[at++] : ' ';
      const bool upper = c >= 'A' && c <= 'F';
      const size_t digit =
          std::string_view("0123456789abcdef").find(upper ? static_cast<char>(c - 'A' + 'a') : c);
      if (digit == std::string_view::npos) return std::nullopt;
      uuid.bytes[i] = static_cast<uint8_t>(uuid.bytes[i] << 4 | digit);
    }
  }
  if (at != text.size()) return std::nullopt;
  return uuid;
}

StoreUuid StoreUuid::FromBytes(ByteView view) {
  assert(view.size() == kSize);
  StoreUuid uuid;
  std::copy_n(view.begin(), kSize, uuid.bytes.begin());
  return uuid;
}

}  // namespace siltfs
