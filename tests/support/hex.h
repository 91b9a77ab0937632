// Bytes from hexadecimal digits, for known answers in tests.
#pragma once

#include <string>
#include <string_view>

#include "store/base/bytes.h"

namespace siltfs::testing {

// `hex`: two digits for each byte, in either case.
inline Bytes FromHex(std::string_view hex) {
  Bytes bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

}  // namespace siltfs::testing
