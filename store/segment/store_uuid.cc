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

StoreUuid StoreUuid::FromBytes(ByteView view) {
  assert(view.size() == kSize);
  StoreUuid uuid;
  std::copy_n(view.begin(), kSize, uuid.bytes.begin());
  return uuid;
}

}  // namespace siltfs
