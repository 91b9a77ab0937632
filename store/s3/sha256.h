// SHA-256 of bytes that are added piece by piece, and of small texts; HMAC-SHA256.
//
// Thread-safety: a Sha256 by one thread at a time; the functions from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "store/base/bytes.h"

namespace siltfs {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();

  void Add(ByteView bytes);
  // The digest of all bytes. Only the destructor may follow.
  Sha256Digest Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest Sha256Of(ByteView bytes);
Sha256Digest HmacSha256(ByteView key, std::string_view text);

std::string HexOf(const Sha256Digest& digest);
std::string Base64Of(const Sha256Digest& digest);

}  // namespace siltfs
