// The published SHA-1 collisions as bytes.
#pragma once

#include <vector>

#include "store/base/bytes.h"
#include "tests/support/hex.h"
#include "tests/support/sha1_collisions.h"

namespace siltfs::testing {

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
