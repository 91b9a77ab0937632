// The published SHA-1 collisions as bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/base/bytes.h"
#include "tests/support/sha1_collisions.h"

namespace siltfs::testing {

inline Bytes FromHex(std::string_view hex) {
  Bytes bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

struct Collision {
  const char* what;
  Bytes first, second;
  const char* name;
};

inline std::vector<Collision> Collisions() {
  return {{"SHAttered", FromHex(kShattered1), FromHex(kShattered2),
           "f92d74e3874587aaf443d1db961d4e26dde13e9c"},
          {"SHA-mbles", FromHex(kShambles1), FromHex(kShambles2),
           "8ac60ba76f1999a1ab70223f225aefdc78d4ddc0"}};
}

}  // namespace siltfs::testing
