// Types for runs of bytes, and conversions between bytes and text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace siltfs {

using ByteView = std::span<const uint8_t>;
using MutableByteView = std::span<uint8_t>;
using Bytes = std::vector<uint8_t>;

inline ByteView AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline std::string_view AsText(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace siltfs
